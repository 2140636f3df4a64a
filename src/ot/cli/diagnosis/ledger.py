"""Looks at the ledger: where it is, and what its entries survive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ot.cli.diagnosis import Finding
from ot.config.load import Loaded
from ot.config.paths import Paths
from ot.errors import ConfigError
from ot.ledger.ledger_file import LEDGER

if TYPE_CHECKING:
    from ot.state.redis_state import RedisState

SURVIVES = {"process": "a crash or a kill", "power": "a loss of power"}


async def ledger_findings(loaded: Loaded, paths: Paths) -> list[Finding]:
    """Return which ledger there is, and why its entries may be lost."""
    config = loaded.config
    if not config.state.redis:
        text = f"{paths.global_dir / LEDGER}: entries survive {SURVIVES[config.ledger.durability]}"
        return [Finding("ledger", "ok", text)]
    try:
        from ot.state.open_state import open_redis

        state = open_redis(config.state, loaded.secrets)
    except ConfigError as error:
        return [Finding("ledger", "problem", str(error), error.hint)]
    try:
        return [await _of_redis(state, config.ledger.replicas)]
    finally:
        await state.aclose()


async def _of_redis(state: RedisState, replicas: int) -> Finding:
    from ot.ledger.redis_place import why_not_durable

    waits = f", and {replicas} of its replicas have each entry first (ledger.replicas)" if replicas else ""
    why_not = await why_not_durable(state.connection)
    if state.trouble:
        return Finding("ledger", "problem", why_not, "start Redis, or correct state.redis")
    if why_not:
        return Finding("ledger", "note", f"Redis{waits}: {why_not}", "set appendonly yes and appendfsync always")
    return Finding("ledger", "ok", f"Redis, which writes every entry to its disk before the call is sent{waits}")

"""What ``onetool doctor`` says of the parts that a team's server shares."""

from __future__ import annotations

from collections.abc import Sequence

from onetool_team.ledger.open_postgres import open_postgres
from onetool_team.settings import SharedStore
from ot.cli.diagnosis import Finding
from ot.config.load import Loaded
from ot.errors import ConfigError

AREA = "team's ledger"
EACH_ITS_OWN = "each replica has a ledger of its own, and nobody carries out background runs"


async def team_findings(loaded: Loaded) -> Sequence[Finding]:
    """Return whether PostgreSQL keeps every entry of the ledger; nothing where there are no replicas."""
    settings = loaded.config.section(SharedStore)
    if not settings.redis:
        return []
    try:
        sessions = open_postgres(settings, loaded.secrets)
    except ConfigError as error:
        return [Finding(AREA, "problem", str(error), error.hint)]
    if sessions is None:
        return [Finding(AREA, "note", EACH_ITS_OWN, "set state.postgres")]
    try:
        why_not = await sessions.why_not_durable()
        if sessions.trouble:
            return [Finding(AREA, "problem", why_not, "start PostgreSQL, or correct state.postgres")]
        if why_not:
            return [Finding(AREA, "note", why_not, "set them to on")]
        return [Finding(AREA, "ok", "PostgreSQL, which writes every entry to its disk before the call is sent")]
    finally:
        await sessions.aclose()

"""WorkerParts: what one ``onetool worker`` is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ot.config.load import Loaded, load_config
from ot.config.paths import Paths
from ot.config.trust import Trust
from ot.errors import ConfigError
from ot.ledger.kept_ledger import KeptLedger
from ot.state.open_state import redis_url
from ot.team.auth.token_redaction import without_tokens
from ot.team.background.run_worker import RunWorker
from ot.team.docket.run_docket import RunDocket
from ot.team.team_host import TeamHost

NO_REDIS = "a worker takes background runs from Redis, and state.redis names none"
NO_REDIS_HINT = "give it the configuration of the replicas; one user's server carries out its background runs itself"
NO_TEAM = "nobody is configured who could have background runs carried out by a worker"
NO_TEAM_HINT = "set http.tokens or http.oauth, as for the replicas"


@dataclass(frozen=True)
class WorkerParts:
    """The parts, and how they end."""

    team: TeamHost
    book: KeptLedger
    worker: RunWorker
    redact: Callable[[str], str]
    """Takes every secret out of a line of the log."""

    async def aclose(self) -> None:
        """Let go of everything."""
        await self.team.aclose()


def open_worker(paths: Paths) -> WorkerParts:
    """Return the parts of a worker, with the configuration that replicas have.

    Raises:
        ConfigError: The configuration cannot be used, or is not one of a team that shares Redis.
    """
    operator = load_config(paths, Trust(paths.global_dir))
    _require_team(operator)
    config, team = operator.config, TeamHost.open(paths, operator)
    assert team.queue is not None, "state.redis is set"
    book = team.host.ledger(team.front.workspace, config.ledger)
    docket = RunDocket(redis_url(config.state, operator.secrets), config.state.prefix)
    worker = RunWorker(docket, team.queue, book.list_left_behind, team.shared.state)
    return WorkerParts(team, book, worker, without_tokens(team.host.redaction.redact))


def _require_team(operator: Loaded) -> None:
    if not operator.config.state.redis:
        raise ConfigError(NO_REDIS, hint=NO_REDIS_HINT)
    http = operator.config.http
    if not http.tokens and http.oauth is None:
        raise ConfigError(NO_TEAM, hint=NO_TEAM_HINT)

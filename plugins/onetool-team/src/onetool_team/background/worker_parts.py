"""WorkerParts: what one ``onetool worker`` is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onetool_team.auth.token_redaction import without_tokens
from onetool_team.background.run_worker import RunWorker
from onetool_team.ledger.postgres_ledger import PostgresLedger
from onetool_team.live_configuration import LiveConfiguration
from onetool_team.settings import Http, SharedStore
from onetool_team.team_host import TeamHost
from ot.config.load import Loaded
from ot.config.paths import Paths
from ot.errors import ConfigError
from ot.ledger.run_book import KeptLedger

NO_BOOK = "a worker takes background runs from PostgreSQL, and state.postgres names none"
NO_BOOK_HINT = "give it the configuration of the replicas; one user's server carries out its background runs itself"
NO_TEAM = "nobody is configured who could have background runs carried out by a worker"
NO_TEAM_HINT = "set http.tokens or http.oauth, as for the replicas"


@dataclass(frozen=True)
class WorkerParts:
    """The parts."""

    team: TeamHost
    book: KeptLedger
    worker: RunWorker
    redact: Callable[[str], str]
    """Takes every secret out of a line of the log."""


def open_worker(paths: Paths) -> WorkerParts:
    """Return the parts of a worker, with the configuration that replicas have.

    Raises:
        ConfigError: The configuration cannot be used, or is not one of a team with workers.
    """
    configuration = LiveConfiguration(paths)
    operator = configuration.loaded
    _require_team(operator)
    config, team = operator.config, TeamHost.open(configuration)
    book = team.host.ledger(team.front.workspace, config.ledger)
    assert isinstance(book, PostgresLedger), "state.postgres is set"
    assert team.bell is not None, "as above"
    worker = RunWorker(book, team.bell)
    return WorkerParts(team, book, worker, without_tokens(team.host.redaction.redact))


def _require_team(operator: Loaded) -> None:
    if not operator.config.section(SharedStore).postgres:
        raise ConfigError(NO_BOOK, hint=NO_BOOK_HINT)
    if not operator.config.section(Http).names_people:
        raise ConfigError(NO_TEAM, hint=NO_TEAM_HINT)

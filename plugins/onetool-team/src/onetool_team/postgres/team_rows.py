"""TeamRows: statements over the tables of a team's people, and what seals what they said."""

from __future__ import annotations

from typing import Any

from onetool_team.ledger.open_postgres import open_postgres
from onetool_team.ledger.postgres_place import PostgresPlace
from onetool_team.ledger.postgres_sessions import MALFORMED, PostgresSessions, Rows
from onetool_team.settings import SharedStore
from onetool_team.state.shared_state import StateUnavailable
from onetool_team.state.state_keys import StateKeys
from ot.config.secrets import Secrets
from ot.errors import LedgerUnavailable

ANSWER_SECONDS = 3.0
"""How long PostgreSQL may take: somebody's search may look through all notes of that one."""


def open_team_rows(settings: SharedStore, secrets: Secrets, keys: StateKeys) -> TeamRows | None:
    """Return the rows in the PostgreSQL that ``state.postgres`` names, by connections of their own.

    What somebody looks for there must not keep calls of others from being recorded.

    Raises:
        ConfigError: The settings cannot be used.
    """
    sessions = open_postgres(settings, secrets, ANSWER_SECONDS)
    return TeamRows(sessions, keys) if sessions else None


class TeamRows:
    """Each statement is committed by itself. Who and when are plain columns; all else that people said is sealed."""

    def __init__(self, sessions: PostgresSessions, keys: StateKeys) -> None:
        """Use *sessions*, and seal with *keys*."""
        self.sessions = sessions
        self.keys = keys
        self.place = PostgresPlace(keys)
        self.who = self.place.who

    async def rows(self, step: str, **given: Any) -> Rows:
        """Return the rows of a statement, which may be taken twice where an answer was lost.

        Raises:
            StateUnavailable: There is no answer, or it is a refusal.
        """
        try:
            return (await self.sessions.take((step, given)))[0]
        except LedgerUnavailable as error:
            raise StateUnavailable(error.why) from None
        except MALFORMED as error:
            raise StateUnavailable(f"PostgreSQL refuses: {str(error)[:200]}") from None

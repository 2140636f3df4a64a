"""PostgresPermissions: the tools that each principal has allowed for good, a row for each."""

from __future__ import annotations

import logging
import time

from onetool_team.kept_answers import KeptAnswers
from onetool_team.postgres.team_rows import TeamRows
from onetool_team.state.always_allowed import FRESH_SECONDS, MOST_PATTERNS
from onetool_team.state.shared_state import StateUnavailable

logger = logging.getLogger(__name__)

GIVEN = "SELECT tool, seal FROM permissions WHERE principal = %(who)s ORDER BY given, tool"
GIVE = """
INSERT INTO permissions (principal, tool, seal, given)
SELECT %(who)s, %(tool)s, %(seal)s, clock_timestamp()
WHERE (SELECT count(*) FROM permissions WHERE principal = %(who)s AND tool <> %(tool)s) < %(most)s
ON CONFLICT (principal, tool) DO UPDATE SET seal = EXCLUDED.seal RETURNING tool
"""
TAKE_BACK = """
DELETE FROM permissions WHERE principal = %(who)s AND %(server)s::text IN ('', split_part(tool, '.', 1))
RETURNING tool
"""


class PostgresPermissions:
    """An operator can read who allowed which tool and when; without the keys, nobody can add a row that counts."""

    def __init__(self, rows: TeamRows) -> None:
        """Keep them in *rows*."""
        self._rows = rows
        self._recent = KeptAnswers[tuple[str, ...]](time.monotonic)

    async def patterns(self, principal: str) -> tuple[str, ...]:
        """Return what *principal* has allowed for good, in the order it was said.

        Raises:
            StateUnavailable: Nobody knows now; whoever asks the user again does no harm.
        """
        known = self._recent.get(principal)
        if known is None:
            known = await self._read(principal)
            self._recent.put(principal, known, time.monotonic() + FRESH_SECONDS)
        return known

    async def add(self, principal: str, pattern: str) -> None:
        """Allow *pattern* to *principal* for good.

        Raises:
            StateUnavailable: It was not kept.
        """
        who = self._rows.who(principal)
        seal = self._rows.place.seal(_place(who, pattern), True)
        if not await self._rows.rows(GIVE, who=who, tool=pattern, seal=seal, most=MOST_PATTERNS):
            raise StateUnavailable(f"{MOST_PATTERNS} tools are always allowed already")
        self._recent.forget(principal)

    async def forget(self, principal: str, server: str = "") -> tuple[str, ...]:
        """Ask *principal* again about everything, or about the tools of *server*; return what is asked about.

        Raises:
            StateUnavailable: It is allowed as before.
        """
        taken = await self._rows.rows(TAKE_BACK, who=self._rows.who(principal), server=server)
        self._recent.forget(principal)
        return tuple(tool for (tool,) in taken)

    async def _read(self, principal: str) -> tuple[str, ...]:
        who = self._rows.who(principal)
        found = await self._rows.rows(GIVEN, who=who)
        believed = [tool for tool, seal in found if self._rows.place.try_unseal(_place(who, tool), seal)]
        if len(believed) < len(found):
            logger.warning("what somebody always allowed is not used: it was not written with state.keys")
        return tuple(believed)


def _place(who: bytes, tool: str) -> str:
    return f"permissions/{who.hex()}/{tool}"

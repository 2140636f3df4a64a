"""PersonRows: what the tables of a team's people hold of one of them, for whoever is to forget that one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onetool_team.postgres.team_rows import TeamRows

TABLES = ("permissions", "logins", "login_locks", "notes", "note_ids", "pins")
"""Every table of this package has a column ``principal``."""
COUNT = """
SELECT (SELECT count(*) FROM permissions WHERE principal = %(who)s),
  (SELECT count(*) FROM logins WHERE principal = %(who)s AND server <> ALL (%(servers)s::text[])),
  (SELECT count(*) FROM notes WHERE principal = %(who)s), (SELECT count(*) FROM pins WHERE principal = %(who)s)
"""


class PersonRows:
    """Counts and deletes; a login of a server in the configuration is revoked by whoever knows that one."""

    def __init__(self, rows: TeamRows, servers: Sequence[str]) -> None:
        """Look into *rows*; logins at *servers* are counted elsewhere."""
        self._rows = rows
        self._servers = [rows.place.text(server) for server in servers]

    async def count(self, principal: str) -> Mapping[str, int]:
        """Return how much is kept of *principal*, by what it is.

        Raises:
            StateUnavailable: Nobody knows now.
        """
        (found,) = await self._rows.rows(COUNT, who=self._rows.who(principal), servers=self._servers)
        return dict(zip(("permissions", "logins", "notes", "approvals"), found, strict=True))

    async def forget(self, principal: str) -> None:
        """Delete all of it.

        Raises:
            StateUnavailable: Something of it may be left.
        """
        for table in TABLES:
            await self._rows.rows(f"DELETE FROM {table} WHERE principal = %(who)s", who=self._rows.who(principal))

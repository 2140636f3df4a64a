"""PostgresLogins: the logins of a team's people at proxied servers, and who renews one of them now."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from onetool_team.postgres.team_rows import TeamRows
from onetool_team.state.redis_state import LOCK_POLL_SECONDS, SLOWEST_LOCK_POLL_SECONDS
from onetool_team.state.shared_state import StateUnavailable
from onetool_team.state.state_keys import NotSealed
from ot.proxied.auth.account import ServerAccount

logger = logging.getLogger(__name__)

READ = "SELECT record FROM logins WHERE account = %(account)s"
WRITE = """
INSERT INTO logins (account, principal, server, record, changed)
VALUES (%(account)s, %(who)s, %(server)s, %(record)s, clock_timestamp())
ON CONFLICT (account) DO UPDATE SET record = EXCLUDED.record, changed = EXCLUDED.changed
"""
DELETE = "DELETE FROM logins WHERE account = %(account)s"
LOCK = """
INSERT INTO login_locks (account, principal, holder, until)
VALUES (%(account)s, %(who)s, %(holder)s, clock_timestamp() + %(seconds)s * interval '1 s')
ON CONFLICT (account) DO UPDATE SET holder = EXCLUDED.holder, until = EXCLUDED.until
  WHERE login_locks.until < clock_timestamp() OR login_locks.holder = EXCLUDED.holder
RETURNING account
"""
"""A lease and no lock of PostgreSQL's: whoever renews a login waits for another server meanwhile."""
UNLOCK = "DELETE FROM login_locks WHERE account = %(account)s AND holder = %(holder)s"


class PostgresLogins:
    """Who logged in at which server, and when, can be read by an operator; the tokens are sealed."""

    def __init__(self, rows: TeamRows) -> None:
        """Keep them in *rows*."""
        self._rows = rows

    async def read(self, account: ServerAccount) -> bytes | None:
        """Return the record of *account*, as text."""
        name = self._name(account)
        found = await self._rows.rows(READ, account=name)
        text = self._rows.place.try_unseal(_place(name), found[0][0]) if found else None
        if found and text is None:
            raise NotSealed("a login was not written with state.keys")
        return text.encode() if text is not None else None

    async def write(self, account: ServerAccount, record: bytes) -> None:
        """Keep the record of *account*."""
        name, who = self._name(account), self._rows.who(account.principal)
        sealed = self._rows.place.seal(_place(name), record.decode())
        server = self._rows.place.text(account.server)
        await self._rows.rows(WRITE, account=name, who=who, server=server, record=sealed)

    async def delete(self, account: ServerAccount) -> None:
        """Forget the record of *account*."""
        await self._rows.rows(DELETE, account=self._name(account))

    @asynccontextmanager
    async def lock(self, account: ServerAccount, seconds: float) -> AsyncGenerator[None]:
        """Keep everyone else from renewing the login of *account*, at most *seconds*."""
        given = {"account": self._name(account), "holder": uuid.uuid4()}
        who, pause = self._rows.who(account.principal), LOCK_POLL_SECONDS
        while not await self._rows.rows(LOCK, who=who, seconds=seconds, **given):
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, SLOWEST_LOCK_POLL_SECONDS)
        try:
            yield
        finally:
            try:
                await self._rows.rows(UNLOCK, **given)
            except StateUnavailable as error:
                logger.warning("the lock of a login ends by itself within %g s: %s", seconds, error)

    def _name(self, account: ServerAccount) -> str:
        return self._rows.keys.hide(account.key)


def _place(name: str) -> str:
    return f"logins/{name}"

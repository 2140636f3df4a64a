"""What is kept of a person outside of files and the ledger: logins at servers, results in an object store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from onetool_team.operating.kept_data import KeptThing
from onetool_team.results.object_layout import folder_of
from onetool_team.results.object_place import ObjectPlace
from ot.errors import LoginNeeded
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.logout import logout
from ot.proxied.auth.token_store import RecordUnreadable, token_store


class Logins:
    """The logins of people at the servers of the configuration."""

    def __init__(self, accounts: Mapping[str, ServerAccount]) -> None:
        """Look at these servers."""
        self._accounts = accounts

    @property
    def servers(self) -> list[str]:
        """The servers at which people log in."""
        return list(self._accounts)

    async def of(self, principal: str) -> list[str]:
        """Return the servers at which *principal* is logged in."""
        return await asyncio.to_thread(
            lambda: [server for server, account in self._accounts.items() if _is_kept(account.of(principal))]
        )

    async def end(self, principal: str, server: str) -> str:
        """Revoke and forget one login; return why its tokens could not be revoked, or nothing.

        Raises:
            LoginNeeded: There is none.
        """
        account = self._accounts[server].of(principal)
        why = await logout(account)
        if account.shared is None:
            (account.directory / f"{account.key}.lock").unlink(missing_ok=True)
        return why

    async def find(self, principal: str) -> list[KeptThing]:
        """Return each login."""
        return [KeptThing("logins", server, 1) for server in await self.of(principal)]

    async def erase(self, principal: str) -> None:
        """Revoke and forget all."""
        for server in await self.of(principal):
            with suppress(LoginNeeded):
                await self.end(principal, server)


def _is_kept(account: ServerAccount) -> bool:
    try:
        return token_store(account).read() is not None
    except RecordUnreadable:
        return True


class Results:
    """Results in an object store."""

    def __init__(self, place: ObjectPlace, hide: Callable[[str], str]) -> None:
        """Look into *place*, where *hide* makes names secret."""
        self._place = place
        self._hide = hide

    async def find(self, principal: str) -> list[KeptThing]:
        """Return how many objects there are."""
        return await asyncio.to_thread(self._find, principal)

    def _find(self, principal: str) -> list[KeptThing]:
        folder = self._folder(principal)
        sizes = [entry["size"] for entry in self._place.list_objects(folder)]
        return [KeptThing("results", folder, len(sizes), sum(sizes))] if sizes else []

    async def erase(self, principal: str) -> None:
        """Delete them."""
        await asyncio.to_thread(self._erase, principal)

    def _erase(self, principal: str) -> None:
        for entry in list(self._place.list_objects(self._folder(principal))):
            with suppress(FileNotFoundError):
                self._place.delete(entry["path"])

    def _folder(self, principal: str) -> str:
        return folder_of(self._hide(principal))

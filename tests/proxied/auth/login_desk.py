"""What the tests of logins share: an account at the resource server, a login at it, and a door to its tools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from callers import asking
from oauth.browserless_user import BrowserlessUser
from oauth.resource_server import LoopbackResourceServer
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.browser_return import CallbackAnswer
from ot.proxied.auth.login import login
from ot.proxied.auth.token_record import TokenRecord
from ot.proxied.auth.token_store import TokenStore
from ot.proxied.spec import ServerSpec

PRINCIPAL = asking(None).principal


def account_at(resource: LoopbackResourceServer, directory: Path, **settings: Any) -> ServerAccount:
    """Return the account of the tests' caller at *resource*."""
    known: dict[str, Any] = {"port": 41237, **settings}
    return ServerAccount("guarded", resource.url, PRINCIPAL, directory / "logins", **known)


def spec_of_account(account: ServerAccount) -> ServerSpec:
    """Return the server of *account*, to be called."""
    return ServerSpec("guarded", "guarded", url=account.url, account=account)


class Browser:
    """A person who agrees at once; the redirect is not followed but told, as by --no-browser."""

    def __init__(self, user: str = "ada") -> None:
        self._user = BrowserlessUser(user)
        self.opened: list[str] = []
        self._answer = CallbackAnswer("")

    async def show(self, address: str) -> None:
        self.opened.append(address)
        self._answer = CallbackAnswer.from_address(await self._user.redirected_to(address))

    async def receive(self, state: str) -> CallbackAnswer:
        return self._answer


async def logged_in(account: ServerAccount, browser: Browser | None = None, scope: str = "") -> TokenRecord:
    """Return the record of a login that a person made."""
    browser = browser or Browser()
    return await login(account, browser.show, browser.receive, scope=scope)


def stored(account: ServerAccount) -> TokenRecord:
    """Return the record as another process would find it."""
    found = TokenStore(account).read()
    assert found is not None
    return found


def overwritten(account: ServerAccount, **changes: Any) -> TokenRecord:
    """Change the record behind everybody's back."""
    record = replace(stored(account), **changes)
    TokenStore(account).write(record)
    return record

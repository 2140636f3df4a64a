"""TokenAuth: puts a login's access token on every request, and has it renewed in time; it never asks a person."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

import httpx2

from ot.errors import ServerUnavailable
from ot.servers.auth.account import ServerAccount
from ot.servers.auth.system_keyring import SystemKeyring

type NoteRefusal = Callable[[ServerUnavailable | None], None]
"""Takes why the request under way was refused: LoginNeeded or AuthServerDown; None at its beginning."""


class TokenAuth(httpx2.Auth):
    """The login of one account on the requests of one connection."""

    def __init__(self, account: ServerAccount, note: NoteRefusal, keyring: SystemKeyring | None = None) -> None:
        """Read nothing yet; *note* hears why a request is refused, since raising here would end the session."""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send *request* with the token, once more with a renewed one where it is refused."""
        yield request

"""A login: drives the protocol library's own flow once, and keeps what comes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ot.servers.auth.account import ServerAccount
from ot.servers.auth.record import TokenRecord

type ShowAddress = Callable[[str], Awaitable[None]]
"""Takes the address that the person has to open."""


@dataclass(frozen=True, slots=True)
class CallbackAnswer:
    """What the authorization server sent back by way of the browser."""

    state: str
    code: str = ""
    iss: str | None = None
    error: str = ""


type ReceiveAnswer = Callable[[str], Awaitable[CallbackAnswer]]
"""Waits for the answer that carries the given state."""


async def login(account: ServerAccount, show: ShowAddress, receive: ReceiveAnswer, *, scope: str = "") -> TokenRecord:
    """Log in at the server of *account*, keep the record, and return it; *scope* is asked for in addition.

    Raises:
        LoginFailed: It did not come to its end; an older record is as it was.
        LoginRefused: The person or the authorization server said no.
        AuthServerDown: The authorization server does not answer.
        ServerUnavailable: The server itself does not answer.
    """
    raise NotImplementedError

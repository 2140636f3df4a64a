"""The seam of how a browser is led to an authorization server, and comes back with its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import parse_qs, urlsplit

from ot.proxied.auth.account import ServerAccount

MAX_WORDS = 200


@dataclass(frozen=True, slots=True)
class CallbackAnswer:
    """A code for the login of ``state``, or the error in its place."""

    state: str
    code: str = field(default="", repr=False)
    iss: str | None = None
    error: str = ""

    @classmethod
    def from_address(cls, address: str) -> CallbackAnswer:
        """Return the query parameters of the *address* that the browser was sent to."""
        given = {name: values[0] for name, values in parse_qs(urlsplit(address.strip()).query).items()}
        words = ": ".join(text for key in ("error", "error_description") if (text := given.get(key, "")))
        return cls(given.get("state", ""), given.get("code", ""), given.get("iss"), words[:MAX_WORDS])

    @property
    def is_complete(self) -> bool:
        """Whether it says anything."""
        return bool(self.state and (self.code or self.error))


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a person is shown: the address to open, and what to do there."""

    url: str
    words: str = "Open the address, and agree there."


class BrowserReturn(Protocol):
    """The way of one login, while it is entered."""

    @property
    def account(self) -> ServerAccount:
        """The account that logs in, with the address that the browser is sent back to."""
        ...

    async def __aenter__(self) -> Self:
        """Begin."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End: whoever still waits in a browser is told how."""
        ...

    async def invite(self, address: str) -> Invitation:
        """Return how a person gets to *address*, and start taking its answer."""
        ...

    async def receive(self, state: str) -> CallbackAnswer:
        """Return the answer for *state*.

        Raises:
            TimeoutError: None came in time.
        """
        ...


type OpenReturn = Callable[[ServerAccount, float], BrowserReturn]
"""Opens the way of one login, which waits so many seconds for a person."""

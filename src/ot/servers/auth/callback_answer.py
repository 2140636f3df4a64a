"""CallbackAnswer: what the authorization server sent back by way of the browser."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

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
        """Return what the query of the *address* holds that the browser was sent to."""
        given = {name: values[0] for name, values in parse_qs(urlsplit(address.strip()).query).items()}
        words = ": ".join(text for key in ("error", "error_description") if (text := given.get(key, "")))
        return cls(given.get("state", ""), given.get("code", ""), given.get("iss"), words[:MAX_WORDS])

    @property
    def is_complete(self) -> bool:
        """Whether it says anything."""
        return bool(self.state and (self.code or self.error))

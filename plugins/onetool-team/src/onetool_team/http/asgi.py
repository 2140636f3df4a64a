"""The types that the layers are made of: an application takes a scope, and ways to receive and send messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

REQUEST_ID = "onetool.request_id"
"""Where a request's scope holds its id."""


def header(scope: Scope, name: bytes) -> bytes | None:
    """Return the first header called *name*, which is in lower case."""
    return next((value for key, value in scope["headers"] if key == name), None)


def all_headers(scope: Scope, name: bytes) -> list[bytes]:
    """Return every header called *name*, which is in lower case."""
    return [value for key, value in scope["headers"] if key == name]

"""Front: who answers a request, and for whom."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from fastmcp import Context

from ot.execution.caller import Caller
from ot.workspace import Workspace

if TYPE_CHECKING:
    from ot.server.wire import Wire

UNKNOWN_CLIENT = "unknown"


class Front(Protocol):
    """Receives whoever sends a request, and says in which workspace it is answered."""

    workspace: Workspace
    """The one whose packs are announced."""

    @property
    def wire(self) -> Wire | None:
        """The connection of the only client, where it is one of this machine: its user may be at a terminal here."""
        ...

    def receive(self, ctx: Context) -> AbstractAsyncContextManager[tuple[Workspace, Caller]]:
        """Yield the workspace that answers, and who asks, while the request is answered."""
        ...

    def enter(self, principal: str) -> AbstractAsyncContextManager[Workspace]:
        """Yield the workspace of *principal*, whose request another replica received."""
        ...


def client_name(ctx: Context) -> str:
    """Return the name that the client gave itself, in its handshake or with the request."""
    request = ctx.request_context
    given = request.session.client_params if request else None
    return given.client_info.name[:100] if given else UNKNOWN_CLIENT

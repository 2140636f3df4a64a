"""A front that answers everyone from one workspace, each as the principal that the token names."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from ot.execution.caller import Caller
from ot.server.mcp_server import Context, client_name
from ot.team.identity import SCOPE_KEY, Identity
from ot.workspace import Workspace

ASK_SECONDS = 120.0
"""The most that a question waits over HTTP: a parked run holds a process of the engine, and balancers lose patience."""


def identity_of(ctx: Context) -> Identity:
    """Return who sent the request."""
    request: Any = ctx.request_context
    return request.request.scope[SCOPE_KEY]


class OneWorkspace:
    """Answers from one workspace, whoever asks."""

    def __init__(self, workspace: Workspace) -> None:
        """Answer from *workspace*."""
        self.workspace = workspace
        workspace.most_ask_seconds = ASK_SECONDS

    @contextlib.asynccontextmanager
    async def receive(self, ctx: Context) -> AsyncGenerator[tuple[Workspace, Caller]]:
        """Yield the workspace, and who asks."""
        who = identity_of(ctx)
        yield (
            self.workspace,
            Caller(who.principal, "", client_name(ctx), groups=who.groups, admin="admin" in who.scopes),
        )

    @contextlib.asynccontextmanager
    async def entered(self, principal: str) -> AsyncGenerator[Workspace]:
        """Yield the workspace."""
        yield self.workspace

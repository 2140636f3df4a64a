"""Asks the client for its roots, where the protocol has a way to."""

from __future__ import annotations

from fastmcp import Context
from mcp import MCPError
from mcp_types import ListRootsRequest, ListRootsResult
from pydantic import ValidationError

from ot.execution.servers.client_roots import AskRoots, Roots
from ot.server.elicitation import is_modern


def way_to_list_roots(ctx: Context) -> AskRoots | None:
    """Return how to ask for the roots of this client, or nothing when it offers none."""
    session = ctx.session
    offered = session.client_capabilities
    if is_modern(ctx) or offered is None or offered.roots is None:
        return None

    async def ask() -> Roots:
        try:
            # Not list_roots(): that is marked as old, and the clients that know nothing newer are meant here.
            found = await session.send_request(ListRootsRequest(), ListRootsResult)
        except (MCPError, ValidationError):
            return ()
        return [(str(root.uri), root.name or "") for root in found.roots]

    return ask

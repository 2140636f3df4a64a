"""PassingSession: a session that passes results on as they are."""

from __future__ import annotations

from mcp import ClientSession
from mcp_types import CallToolResult


class PassingSession(ClientSession):
    """A client session for a proxy: it is the caller who judges a result, and lists are not fetched for it."""

    async def validate_tool_result(self, name: str, result: CallToolResult) -> None:
        """Take the result as it is: a server's own mistake about its schema loses nobody a value."""

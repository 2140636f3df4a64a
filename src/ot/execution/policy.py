"""The operator's say over single tools."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from ot.errors import ToolDenied
from ot.registry.tool import Tool


class PolicyCheck:
    """Decides at the door whether a tool may be called."""

    def __init__(self, deny: Sequence[str] = ()) -> None:
        """Deny every tool whose ``pack.name`` matches one of the patterns."""
        self._deny = tuple(deny)

    def require_allowed(self, tool: Tool) -> None:
        """Return when *tool* may be called.

        Raises:
            ToolDenied: A pattern forbids it.
        """
        for pattern in self._deny:
            if fnmatchcase(tool.full_name, pattern):
                raise ToolDenied(tool.full_name, pattern)

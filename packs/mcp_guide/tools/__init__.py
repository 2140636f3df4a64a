"""The guide's tools, in modules named ``tool_*``; importing one declares its tools."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import ClassVar

from mcp_core import ToolArguments


class ReadingArguments(ToolArguments):
    """The arguments of a tool that changes nothing."""

    read_only: ClassVar[bool | None] = True


def import_tools(*, include_examples: bool) -> None:
    """Import the modules ``tool_*``, which declares their tools; the example only when it is asked for."""
    for found in pkgutil.iter_modules(__path__):
        if found.name.startswith("tool_") and (include_examples or found.name != "tool_example"):
            import_module(f"{__name__}.{found.name}")

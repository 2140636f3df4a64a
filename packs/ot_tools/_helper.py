"""The pack of a helper: carries out calls of bundled tools that would hold the server's interpreter for long.

Its process is the server's own code on the server's own interpreter, has one call at a time and less priority.
"""

from __future__ import annotations

import os
import sys

# ruff: noqa: E402 - what follows takes long to import
NICENESS = 5

if __name__ == "helper_tools":  # and not a module that a server imports
    os.nice(NICENESS)
    sys.path.append(sys.path.pop(0))  # where this file was found must not come before the standard library

from importlib import import_module
from typing import Any

from ot.execution.tool_context import ToolContext, use
from ot.files.path_guard import PathGuard

__all__ = ["carry_out"]


def carry_out(*, target: str, arguments: dict[str, Any], settings: dict[str, Any], guard: dict[str, Any]) -> Any:
    """Call the function *target* of a bundled pack, which may read only what *guard* allows."""
    module, _, name = target.partition(":")
    opened = PathGuard.for_reading(guard)
    with use(ToolContext(opened, opened.roots[0], settings)):
        return getattr(import_module(module), name)(**arguments)

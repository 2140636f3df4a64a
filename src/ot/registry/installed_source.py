"""Finds the packs that other distributions bring: entry points of the group ``onetool.packs``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from ot.errors import ToolUnavailable
from ot.registry.declared_source import declared_tools
from ot.registry.tool import Tool
from ot.registry.tool_loader import read_pack_file
from ot.registry.tool_registry import Pack

GROUP = "onetool.packs"


def installed_packs() -> list[Pack]:
    """Return a pack for each entry point; what it names is looked for when a tool is first asked for.

    It names a module, whose functions are read without importing it, or ``module:object``, whose functions are tools.
    """
    return [Pack(found.name, "local", _reader(found), origin=found.value) for found in entry_points(group=GROUP)]


def _reader(found: EntryPoint) -> Callable[[], Iterable[Tool]]:
    def read() -> list[Tool]:
        if found.attr:
            return declared_tools(found)
        try:
            spec = find_spec(found.module)
        except (ImportError, ValueError) as error:
            raise ToolUnavailable(found.name, f"{found.value} cannot be found: {error}") from None
        if spec is None or not spec.origin or not spec.origin.endswith(".py"):
            raise ToolUnavailable(found.name, f"{found.value} is not a Python module")
        return read_pack_file(Path(spec.origin), pack=found.name, target=found.module)

    return read

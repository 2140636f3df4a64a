"""Finds the packs that other distributions bring: entry points of the group ``onetool.packs``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.metadata import Distribution, EntryPoint
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
    return [Pack(found.name, "local", _reader(found), origin=found.value) for found in _entry_points()]


def _entry_points() -> Iterator[EntryPoint]:
    """Yield those of our group, without parsing everybody's as ``importlib.metadata`` does: it took 15 ms a start."""
    seen: set[str] = set()
    for folder in _distributions_with_packs():
        found = Distribution.at(folder)
        # As for an import, the first of two copies on the path counts.
        if found.name not in seen:
            seen.add(found.name)
            yield from found.entry_points.select(group=GROUP)


def _distributions_with_packs() -> Iterator[str]:
    for place in sys.path:
        with suppress(OSError):
            for entry in os.scandir(place or "."):
                if entry.name.endswith(".dist-info") and _mentions_packs(f"{entry.path}/entry_points.txt"):
                    yield entry.path


def _mentions_packs(file: str) -> bool:
    try:
        with open(file, "rb") as points:  # noqa: PTH123 - over a hundred files at every start: a Path takes four times as long
            return GROUP.encode() in points.read()
    except OSError:
        return False


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

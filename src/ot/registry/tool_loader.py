"""ToolLoader: finds packs by their files' names and reads their tools without importing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ot.errors import ToolUnavailable
from ot.registry.pack_source import PackSource
from ot.registry.signature import parameters_of_function, returns_of_function
from ot.registry.tool import Tool
from ot.registry.tool_registry import Pack, ToolRegistry

MAX_FILE_BYTES = 4 << 20


class ToolLoader:
    """Finds the bundled packs of a package directory: one file is one pack."""

    def __init__(self, directory: Path, package: str) -> None:
        """Look in *directory*, whose modules are imported as ``package.<name>`` when a tool is first called."""
        self._directory = directory
        self._package = package

    def packs(self) -> Iterator[Pack]:
        """Yield a pack for each file, from the file's name alone."""
        for file in sorted(self._directory.glob("[!_]*.py")):
            yield Pack(file.stem, "local", self._reader(file), origin=f"{self._package}.{file.stem}", bundled=True)

    def _reader(self, file: Path) -> Callable[[], Iterable[Tool]]:
        return lambda: read_pack_file(file, pack=file.stem, target=f"{self._package}.{file.stem}")


def read_pack_file(file: Path, *, pack: str, target: str) -> list[Tool]:
    """Return the tools that a pack's file declares.

    Raises:
        ToolUnavailable: The file is not a usable pack; the reason says why.
    """
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ToolUnavailable(pack, f"{file.name} is larger than {MAX_FILE_BYTES >> 20} MiB")
        source = file.read_bytes()
    except OSError as error:
        raise ToolUnavailable(pack, f"{file.name}: {error}") from None
    return PackSource(pack, file.name, source).tools(target=target)


def loaded_tool(registry: ToolRegistry, pack: str, name: str) -> Tool | None:
    """Return the tool ``pack.name``, its pack read now if it was not yet, or None when there is no such tool."""
    found = registry.packs.get(pack)
    return found.tools.get(name) if found and not found.broken else None


def tools_of_functions(
    pack: str, functions: Mapping[str, Callable[..., Any]], *, format: str | None = None
) -> list[Tool]:
    """Return tools for live functions that the server itself holds, such as those of the ``ot`` pack."""
    return [
        Tool(
            pack=pack,
            name=name,
            parameters=parameters_of_function(function),
            returns=returns_of_function(function),
            doc=_dedented_doc(function),
            target=f"{pack}:{name}",
            format=format,
            decorated=hasattr(function, "__wrapped__"),
        )
        for name, function in functions.items()
    ]


def _dedented_doc(function: Callable[..., Any]) -> str:
    import inspect  # noqa: PLC0415 - costs more than the rest of this module and only live functions need it

    return inspect.getdoc(function) or ""

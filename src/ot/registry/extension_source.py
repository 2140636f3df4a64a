"""Finds the packs that users write: ``tools/<pack>/<pack>_tools.py`` below a ``.onetool`` directory."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ot.config.snapshot import Snapshot, take_snapshot
from ot.errors import ToolUnavailable
from ot.registry.pack_source import PackSource
from ot.registry.pep723 import script_metadata, script_problem
from ot.registry.tool import Tool
from ot.registry.tool_registry import Pack

TOOLS = "tools"
RESERVED = frozenset({"ot", "proj"})


@dataclass(frozen=True)
class Extension:
    """One pack's directory as it was read; ``problem`` says why it cannot be used."""

    name: str
    directory: Path
    files: Mapping[str, bytes] = field(repr=False)
    of_project: bool = False
    problem: str = ""

    @property
    def main(self) -> str:
        """The file that is the pack."""
        return f"{self.name}_tools.py"

    @cached_property
    def source(self) -> PackSource:
        """The pack's file, parsed.

        Raises:
            ToolUnavailable: It is no usable pack.
        """
        if self.problem:
            raise ToolUnavailable(self.name, self.problem)
        source = PackSource(self.name, self.main, self.files[self.main])
        text = self.files[self.main].decode()
        if script_metadata(text) is None:
            raise ToolUnavailable(self.name, f"{self.main}: {script_problem(text)}")
        return source

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """The names of the secrets that the pack declares."""
        return self.source.required("secrets")

    def pack(self) -> Pack:
        """Return the pack, whose tools are carried out by a worker."""
        return Pack(self.name, "local", self._tools, origin=str(self.directory))

    def _tools(self) -> list[Tool]:
        return [replace(tool, backend="worker") for tool in self.source.tools(target=self.name)]


def extensions_of_user(global_dir: Path) -> list[Extension]:
    """Return the packs in the user's own directory, read now."""
    directory = global_dir / TOOLS
    try:
        folders = sorted(entry for entry in directory.iterdir() if not entry.name.startswith((".", "_")))
    except OSError:
        return []
    return [_of_snapshot(folder, take_snapshot(folder)) for folder in folders if folder.is_dir()]


def _of_snapshot(folder: Path, snapshot: Snapshot) -> Extension:
    return _checked(Extension(folder.name, folder, snapshot.contents, problem="; ".join(snapshot.problems[:3])))


def extensions_of_project(snapshot: Snapshot | None) -> list[Extension]:
    """Return the packs of a trusted project, made of the very bytes that were trusted."""
    if snapshot is None:
        return []
    packs: dict[str, dict[str, bytes]] = {}
    for name, data in snapshot.contents.items():
        root, _, rest = name.partition("/")
        pack, slash, file = rest.partition("/")
        if root == TOOLS and slash:
            packs.setdefault(pack, {})[file] = data
    places = ((name, snapshot.root / TOOLS / name, files) for name, files in packs.items())
    return [_checked(Extension(name, place, files, of_project=True)) for name, place, files in places]


def _checked(extension: Extension) -> Extension:
    problem = extension.problem or _wrong(extension)
    return replace(extension, problem=problem)


def _wrong(extension: Extension) -> str:
    name = extension.name
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        return f"'{name[:40]}' is not a Python name"
    if name in RESERVED:
        return f"'{name}' is a pack of OneTool itself"
    if extension.main not in extension.files:
        return f"{extension.main} is missing, is no plain file, or is larger than 1 MiB"
    return ""

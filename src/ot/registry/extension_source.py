"""Finds the packs that users write: ``<pack>_tools.py``, below a ``.onetool`` directory or named by its author."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ot.config.snapshot import Snapshot, take_snapshot
from ot.errors import ToolUnavailable
from ot.files.private_file import read_regular
from ot.registry.freshness import Stamp, stamps_below
from ot.registry.pack_needs import Needs
from ot.registry.pep723 import script_metadata, script_problem
from ot.registry.tool import Tool
from ot.registry.tool_loader import PackSource
from ot.registry.tool_registry import Pack

TOOLS = "tools"
SUFFIX = "_tools.py"
MAX_BYTES = 1 << 20
RESERVED = frozenset({"ot", "proj"})


@dataclass(frozen=True)
class Extension:
    """One pack's directory as it was read; ``problem`` says why it cannot be used."""

    name: str
    directory: Path
    files: Mapping[str, bytes] = field(repr=False)
    of_project: bool = False
    problem: str = ""
    bundled: bool = False
    state: str = ""
    """What tells its files from others without reading them, of a bundled pack."""
    find_needs: Callable[[], Needs] | None = field(default=None, repr=False, compare=False)
    """Finds what the pack's file lists in ``__ot_requires__`` without parsing it, of a bundled pack."""

    @property
    def main(self) -> str:
        """The file that is the pack."""
        return f"{self.name}{SUFFIX}"

    @cached_property
    def source(self) -> PackSource:
        """The pack's file, parsed; raises ToolUnavailable if it is no usable pack."""
        if self.problem:
            raise ToolUnavailable(self.name, self.problem)
        source = PackSource(self.name, self.main, self.files[self.main])
        text = self.files[self.main].decode()
        if script_metadata(text) is None:
            raise ToolUnavailable(self.name, f"{self.main}: {script_problem(text)}")
        return source

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """The names of the secrets that the pack declares, those that it can do without too."""
        return (*self.needs("secrets"), *self.needs("optional_secrets"))

    @cached_property
    def needs(self) -> Needs:
        """What gives the names that the pack lists under a kind of need."""
        return self.find_needs() if self.find_needs else self.source.read_requirements

    def pack(self) -> Pack:
        """Return the pack, whose tools are carried out by a worker."""
        return Pack(
            self.name, "local", self._tools, origin=str(self.directory), bundled=self.bundled, needs=self._needs
        )

    def _needs(self, kind: str) -> tuple[str, ...]:
        return self.needs(kind)

    def _tools(self) -> list[Tool]:
        return [replace(tool, backend="worker") for tool in self.source.tools(target=self.name)]


def extensions_of_user(global_dir: Path) -> list[Extension]:
    """Return the packs in the user's own directory, read now."""
    directory = global_dir / TOOLS
    try:
        folders = sorted(entry for entry in directory.iterdir() if not entry.name.startswith((".", "_")))
    except OSError:
        return []
    taken = ((folder, take_snapshot(folder)) for folder in folders if folder.is_dir())
    return [
        _check(Extension(folder.name, folder, found.contents, problem="; ".join(found.problems[:3])))
        for folder, found in taken
    ]


class UserPacks:
    """The packs in the user's own directory, read once per change for all who ask."""

    def __init__(self, global_dir: Path) -> None:
        """Look in *global_dir*, when somebody asks."""
        self._global_dir = global_dir
        self._known: tuple[Mapping[str, Stamp], Sequence[Extension]] | None = None
        """What was read, and the stamps from before: one value, as several threads ask."""

    def read(self) -> Sequence[Extension]:
        """Return the packs as they are now."""
        stamps, known = stamps_below(self._global_dir / TOOLS), self._known
        if known is None or known[0] != stamps:
            # Stamped before they are read: what changes meanwhile is noticed the next time.
            known = self._known = stamps, extensions_of_user(self._global_dir)
        return known[1]


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
    return [_check(Extension(name, place, files, of_project=True)) for name, place, files in places]


def _check(extension: Extension) -> Extension:
    return replace(extension, problem=extension.problem or _wrong(extension))


def _wrong(extension: Extension) -> str:
    name = extension.name
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        return f"'{name[:40]}' is not a Python name"
    if name in RESERVED:
        return f"'{name}' is a pack of OneTool itself"
    if extension.main not in extension.files:
        return f"{extension.main} is missing, is not a plain file, or is larger than 1 MiB"
    return ""


def pack_name_problem(name: str) -> str:
    """Return why no pack can be called *name*, or nothing."""
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name) or name.startswith("_"):
        return f"'{name[:40]}' cannot be a pack's name: use letters, digits and _, with a letter first"
    return f"'{name}' is a pack of OneTool itself: choose another name" if name in RESERVED else ""


def pack_name_of(file: Path) -> str:
    """Return the name of the pack that *file* is, or raise ToolUnavailable if it is not called like one."""
    name = file.name.removesuffix(SUFFIX)
    why = f"a pack's file is called <pack>{SUFFIX}" if name == file.name else pack_name_problem(name)
    if why:
        raise ToolUnavailable(file.name[:40], why)
    return name


def extension_of_file(file: Path, global_dir: Path) -> Extension:
    """Return the pack in *file*, read now, with what lies beside it in a directory of the pack's own.

    A pack outside of *global_dir* is given secrets as a project's is: of the user's, only those that were granted.

    Raises:
        ToolUnavailable: It is not called like a pack.
    """
    name = pack_name_of(file)
    of_project = not file.absolute().is_relative_to(global_dir.absolute())
    try:
        return Extension(name, file.parent, _files(name, file), of_project=of_project)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return Extension(name, file.parent, {}, of_project=of_project, problem=f"{file}: {why}")


def _files(name: str, file: Path) -> Mapping[str, bytes]:
    """Raises OSError or ValueError where the pack cannot be read."""
    main = read_regular(file, MAX_BYTES, follow=True).data
    if len(main) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
    if file.absolute().parent.name != name:
        return {file.name: main}  # what lies beside it may be a whole home directory
    beside = take_snapshot(file.parent)
    if beside.problems:
        raise ValueError("; ".join(beside.problems[:3]))
    return {**beside.contents, file.name: main}

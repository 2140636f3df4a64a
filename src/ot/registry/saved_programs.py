"""SavedProgram: a file of annotated functions that call packs as programs do; each public one is a tool.

Nothing of it is imported here: the engine that runs the caller's program runs it, too.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ot.config.snapshot import Snapshot
from ot.errors import ToolUnavailable
from ot.files.private_file import read_regular, write_new
from ot.registry.extension_source import RESERVED
from ot.registry.freshness import Stamp, stamp_of
from ot.registry.tool import Tool
from ot.registry.tool_loader import PackSource
from ot.registry.tool_registry import Pack
from ot.visible_text import printable

PROGRAMS = "programs"
"""The directory below ``.onetool``; of what lies in it, only the files that end in SUFFIX are programs."""
SUFFIX = ".py"
BACKEND = "saved"
MAX_BYTES = 64 << 10
MOST_FILES = 500
RUNS = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda, *(ast.ListComp, ast.GeneratorExp))
"""What an annotation cannot hold, whether or not it is evaluated."""
TAKEN = frozenset({*vars(builtins), *sys.stdlib_module_names})
"""Programs use these names without saying where they come from: a pack called like one would take its place."""


@dataclass(frozen=True, eq=False)
class SavedProgram:
    """One file as it was read; ``problem`` says why it cannot be used."""

    name: str
    file: Path
    data: bytes = field(repr=False)
    problem: str = ""

    @cached_property
    def text(self) -> str:
        """The file's text, with plain line ends; raises ToolUnavailable if it is not one that may be used."""
        if why := self.problem or text_problem(self.data):
            raise ToolUnavailable(self.name, f"{self.file.name}: {why}")
        return self.data.decode().replace("\r\n", "\n")

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """Its public functions as tools.

        Raises:
            ToolUnavailable: The file holds something else than functions, or cannot be read.
        """
        source = PackSource(self.name, self.file.name, self.text.encode())
        if why := next(_find_wrong(ast.parse(self.text)), ""):
            raise ToolUnavailable(self.name, f"{self.file.name}:{why}")
        return tuple(replace(tool, backend=BACKEND) for tool in source.tools(target=self.name))

    def pack(self) -> SavedPack:
        """Return the pack whose tools are its functions."""
        return SavedPack(self.name, "local", lambda: self.tools, origin=str(self.file), program=self)


@dataclass(frozen=True)
class SavedPack(Pack):
    """The pack that a saved program is."""

    program: SavedProgram = field(kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class EnteredProgram:
    """A call of a saved program that has passed the door: its function, and the arguments as the door bound them."""

    program: SavedProgram
    function: str
    arguments: dict[str, Any] = field(repr=False)


def name_problem(name: str) -> str:
    """Return why no saved program can be called *name*, or nothing."""
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name) or name.startswith("_"):
        return f"'{printable(name[:40])}' cannot be its name: use letters, digits and _, with a letter first"
    if name in TAKEN or name in RESERVED:
        return f"'{name}' is a name that every program knows: choose another"
    return ""


def text_problem(data: bytes) -> str:
    """Return why *data* is no text that people see as it is, or nothing."""
    if len(data) > MAX_BYTES:
        return f"it is larger than {MAX_BYTES >> 10} KiB"
    try:
        lines = data.decode().replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        return f"it is not UTF-8: {error.reason}"
    for number, line in enumerate(lines, 1):
        plain = line.replace("\t", " ")
        if printable(plain) != plain:
            return f"line {number} holds a character that cannot be seen: {printable(plain)[:200]}"
    return ""


def _find_wrong(tree: ast.Module) -> Iterator[str]:
    """Yield what a saved program cannot hold, with its line: whatever would run before one of its functions does."""
    for node in tree.body:
        match node:
            case ast.Import() | ast.Expr(ast.Constant(str())):
                continue
            case ast.ImportFrom(level=level, names=names):
                if level or any(alias.name == "*" for alias in names):
                    yield f"{node.lineno}: it can import names from modules of Python, and no star"
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _find_wrong_in_head(node)
            case ast.Assign([ast.Name()], value) if _is_literal(value):
                continue
            case _:
                yield f"{node.lineno}: outside its functions it can hold imports and constants only"
    for node in ast.walk(tree):
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield f"{node.lineno}: '{type(node).__name__.lower()}' is not for saved programs: return what you found"


def _find_wrong_in_head(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    given = node.args
    arguments = [*given.args, *given.kwonlyargs, *([given.kwarg] if given.kwarg else [])]
    annotations = filter(None, [node.returns, *(argument.annotation for argument in arguments)])
    if given.posonlyargs or given.vararg:
        yield f"{node.lineno}: the parameters of {node.name}() must be such as can be given by name"
    if node.decorator_list or node.type_params:
        yield f"{node.lineno}: {node.name}() has a decorator or type parameters, which would run before it does"
    if not all(map(_is_literal, filter(None, [*given.defaults, *given.kw_defaults]))):
        yield f"{node.lineno}: a default of {node.name}() is not written out"
    if any(isinstance(part, RUNS) for annotation in annotations for part in ast.walk(annotation)):
        yield f"{node.lineno}: an annotation of {node.name}() is no type"
    if not node.name.isascii() or any(not argument.arg.isascii() for argument in arguments):
        yield f"{node.lineno}: names of functions and parameters are written in ASCII"


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


# ---------------------------------------------------------------- where they lie


def new_program(global_dir: Path, name: str, text: str, taken: Collection[str]) -> SavedProgram:
    """Return the saved program that *text* would be in the user's directory; it is not written yet.

    Raises:
        ToolUnavailable: It could not be used; the text says why.
        FileExistsError: Something has its name already; it is left as it is.
    """
    program = SavedProgram(name, global_dir / PROGRAMS / f"{name}{SUFFIX}", text.encode(), name_problem(name))
    if not program.tools:
        raise ToolUnavailable(name, "it has no public function")
    if name in taken:
        raise ToolUnavailable(name, f"'{name}' is a pack already: choose another name")
    if os.path.lexists(program.file):
        raise FileExistsError(f"{program.file} is there already and was left as it is: choose another name")
    return program


def write_program(program: SavedProgram) -> None:
    """Write a new program, readable by its user alone; raise OSError if anything has its name meanwhile."""
    if program.file.parent.is_symlink():
        raise FileExistsError(f"{program.file.parent} is a link")
    write_new(program.file, program.text.encode())


class SavedProgramFiles:
    """Reads the user's saved programs once for all workspaces, and a file again when it has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Stamp, SavedProgram]] = {}

    def read(self, directory: Path) -> list[SavedProgram]:
        """Return those in *directory*, as they are now."""
        try:
            files = sorted(file for file in directory.iterdir() if file.name.endswith(SUFFIX) and file.name[0] != "_")
        except OSError:
            return []
        return [self._program(file) for file in files[:MOST_FILES]]

    def _program(self, file: Path) -> SavedProgram:
        stamp, known = stamp_of(file), self._known.get(file)
        if known is None or known[0] != stamp:
            known = self._known[file] = stamp, _read(file)
        return known[1]


def _read(file: Path) -> SavedProgram:
    name = file.name.removesuffix(SUFFIX)
    try:
        found = read_regular(file, MAX_BYTES, follow=False)
    except OSError as error:
        return SavedProgram(name, file, b"", error.strerror or str(error))
    return SavedProgram(name, file, found.data, "other users can write it" if found.writable_by_others else "")


def programs_of_project(snapshot: Snapshot | None) -> list[SavedProgram]:
    """Return the saved programs of a trusted project, made of the very bytes that were trusted."""
    files = {path: path.removeprefix(f"{PROGRAMS}/") for path in snapshot.contents} if snapshot else {}
    return [
        SavedProgram(file.removesuffix(SUFFIX), snapshot.root / path, snapshot.contents[path])
        for path, file in files.items()
        if snapshot and file != path and file.endswith(SUFFIX) and "/" not in file and file[0] != "_"
    ][:MOST_FILES]


def leave_out_taken(
    programs: Iterable[SavedProgram], taken: Collection[str]
) -> tuple[dict[str, SavedProgram], list[str]]:
    """Return the programs by name that take no other pack's place, the first of a name; and notes on the others."""
    kept: dict[str, SavedProgram] = {}
    notes: list[str] = []
    for program in programs:
        taken_by = "it is a pack already" if program.name in taken or program.name in kept else ""
        if why := name_problem(program.name) or taken_by:
            notes.append(f"the saved program {printable(str(program.file))} is left out: {why}")
        else:
            kept[program.name] = program
    return kept, notes

"""Saved programs in Monty: fed before the program that calls them, as functions with names of their own."""

from __future__ import annotations

import ast
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ot.errors import Gap
from ot.registry.saved_programs import EnteredProgram, SavedProgram
from ot.runtime.engines.engine import Reach
from ot.runtime.engines.portable.gaps import find_gaps
from ot.runtime.engines.portable.portable_files import without_default_encoding
from ot.runtime.engines.portable.refusals import with_finished_values
from ot.runtime.engines.saved_calls import MOST_READ, is_async, packs_in, read_saved
from ot.runtime.program import Edit, Program, indent_lines, parse_program

PREFIX = "_ot_000000000000_"
"""Stands for the prefix of one run, as long as this: a program that knew it could run a function past the door."""
BY_NAME = "the portable engine runs a saved program where it is called by its name: {name}.{function}(...)"
WRAPPERS = f"""{PREFIX}all = {{}}
def {PREFIX}now(call):
    if call[3]:
        import asyncio
        return asyncio.run({PREFIX}all[call[0]][call[1]](**call[2]))
    return {PREFIX}all[call[0]][call[1]](**call[2])
async def {PREFIX}later(call):
    if call[3]:
        return await {PREFIX}all[call[0]][call[1]](**call[2])
    return {PREFIX}all[call[0]][call[1]](**call[2])
"""


@dataclass(frozen=True, eq=False)
class FedProgram:
    """A saved program as Monty is fed it: within a function, one line further down, its packs handed in."""

    saved: SavedProgram
    program: Program
    packs: tuple[str, ...]
    entered: frozenset[tuple[int, int]]

    def place(self, line: int) -> tuple[str, int, str]:
        """Return file, number and text of a line that Monty names."""
        return self.saved.file.name, line - 1, read_saved(self.saved).line(line - 1)


def saved_in(program: Program, reach: Reach, hidden: Collection[str] = ()) -> dict[str, SavedProgram]:
    """Return the saved programs that *program* uses, and those that they use, by name."""
    found: dict[str, SavedProgram] = {}
    waiting = [*(program.loads - program.binds).difference(hidden)]
    while waiting:
        name = waiting.pop()
        if name not in found and (saved := reach.saved(name)):
            found[name] = saved
            waiting += read_saved(saved).loads
    return found


def find_saved_gaps(program: Program, reach: Reach) -> list[Gap]:
    """Return what Monty lacks that the saved programs use, at the lines of *program* that name them."""
    found: list[Gap] = []
    for name, saved in saved_in(program, reach).items():
        line = next((node.lineno for node in program.nodes_of(ast.Name) if node.id == name), 1)
        gaps = _gaps_of(saved, tuple(packs_in(read_saved(saved).loads, reach)))
        found += [Gap(line, f"{saved.file.name} line {gap.line}: {gap.what}", gap.instead) for gap in gaps]
    return found


@lru_cache(maxsize=MOST_READ)
def _gaps_of(saved: SavedProgram, packs: tuple[str, ...]) -> list[Gap]:
    return find_gaps(with_finished_values(read_saved(saved), packs).nodes, packs)


class SavedFunctions:
    """What Monty is fed before one program, for its calls of saved programs; nothing where it has none."""

    def __init__(self, program: Program, reach: Reach, hidden: Collection[str]) -> None:
        """Find the saved programs that *program* uses; names that are *hidden* mean something else."""
        self._saved = saved_in(program, reach, hidden)
        self._prefix = f"_ot_{secrets.token_hex(6)}_" if self._saved else PREFIX
        self._reach = reach

    @property
    def names(self) -> set[str]:
        """The names that the saved programs use."""
        return {name for saved in self._saved.values() for name in read_saved(saved).names}

    def enter_calls(self, program: Program) -> tuple[Program, frozenset[tuple[int, int]]]:
        """Return *program* with the run of the function around each call of one, and where those calls stand."""
        if not self._saved:
            return program, frozenset()
        changed, entered = _enter_calls(program, self._saved)
        source = changed.source.replace(PREFIX, self._prefix)
        return replace(changed, source=source, tree=parse_program(source, max_bytes=1 << 30).tree), entered

    def fed(self) -> list[tuple[str, FedProgram | None]]:
        """Return the texts that are fed first, each with the saved program that it defines."""
        others = tuple(sorted(self._saved.items()))
        found: list[tuple[str, FedProgram | None]] = [(WRAPPERS, None)] if others else []
        for _, saved in others:
            program = read_saved(saved)
            fed = _feed(saved, tuple(packs_in(program.loads - program.binds, self._reach)), others)
            found.append((fed.program.source, fed))
        return [(text.replace(PREFIX, self._prefix), fed) for text, fed in found]


def entrance(entered: EnteredProgram) -> list[Any]:
    """Return what the wrappers get for a call that has passed the door."""
    saved, function = entered.program, entered.function
    return [saved.name, function, entered.arguments, is_async(saved, function)]


@lru_cache(maxsize=MOST_READ)
def _feed(saved: SavedProgram, packs: tuple[str, ...], others: tuple[tuple[str, SavedProgram], ...]) -> FedProgram:
    ready = with_finished_values(without_default_encoding(read_saved(saved)), packs)
    program, _ = _enter_calls(ready, dict(others))
    before = "".join(f"{text}\n" for _, text in program.prelude).replace("\n", "\n ")
    functions = ", ".join(f"{tool.name!r}: {tool.name}" for tool in saved.tools)
    make, given = f"{PREFIX}make", ", ".join(packs)
    text = f"def {make}({given}):\n{indent_lines(program.source, ' ')}\n {before}\n return {{{functions}}}\n"
    fed = parse_program(f"{text}{PREFIX}all[{saved.name!r}] = {make}({given})\n", max_bytes=1 << 30)
    return FedProgram(saved, fed, packs, _find_entered(fed))


def _enter_calls(program: Program, saved: Mapping[str, SavedProgram]) -> tuple[Program, frozenset[tuple[int, int]]]:
    edits: list[Edit] = []
    for call in program.nodes_of(ast.Call):
        match call.func:
            case ast.Attribute(ast.Name(name)) if name in saved and name not in program.binds:
                start, end = span = program.span(call)
                wrapper = "later" if span in program.awaited else "now"
                edits += [(start, start, f"{PREFIX}{wrapper}("), (end, end, ")")]
            case _:
                continue
    changed = program.edit(edits) if edits else program
    return changed, _find_entered(changed)


def _find_entered(program: Program) -> frozenset[tuple[int, int]]:
    calls = program.nodes_of(ast.Call)
    wrappers = (f"{PREFIX}now", f"{PREFIX}later")
    return frozenset(
        program.span(call.args[0]) for call in calls if isinstance(call.func, ast.Name) and call.func.id in wrappers
    )

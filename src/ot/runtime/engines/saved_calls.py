"""Saved programs as engines want them: parsed, and called where there is no program that calls them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from ot.errors import CommandTooLong, InvalidSyntax, ToolUnavailable
from ot.registry.saved_programs import EnteredProgram, SavedProgram
from ot.runtime.engines.engine import Reach
from ot.runtime.program import Program, parse_program

MOST_READ = 256


@lru_cache(maxsize=MOST_READ)
def read_saved(saved: SavedProgram) -> Program:
    """Return the text of *saved*, parsed once.

    Raises:
        ToolUnavailable: It cannot be used.
    """
    try:
        return parse_program(saved.text)
    except (CommandTooLong, InvalidSyntax) as error:
        raise ToolUnavailable(saved.name, f"{saved.file.name}: {error}") from None


def is_async(saved: SavedProgram, function: str) -> bool:
    """Return whether *function* of *saved* is one that has to be awaited."""
    return any(isinstance(node, ast.AsyncFunctionDef) and node.name == function for node in read_saved(saved).tree.body)


def packs_in(names: Iterable[str], reach: Reach) -> list[str]:
    """Return those of *names* that are packs."""
    return [name for name in sorted(names) if reach.has_pack(name)]


def calling_program(entered: EnteredProgram) -> Program:
    """Return the program that is nothing but this call."""
    waits = "await " if is_async(entered.program, entered.function) else ""
    return parse_program(f"{waits}{entered.program.name}.{entered.function}()")

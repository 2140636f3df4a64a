"""Lets asyncio take values of calls that were made before, as far as a program's text shows them: Monty takes none."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace

from ot.runtime.engines.portable.gaps.names import Names
from ot.runtime.program import Edit, Program

ROW = "finished-value"
"""The name of this in the table of tolerances."""
VALUE = "__ot_value__"
DEFINITION = (VALUE, f"async def {VALUE}(value):\n    return value")
TAKE_ONE = frozenset({"asyncio.create_task", "asyncio.ensure_future", "asyncio.wait_for"})
SEQUENCES = (ast.List, ast.Tuple)
COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp)


def with_finished_values(program: Program, packs: Collection[str]) -> Program:
    """Return *program* with values that asyncio is given made coroutines that give them."""
    if "asyncio" not in program.source and "await" not in program.source:
        return program
    found = _Found(program, Names(program.nodes, packs))
    edits = list(found.edits())
    if not edits:
        return program
    rows = (*program.tolerated, ROW)
    return replace(program.edited(edits), prelude=(*program.prelude, DEFINITION), tolerated=rows)


class _Found:
    """What a program gives to asyncio that has its value already."""

    def __init__(self, program: Program, names: Names) -> None:
        self._program = program
        self._names = names

    def edits(self) -> Iterator[Edit]:
        for node in self._names.of(ast.Await):
            if isinstance(node.value, ast.Name) and self._is_value(node.value):
                yield from self._around(node.value, f"{VALUE}(", ")")
        for call, path in self._names.calls:
            if path in TAKE_ONE and call.args and self._is_value(call.args[0]):
                yield from self._instead(call, call.args[0], f"{VALUE}(", ")")
            elif path == "asyncio.as_completed" and call.args and self._is_list(call.args[0]):
                yield from self._instead(call, call.args[0], f"[{VALUE}(__ot_item__) for __ot_item__ in ", "]")
            elif path == "asyncio.gather":
                yield from self._gathered(call)
        for node in self._names.of(ast.Attribute):
            if self._names.path(node) == "asyncio.TimeoutError":  # another name of the same class
                yield (*self._program.span(node), "TimeoutError")

    def _gathered(self, call: ast.Call) -> Iterator[Edit]:
        for given in call.args:
            if isinstance(given, ast.Name) and self._is_value(given):
                yield from self._around(given, f"{VALUE}(", ")")
            elif isinstance(given, ast.Starred) and isinstance(given.value, ast.Name) and self._is_list(given.value):
                yield from self._around(given.value, f"[{VALUE}(__ot_item__) for __ot_item__ in ", "]")

    def _is_value(self, expr: ast.expr) -> bool:
        """Whether *expr* is a call of a tool that is not awaited, or the only thing that a variable ever is."""
        if isinstance(expr, ast.Name):
            expr = self._names.only_value(expr) or expr
        is_call = isinstance(expr, ast.Call) and self._names.is_pack(expr.func)
        return is_call and self._program.span(expr) not in self._program.awaited

    def _is_list(self, expr: ast.expr) -> bool:
        if isinstance(expr, ast.Name):
            expr = self._names.only_value(expr) or expr
        if isinstance(expr, COMPREHENSIONS):
            return self._is_value(expr.elt)
        return isinstance(expr, SEQUENCES) and all(map(self._is_value, expr.elts))

    def _around(self, expr: ast.expr, before: str, after: str) -> Iterator[Edit]:
        start, end = self._program.span(expr)
        yield start, start, before
        yield end, end, after

    def _instead(self, call: ast.Call, expr: ast.expr, before: str, after: str) -> Iterator[Edit]:
        start, end = self._program.span(call)
        first, last = self._program.span(expr)
        yield start, first, before
        yield last, end, after

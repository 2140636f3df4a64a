"""The text of a saved program that does what a run's program did."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator, Mapping
from typing import Any

from ot.runtime.program import Edit, Program, indent_lines
from ot_sdk.redaction import MARK


def write_function(program: Program, name: str, parameters: Mapping[str, Any], run: str) -> str:
    """Return a file with the function *name* that does what *program* does; *parameters* are its literals by name.

    Raises:
        ValueError: It cannot be a function, or a parameter stands for nothing in it.
    """
    if MARK in program.source:
        raise ValueError("a secret was taken out of it: have its tools read the secret themselves")
    if program.nodes_of(ast.Global, ast.Nonlocal):
        raise ValueError("it uses global or nonlocal, which is not for saved programs")
    edits = [edit for given, value in parameters.items() for edit in _replace_literals(program, given, value)]
    last, ending = program.tree.body[-1] if program.tree.body else None, ""
    if isinstance(last, ast.Expr):
        start, _ = program.span(last)
        edits.append((start, start, "return "))
    elif isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name) and not program.returns:
        ending = f"\n    return {last.targets[0].id}"
    declared = ", ".join(f"{given}: {_annotation(value)} = {value!r}" for given, value in parameters.items())
    head = f"{'async ' * program.waits}def {name}({declared}):"
    doc = f'    """Do what run {run} did{_with_tools(program)}."""'
    body = program.edit(edits).source if edits else program.source
    return f"{head}\n{doc}\n{indent_lines(body, '    ').rstrip()}{ending}\n"


def _replace_literals(program: Program, name: str, value: Any) -> Iterator[Edit]:
    """Yield the edits that put *name* in the place of each literal that is *value*."""
    if (
        not name.isidentifier()
        or not name.isascii()
        or keyword.iskeyword(name)
        or name in program.loads | program.binds
    ):
        raise ValueError(f"'{name[:40]}' cannot be a parameter: it is no name, or the program uses it already")
    written = repr(value)
    skipped = {id(part) for node in program.nodes_of(ast.JoinedStr) for part in node.values}
    skipped |= {id(node.value) for node in program.nodes_of(ast.MatchValue)}
    found = [
        node
        for node in program.nodes_of(ast.Constant, ast.UnaryOp, ast.List, ast.Tuple, ast.Dict, ast.Set)
        if id(node) not in skipped and _is_written(node, written)
    ]
    if not found:
        raise ValueError(f"it holds no {written[:80]} that '{name}' could stand for")
    yield from ((*program.span(node), name) for node in found)


def _is_written(node: ast.expr, written: str) -> bool:
    try:
        return repr(ast.literal_eval(node)) == written
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False


def _annotation(value: Any) -> str:
    return "object" if value is None else type(value).__name__


def _with_tools(program: Program) -> str:
    found = dict.fromkeys(
        f"{node.func.value.id}.{node.func.attr}"
        for node in program.nodes_of(ast.Call)
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
        and node.func.value.id not in program.binds
    )  # fmt: skip
    return f", with {', '.join([*found][:5])}" if found else ""

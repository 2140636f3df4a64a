"""The names that a program assigns outside functions: those that a session has afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator

SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


def assigned_names(tree: ast.Module) -> set[str]:
    """Return the names; whether each assignment is reached is not known."""
    names: set[str] = set()
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        names.update(_names(node))
        if not isinstance(node, SCOPES):
            todo.extend(ast.iter_child_nodes(node))
    return {name for name in names if not name.startswith("__")}


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=asname) if name != "*":
            yield asname or name.partition(".")[0]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
        case _:
            return

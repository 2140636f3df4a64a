"""PackSource: what a pack's file declares, read from its syntax tree and never by running it."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator, Mapping
from typing import Any

from ot.errors import ToolUnavailable
from ot.registry.signature import parameters_of_node
from ot.registry.tool import Tool


class PackSource:
    """A pack's file, parsed."""

    def __init__(self, pack: str, file: str, source: bytes) -> None:
        """Parse *source*, the content of *file*.

        Raises:
            ToolUnavailable: It is no usable pack; the reason says why.
        """
        self._pack = pack
        tree = _parse(pack, file, source)
        self._constants = _constants(tree)
        _check_name(self._constants, pack)
        self._functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_overload(node):
                self._functions.setdefault(node.name, []).append(node)

    def tools(self, *, target: str) -> list[Tool]:
        """Return the pack's public functions as tools, to be called as ``target:name``; one defined twice comes twice.

        Raises:
            ToolUnavailable: ``__all__``, or what marks functions, is not a list of functions.
        """
        destructive, read_only = self._marked("__ot_destructive__"), self._marked("__ot_read_only__")
        return [
            Tool(
                pack=self._pack,
                name=name,
                parameters=parameters_of_node(node),
                returns=ast.unparse(node.returns) if node.returns else "",
                doc=ast.get_docstring(node) or "",
                target=f"{target}:{name}",
                destructive=name in destructive,
                read_only=name in read_only or None,
                decorated=bool(node.decorator_list),
            )
            for name in dict.fromkeys(_public_names(self._constants, self._functions, self._pack))
            for node in self._functions[name]
        ]

    def _marked(self, mark: str) -> frozenset[str]:
        """Return the functions that the file names in *mark*; a mark that cannot be read must not pass silently."""
        names: Any = self._constants.get(mark, ())
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) and n in self._functions for n in names):  # pyright: ignore[reportUnknownVariableType] - a literal of any shape
            raise ToolUnavailable(self._pack, f"{mark} must be a list of names of the file's functions, written out")
        return frozenset(names)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - checked above

    def required(self, kind: str) -> tuple[str, ...]:
        """Return what ``__ot_requires__`` lists under *kind*.

        Raises:
            ToolUnavailable: It is not a literal dict of lists of names.
        """
        needs: Any = self._constants.get("__ot_requires__", {})
        names: Any = needs.get(kind, []) if isinstance(needs, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - a literal of any shape
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):  # pyright: ignore[reportUnknownVariableType] - as above
            raise ToolUnavailable(self._pack, f'__ot_requires__ must be like {{"{kind}": ["NAME"]}}, written out')
        return tuple(names)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - checked above


def _parse(pack: str, file: str, source: bytes) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise ToolUnavailable(pack, f"{file}:{error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ToolUnavailable(pack, f"{file}: {error}") from None


def _is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(mark).rpartition(".")[2] == "overload" for mark in node.decorator_list)


class Computed:
    """What stands for a value that is not a literal: it is not evaluated."""

    def __repr__(self) -> str:
        return "a computed value"


def _constants(tree: ast.Module) -> dict[str, Any]:
    """Return what the file assigns to ``pack``, ``__all__`` and the names that begin with ``__ot_``."""
    return {
        name: _literal(value)
        for node in tree.body
        for name, value in _assigned(node)
        if name in ("pack", "__all__", "__ot_requires__", "__ot_destructive__", "__ot_read_only__")
    }


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.AugAssign(target=ast.Name(id=name)):
            yield name, None
        case _:
            return


def _literal(node: ast.expr | None) -> Any:
    try:
        return ast.literal_eval(node) if node else Computed()
    except (ValueError, TypeError, MemoryError, RecursionError):
        return Computed()


def _check_name(constants: Mapping[str, Any], pack: str) -> None:
    declared = constants.get("pack", pack)
    if declared != pack:
        raise ToolUnavailable(pack, f"its file says pack = {declared!r}, its name says '{pack}'")
    if not pack.isidentifier() or keyword.iskeyword(pack):
        raise ToolUnavailable(pack, "its name is not a Python name")


def _public_names(constants: Mapping[str, Any], functions: Mapping[str, Any], pack: str) -> list[str]:
    names: Any = constants.get("__all__")
    if names is None:
        return [name for name in functions if not name.startswith("_")]
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):  # pyright: ignore[reportUnknownVariableType] - a literal of any shape
        raise ToolUnavailable(pack, "__all__ must be a list of names")
    missing = [name for name in names if name not in functions]  # pyright: ignore[reportUnknownVariableType] - checked above
    if missing:
        raise ToolUnavailable(pack, f"__all__ names '{missing[0]}', which the file does not define as a function")
    return list(names)  # pyright: ignore[reportUnknownArgumentType] - checked above

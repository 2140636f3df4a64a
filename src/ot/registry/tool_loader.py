"""ToolLoader: finds packs by their files' names and reads their tools from the syntax tree, without importing them."""

from __future__ import annotations

import ast
import inspect
import keyword
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from ot.errors import ToolUnavailable
from ot.registry.pack_needs import read_needs
from ot.registry.tool import Tool, parameters_of_function, parameters_of_node, returns_of_function
from ot.registry.tool_registry import Pack, ToolRegistry

MAX_FILE_BYTES = 4 << 20
MARKS = ("__ot_destructive__", "__ot_read_only__", "__ot_pure__")
"""The lists in which a file may name functions of its own."""
NEEDS = "__ot_needs__"
"""By function, the tools of any pack whose permission it needs."""


class ToolLoader:
    """Finds the bundled packs of a package directory: one file is one pack."""

    def __init__(self, directory: Path, package: str) -> None:
        """Look in *directory*, whose modules are imported as ``package.<name>`` when a tool is first called."""
        # Listed once: an installer that replaces the files must not leave a server with half of them.
        self._files = sorted(directory.glob("[!_]*.py"))
        self._package = package

    def packs(self) -> Iterator[Pack]:
        """Yield a pack for each file, from the file's name alone."""
        for file in self._files:
            origin = f"{self._package}.{file.stem}"
            yield Pack(file.stem, "local", self._reader(file), origin, bundled=True, needs=partial(_needs, file))

    def _reader(self, file: Path) -> Callable[[], Iterable[Tool]]:
        return lambda: read_pack_file(file, pack=file.stem, target=f"{self._package}.{file.stem}")


def _needs(file: Path, kind: str) -> tuple[str, ...]:
    return read_needs(file.read_text(encoding="utf-8"))(kind)


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


def load_tool(registry: ToolRegistry, pack: str, name: str) -> Tool | None:
    """Return the tool ``pack.name``, its pack read now if it was not yet, or None when there is no such tool."""
    found = registry.packs.get(pack)
    return found.tools.get(name) if found and not found.broken else None


def tools_of_functions(
    pack: str,
    functions: Mapping[str, Callable[..., Any]],
    *,
    format: str | None = None,
    destructive: Collection[str] = (),
) -> list[Tool]:
    """Return tools for live functions that the server itself holds, such as those of the ``ot`` pack."""
    return [
        Tool(
            pack=pack,
            name=name,
            parameters=parameters_of_function(function),
            returns=returns_of_function(function),
            doc=inspect.getdoc(function) or "",
            target=f"{pack}:{name}",
            format=format,
            destructive=name in destructive,
            decorated=hasattr(function, "__wrapped__"),
        )
        for name, function in functions.items()
    ]


class PackSource:
    """A pack's file, parsed."""

    def __init__(self, pack: str, file: str, source: bytes) -> None:
        """Parse *source*, the content of *file*; raise ToolUnavailable, with the reason, if it is no usable pack."""
        self._pack = pack
        tree = _parse(pack, file, source)
        self._constants = _constants(tree)
        self._types = find_named_types(tree)
        _check_name(self._constants, pack)
        self._functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_overload(node):
                self._functions.setdefault(node.name, []).append(node)

    def tools(self, *, target: str) -> list[Tool]:
        """Return the pack's public functions as tools, to be called as ``target:name``; one defined twice comes twice.

        Raises:
            ToolUnavailable: ``__all__``, what marks functions, or what they need is malformed.
        """
        destructive, read_only, pure = map(self._read_mark, MARKS)
        needs = self._read_needs()
        return [
            Tool(
                pack=self._pack,
                name=name,
                parameters=parameters_of_node(node, lambda part: write_type(part, self._types)),
                returns=write_type(node.returns, self._types),
                doc=ast.get_docstring(node) or "",
                target=f"{target}:{name}",
                destructive=name in destructive,
                read_only=name in read_only or None,
                decorated=bool(node.decorator_list),
                pure=name in pure and isinstance(node, ast.FunctionDef),
                needs=needs.get(name, ()),
            )
            for name in dict.fromkeys(_public_names(self._constants, self._functions, self._pack))
            for node in self._functions[name]
        ]

    def _read_mark(self, mark: str) -> frozenset[str]:
        """Return the functions that the file names in *mark*; a mark that cannot be read must not pass silently."""
        names = _names(self._constants.get(mark, ()))
        if names is None or not self._functions.keys() >= set(names):
            raise ToolUnavailable(self._pack, f"{mark} must be a list of names of the file's functions, written out")
        return frozenset(names)

    def _read_needs(self) -> dict[str, tuple[str, ...]]:
        """Return the tools whose permission each function needs; what cannot be read must not pass silently."""
        found: object = self._constants.get(NEEDS, {})
        listed = cast("dict[object, object]", found) if isinstance(found, dict) else {None: None}
        needs = {str(name): tools for name, value in listed.items() if (tools := _names(value)) is not None}
        is_sound = len(needs) == len(listed) and self._functions.keys() >= needs.keys()
        if not is_sound or not all(_is_full_name(tool) for tools in needs.values() for tool in tools):
            like = '{"function": ["pack.tool"]}, with functions of the file, written out'
            raise ToolUnavailable(self._pack, f"{NEEDS} must be like {like}")
        return needs

    def read_requirements(self, kind: str) -> tuple[str, ...]:
        """Return the list under *kind* in ``__ot_requires__``.

        Raises:
            ToolUnavailable: It is not a literal dict of lists of names.
        """
        needs: Any = self._constants.get("__ot_requires__", {})
        names = _names(needs.get(kind, [])) if isinstance(needs, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - a literal of any shape
        if names is None:
            raise ToolUnavailable(self._pack, f'__ot_requires__ must be like {{"{kind}": ["NAME"]}}, written out')
        return names


def _names(value: object) -> tuple[str, ...] | None:
    """Return the names in a list that a file has written out; None when it is anything else."""
    found = tuple(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else (None,)
    names = tuple(name for name in found if isinstance(name, str))
    return names if len(names) == len(found) else None


def _is_full_name(tool: str) -> bool:
    pack, _, name = tool.partition(".")
    return pack.isidentifier() and name.isidentifier()


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
    """Return the file's values of ``pack``, ``__all__`` and the names that begin with ``__ot_``."""
    return {
        name: _literal(value)
        for node in tree.body
        for name, value in _find_assigned(node)
        if name in ("pack", "__all__", "__ot_requires__", NEEDS, *MARKS)
    }


def _find_assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
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
    if constants.get("__all__") is None:
        return [name for name in functions if not name.startswith("_")]
    names = _names(constants["__all__"])
    if names is None:
        raise ToolUnavailable(pack, "__all__ must be a list of names")
    missing = [name for name in names if name not in functions]
    if missing:
        raise ToolUnavailable(pack, f"__all__ names '{missing[0]}', which the file does not define as a function")
    return list(names)


# ---------------------------------------------------------------- types as a file writes them

MAX_DEPTH = 3
PLAIN_NAMES = {"List": "list", "Dict": "dict", "Tuple": "tuple", "Set": "set"}


type Named = ast.ClassDef | ast.expr
"""A TypedDict, or what another name of a type stands for."""


def find_named_types(tree: ast.Module) -> dict[str, Named]:
    """Return the classes of a file that are TypedDicts, or begin as one of the file, and its other names of types."""
    found: dict[str, Named] = {}
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name, bases=bases) if any(_last(base) in ("TypedDict", *found) for base in bases):
                found[name] = node
            case ast.TypeAlias(name=ast.Name(id=name), value=value, type_params=[]):
                found[name] = value
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript(value=kind) as value) if (
                _last(kind) == "Literal"
            ):
                found[name] = value
            case _:
                pass
    return found


def write_type(annotation: ast.expr | None, named: Mapping[str, Named]) -> str:
    """Return *annotation* as a reader wants it: ``List[Listed]`` is ``list[{path: str, size: int}]``."""
    return _text(annotation, named, MAX_DEPTH) if annotation is not None else ""


def _text(node: ast.expr, records: Mapping[str, Named], depth: int) -> str:
    match node:
        case ast.Name(id=name) if name in records and depth > 0:
            found = records[name]
            if isinstance(found, ast.expr):
                return _text(found, records, depth - 1)
            return "{" + ", ".join(_keys(found, records, depth - 1)) + "}"
        case ast.Name(id=name):
            return "dict" if isinstance(records.get(name), ast.ClassDef) else PLAIN_NAMES.get(name, name)
        case ast.Subscript(value=value, slice=ast.Tuple(elts=parts)):
            return f"{_text(value, records, 0)}[{', '.join(_text(part, records, depth) for part in parts)}]"
        case ast.Subscript(value=value, slice=part):
            return f"{_text(value, records, 0)}[{_text(part, records, depth)}]"
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return f"{_text(left, records, depth)} | {_text(right, records, depth)}"
        case _:
            return ast.unparse(node)


def _keys(record: ast.ClassDef, records: Mapping[str, Named], depth: int) -> Iterator[str]:
    for base in record.bases:
        # A class can only begin as one that stands before it, so this ends.
        if isinstance(first := records.get(_last(base)), ast.ClassDef) and first.lineno < record.lineno:
            yield from _keys(first, records, depth)
    partial = any(word.arg == "total" and ast.unparse(word.value) == "False" for word in record.keywords)
    for node in record.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            kind, optional = _without_mark(node.annotation)
            yield f"{node.target.id}{'?' * (optional or partial)}: {_text(kind, records, depth)}"


def _without_mark(annotation: ast.expr) -> tuple[ast.expr, bool]:
    if isinstance(annotation, ast.Subscript) and _last(annotation.value) in ("NotRequired", "Required"):
        return annotation.slice, _last(annotation.value) == "NotRequired"
    return annotation, False


def _last(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2] if isinstance(node, ast.Name | ast.Attribute) else ""

"""Iterators, which are lists in the portable engine, values that leave a program as text, and tool calls in either."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ot.errors import Gap
from ot.runtime.engines.portable.gaps.names import PACK, Names
from ot.runtime.engines.portable.gaps.rules import (
    CALLBACKS,
    ENDLESS,
    METHODS_THAT_TAKE_ALL,
    SPECIAL_METHODS_LACKING,
    SPECIAL_METHODS_THAT_WAIT,
    TAKE_ALL,
    TELL_LISTS_APART,
    gap,
)
from ot.runtime.program import outside_functions

_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NOT_DATA = {"view": ".keys(), .values() or .items()", "range": "range()", "iterator": "an iterator"}


# ---------------------------------------------------------------- lists for iterators


def tell_lists_apart(names: Names) -> Iterator[Gap]:
    """Yield calls that tell a list from the iterator that CPython has in its place."""
    for call, path in names.calls:
        if call.args and path in TELL_LISTS_APART and names.kind(call.args[0]) == "lazy":
            yield gap(call, "generator as iterator", name=f"{path}()")
        elif call.args and path == "iter" and isinstance(call.args[0], ast.GeneratorExp):
            yield gap(call, "generator as iterator", name="iter()")


def items_of_iterators(names: Names) -> Iterator[Gap]:
    """Yield items taken by their index, which CPython's iterators do not have."""
    for node in names.of(ast.Subscript):
        if names.kind(node.value) == "lazy":
            yield gap(node, "generator as iterator", name="[...]")


def endless_generators(names: Names) -> Iterator[Gap]:
    """Yield generator expressions over something endless, of which CPython would take only what is needed."""
    for node in names.of(ast.GeneratorExp):
        if _is_endless(names, node.generators[0].iter):
            yield gap(node, "endless", name="(... for ...)")


def endless_calls(names: Names) -> Iterator[Gap]:
    """Yield map() and its kind over something endless, of which CPython would take only what is needed."""
    for call, path in names.calls:
        sources = call.args if path == "enumerate" else call.args[1:]
        if path in ("enumerate", "filter", "map") and sources and all(_is_endless(names, arg) for arg in sources):
            yield gap(call, "endless", name=f"{path}()")


def _is_endless(names: Names, expr: ast.expr) -> bool:
    return isinstance(expr, ast.Call) and names.path(expr.func) in ENDLESS


def find_used_twice(names: Names) -> Iterator[Gap]:
    """Yield iterators that the program keeps in a variable and runs through more than once."""
    values = ((node.id, names.only_value(node)) for node in names.of(ast.Name))
    kept = {name: value for name, value in values if value and names.kind(value) == "lazy"}
    uses: dict[str, list[ast.Name]] = {name: [] for name in kept}
    for node in names.of(ast.Name) if kept else ():
        if node.id in kept and isinstance(node.ctx, ast.Load):
            uses[node.id].append(node)
    repeated = _find_repeated_uses(names, {id(nodes[0]): kept[name] for name, nodes in uses.items() if len(nodes) == 1})
    for name, nodes in uses.items():
        if len(nodes) > 1 or (nodes and id(nodes[0]) in repeated):
            yield gap(max(nodes, key=lambda node: (node.lineno, node.col_offset)), "used twice", name=name)


def _find_repeated_uses(names: Names, values: dict[int, ast.expr]) -> frozenset[int]:
    """Return the uses that are run again and again while the value, made outside of the loop, is not made anew."""
    found: set[int] = set()
    for loop in (loop for kind in _LOOPS for loop in names.of(kind)) if values else ():
        inside = {id(node) for part in _list_repeated(loop) for node in ast.walk(part)}
        found.update(use for use in values.keys() & inside if id(values[use]) not in inside)
    return frozenset(found)


def _list_repeated(loop: ast.AST) -> list[ast.AST]:
    if isinstance(loop, ast.For):
        return [*loop.body]
    if isinstance(loop, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        first = loop.generators[0]
        return [node for node in ast.iter_child_nodes(loop) if node is not first] + [*first.ifs]
    return [loop]


# ---------------------------------------------------------------- values that leave the program


def values_that_leave(names: Names) -> Iterator[Gap]:
    """Yield what is returned or given to a tool and would arrive there as text."""
    body = names.of(ast.Module)[0].body
    last = body[-1] if body else None
    returned = [node.value for node in outside_functions(body) if isinstance(node, ast.Return)]
    for value in [last.value if isinstance(last, ast.Expr) else None, *returned]:
        yield from _not_plain(names, value)
    for call, path in names.calls:
        for value in names.arguments(call) if path.startswith(PACK) else ():
            yield from _not_plain(names, value)
            if isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in names.functions):
                yield gap(value, "function given")


def _not_plain(names: Names, value: ast.AST | None) -> Iterator[Gap]:
    if value is None:
        return
    if name := _NOT_DATA.get(names.kind(value)):
        yield gap(value, "not plain", name=name)
    elif isinstance(value, (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.IfExp)):
        parts = [value.body, value.orelse] if isinstance(value, ast.IfExp) else ast.iter_child_nodes(value)
        for part in parts:
            yield from _not_plain(names, part)
    elif isinstance(value, (ast.ListComp, ast.DictComp)):
        yield from _not_plain(names, value.elt if isinstance(value, ast.ListComp) else value.value)


# ---------------------------------------------------------------- tool calls


def tools_in_generators(names: Names) -> Iterator[Gap]:
    """Yield generator expressions that call tools and are not taken to their end: every call would be made."""
    if not names.uses_packs and not names.of(ast.Await):
        return
    taken = set(_find_taken_whole(names))
    awaiting = names.tools.around(names.of(ast.Await))
    for node in names.of(ast.GeneratorExp):
        first, *rest = node.generators
        # The first iterable is evaluated at once in CPython too.
        later = [node.elt, *first.ifs, *rest]
        if any(id(part) in awaiting for part in later):
            yield gap(node, "await in generator")
        elif id(node) not in taken and names.tools.within(*later):
            yield gap(node, "tool in generator")


def _find_taken_whole(names: Names) -> Iterator[int]:
    for call, path in names.calls:
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if path in TAKE_ALL or method in METHODS_THAT_TAKE_ALL:
            yield from map(id, call.args)
    yield from (id(node.value) for node in names.of(ast.Starred))
    for node in names.of(ast.Assign):
        if isinstance(node.targets[0], (ast.Tuple, ast.List)):
            yield id(node.value)


def tools_in_callbacks(names: Names) -> Iterator[Gap]:
    """Yield functions that call tools and are given to a function of the interpreter, which cannot wait for them."""
    for call, path in names.calls if names.uses_packs else ():
        is_sort = not path and isinstance(call.func, ast.Attribute) and call.func.attr == "sort"
        if (is_sort or path in CALLBACKS) and any(map(names.tools.by, names.arguments(call))):
            yield gap(call, "tool in callback", name=f"{path or 'sort'}()")


def tools_in_methods(names: Names) -> Iterator[Gap]:
    """Yield special methods that call tools and that the interpreter runs itself."""
    others = SPECIAL_METHODS_THAT_WAIT | SPECIAL_METHODS_LACKING.keys()
    for method in (part for node in names.of(ast.ClassDef) for part in node.body if names.uses_packs):
        name = names.function_names.get(id(method), "")
        if name.startswith("__") and name.endswith("__") and name not in others and names.tools.within(method):
            yield gap(method, "tool in method", name=name)

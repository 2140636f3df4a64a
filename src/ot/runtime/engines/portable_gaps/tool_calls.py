"""Which parts of a program call tools, themselves or through functions of the program."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Set

from ot.runtime.engines.portable_gaps.names import PACK, Names

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class ToolCalls:
    """Answers whether running a part of a program can call a tool; made in one walk, however deep the program is."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._order: list[tuple[ast.AST, int]] = []
        self._callers: dict[str, set[str]] = defaultdict(set)
        self._walk(names.nodes.of(ast.Module)[0])
        self._functions = self._functions_that_call()
        self._parts = self.around({id(call) for call, _ in names.calls if self._callee(call.func) in self._functions})

    def _walk(self, tree: ast.AST) -> None:
        """Write down every node with the place of its parent, and who calls whom by name."""
        waiting = [(tree, -1, "")]
        while waiting:
            node, parent, function = waiting.pop()
            if isinstance(node, ast.Call):
                self._callers[self._callee(node.func)].add(function)
            inside = self._names.function_name(node) or function
            waiting.extend((child, len(self._order), inside) for child in ast.iter_child_nodes(node))
            self._order.append((node, parent))

    def _callee(self, func: ast.expr) -> str:
        if self._names.is_pack(func):
            return PACK
        return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""

    def _functions_that_call(self) -> frozenset[str]:
        found, waiting = {PACK}, [PACK]
        while waiting:
            more = self._callers.get(waiting.pop(), set[str]()) - found - {""}
            found |= more
            waiting.extend(more)
        return frozenset(found)

    def around(self, ids: Set[int]) -> frozenset[int]:
        """Return *ids* and the ids of what these nodes stand in, up to the function that holds them."""
        found, places = set(ids), set[int]()
        for place in range(len(self._order) - 1, -1, -1):
            node, parent = self._order[place]
            if place in places or id(node) in found:
                found.add(id(node))
                if not isinstance(node, _FUNCTIONS):
                    places.add(parent)
        return frozenset(found)

    def within(self, *nodes: ast.AST) -> bool:
        """Whether running these nodes can call a tool."""
        return any(id(node) in self._parts for node in nodes)

    def by(self, expr: ast.expr) -> bool:
        """Whether *expr*, called as a function, calls a tool."""
        if isinstance(expr, ast.Lambda):
            return self.within(expr)
        if isinstance(expr, ast.Call):
            return self._names.path(expr.func) == "functools.partial" and any(map(self.by, expr.args))
        return self._callee(expr) in self._functions

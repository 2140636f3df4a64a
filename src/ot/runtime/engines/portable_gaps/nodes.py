"""The nodes of a program, by their type."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection
from typing import TypeVar, cast

Node = TypeVar("Node", bound=ast.AST)


class Nodes:
    """The nodes of a program by their type, from one walk."""

    def __init__(self, tree: ast.AST) -> None:
        found: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        waiting = [tree]
        # Every run waits for this loop: ast.walk() is half as slow again.
        while waiting:
            node = waiting.pop()
            found[type(node)].append(node)
            for field in node._fields:
                value = getattr(node, field, None)
                if isinstance(value, list):
                    waiting.extend(item for item in cast(list[object], value) if isinstance(item, ast.AST))
                elif isinstance(value, ast.AST) and field != "ctx":
                    waiting.append(value)
        self._by_type = dict(found)

    def types(self) -> Collection[type[ast.AST]]:
        """Return the types that occur."""
        return self._by_type.keys()

    def of(self, kind: type[Node]) -> list[Node]:
        """Return the nodes of exactly this type."""
        return cast(list[Node], self._by_type.get(kind, []))

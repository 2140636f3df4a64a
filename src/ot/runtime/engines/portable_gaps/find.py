"""Finds what a program asks for that the portable engine lacks, before anything of it runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

from ot.errors import Gap
from ot.runtime.engines.portable_gaps import attributes, calls, iterators, patterns, statements
from ot.runtime.engines.portable_gaps.names import Names
from ot.runtime.engines.portable_gaps.nodes import Nodes
from ot.runtime.engines.portable_gaps.report import gap

# Each check with a node that it looks at: without one in the program it has nothing to find.
_CHECKS: tuple[tuple[type[ast.AST], Callable[[Names], Iterator[Gap]]], ...] = (
    (ast.Module, statements.unknown_syntax),
    (ast.Import, statements.imports),
    (ast.ImportFrom, statements.imports_from),
    (ast.ClassDef, statements.classes),
    (ast.Assert, statements.caught_asserts),
    (ast.Name, attributes.builtins),
    (ast.comprehension, attributes.builtins_as_items),
    (ast.Attribute, attributes.attributes),
    (ast.Constant, attributes.constants),
    (ast.Dict, attributes.equal_keys),
    (ast.Compare, attributes.types_of_exceptions),
    (ast.Compare, attributes.nans_compared),
    (ast.Call, calls.calls),
    (ast.Call, patterns.regular_expressions),
    (ast.Call, patterns.date_formats),
    (ast.Call, iterators.tell_lists_apart),
    (ast.Subscript, iterators.items_of_iterators),
    (ast.GeneratorExp, iterators.endless_generators),
    (ast.Call, iterators.endless_calls),
    (ast.Name, iterators.used_twice),
    (ast.GeneratorExp, iterators.tools_in_generators),
    (ast.Call, iterators.tools_in_callbacks),
    (ast.Module, iterators.values_that_leave),
)


def find_gaps(tree: ast.Module, packs: Collection[str]) -> list[Gap]:
    """Return every place of *tree* that the portable engine cannot answer as CPython would, in the order of lines.

    *packs* are the names that the host binds for the program: none of them is ever missing.
    """
    try:
        nodes = Nodes(tree)
        names, present = Names(nodes, packs), nodes.types()
        found = [found for kind, check in _CHECKS if kind in present for found in check(names)]
    except RecursionError:
        return [gap(tree, "too deep")]
    return sorted(dict.fromkeys(found), key=lambda gap: gap.line)

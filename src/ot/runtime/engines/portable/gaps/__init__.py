"""What the portable engine would silently answer differently from CPython, so that it is refused instead.

What the engine refuses itself is left to it, but for names that a table lists: those are refused before anything runs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator

from ot.errors import Gap
from ot.runtime.engines.portable.gaps import iterators, library, values
from ot.runtime.engines.portable.gaps.names import Names
from ot.runtime.engines.portable.gaps.rules import gap

# Each check with a node that it looks at: without one in the program it has nothing to find.
_CHECKS: tuple[tuple[type[ast.AST], Callable[[Names], Iterator[Gap]]], ...] = (
    (ast.alias, library.imports),
    (ast.Name, library.builtins),
    (ast.Attribute, library.attributes),
    (ast.keyword, library.keywords),
    (ast.ClassDef, library.special_methods),
    (ast.comprehension, values.builtins_as_items),
    (ast.Constant, values.constants),
    (ast.Dict, values.equal_keys),
    (ast.Assert, values.find_caught_asserts),
    (ast.Compare, values.types_of_exceptions),
    (ast.Compare, values.nans_compared),
    (ast.Call, values.calls),
    (ast.Call, values.regular_expressions),
    (ast.Call, values.date_formats),
    (ast.Call, iterators.tell_lists_apart),
    (ast.Subscript, iterators.items_of_iterators),
    (ast.GeneratorExp, iterators.endless_generators),
    (ast.Call, iterators.endless_calls),
    (ast.Name, iterators.find_used_twice),
    (ast.Module, iterators.values_that_leave),
    (ast.GeneratorExp, iterators.tools_in_generators),
    (ast.Call, iterators.tools_in_callbacks),
    (ast.ClassDef, iterators.tools_in_methods),
)


def find_gaps(every: Iterable[ast.AST], packs: Collection[str]) -> list[Gap]:
    """Return every place of a program that the portable engine cannot answer as CPython would, in the order of lines.

    *every* is each of its nodes; *packs* are the names that the host binds for it: none of them is ever missing.
    """
    try:
        names = Names(every, packs)
        found = [found for kind, check in _CHECKS if kind in names.by_type for found in check(names)]
    except RecursionError:
        return [gap(ast.Module([], []), "too deep")]
    return sorted(dict.fromkeys(found), key=lambda gap: gap.line)

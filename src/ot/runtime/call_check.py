"""Finds the calls of a program that the door would refuse, on its tree and before anything of it runs."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from ot.errors import ProgramFailed
from ot.execution.arguments import UNSEEN
from ot.runtime.engines.failures import builtin_exception
from ot.runtime.program import FUNCTIONS, Program

if TYPE_CHECKING:
    from ot.runtime.pack_proxy import PackProxy

BUILTINS: Final = frozenset(vars(builtins))
REBINDING: Final = frozenset({"exec", "eval", "globals", "locals", "vars", "__import__"})
"""With these a program may give a name a meaning that its tree does not show."""
LOOKING: Final = frozenset({"hasattr", "getattr", "dir"})
"""Whoever asks these about a pack knows that it may lack something."""
SUPPRESSING: Final = frozenset({"suppress", "ExitStack", "AsyncExitStack", "assertRaises"})
WRITTEN: Final = (str, bytes, int, float, bool, type(None))


async def find_mistakes(
    program: Program, packs: PackProxy, hidden: Collection[str] | None = None
) -> list[ProgramFailed]:
    """Return how calls of *program* would fail, in the order of their lines, each mistake once.

    In a session, *hidden* are the names that earlier programs defined.
    """
    known = {name for name in program.loads if packs.has_pack(name)}
    if not (known or program.loads - BUILTINS) or program.loads & REBINDING:
        return []
    own = program.binds.union((name for name, _ in program.prelude), hidden or ())
    # Names from earlier programs of the session are not known for certain.
    unknown = program.loads - known - own - BUILTINS if hidden is None else frozenset[str]()
    found: dict[tuple[str, str], ProgramFailed] = {}
    if not (members := _members(program, (known - own) | unknown)):
        return []
    tree = _Tree(program)
    for node, name in members:
        if tree.is_guarded(node):
            continue
        call, cause = tree.calls.get(id(node)), ""
        if name in unknown:
            raised = NameError(f"name '{name}' is not defined") if call and not name.startswith("_") else None
        elif call and (doubled := _find_doubled(call)):
            raised = SyntaxError(f"keyword argument repeated: {doubled}")
        else:
            error = await packs.foresee(name, node.attr, _arguments(call), must_exist=name not in tree.asked)
            raised, cause = error and builtin_exception(error), type(error).__name__
        if raised:
            key = str(raised), "" if name in unknown else program.line(node.lineno)
            found.setdefault(key, ProgramFailed(type(raised).__name__, key[0], node.lineno, cause=cause))
    return list(found.values())


class _Tree:
    """The parts of a program's tree that matter here."""

    def __init__(self, program: Program) -> None:
        calls: list[ast.Call] = program.nodes_of(ast.Call)
        functions = program.nodes_of(*FUNCTIONS)
        own = SUPPRESSING.union(node.name for node in functions if not isinstance(node, ast.Lambda))
        tried = [
            *(node for node in program.nodes_of(ast.Try, ast.TryStar) if node.handlers),
            *(
                node
                for node in program.nodes_of(ast.With, ast.AsyncWith)
                if any(_name(item.context_expr) in own for item in node.items)
            ),
            *(call for call in calls if any(given.arg == "return_exceptions" for given in call.keywords)),
        ]
        # A function's call may fail where its caller expects it.
        self._guarded = [
            ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
            for node in (*tried, *functions) if tried
        ]  # fmt: skip
        self.calls = {id(call.func): call for call in calls}
        self.asked = {_name(call.args[0]) for call in calls if call.args and _name(call) in LOOKING}

    def is_guarded(self, node: ast.Attribute) -> bool:
        """Return whether the program may expect that what *node* names fails."""
        return any(start <= (node.lineno, node.col_offset) < end for start, end in self._guarded)


def _members(program: Program, names: Collection[str]) -> list[tuple[ast.Attribute, str]]:
    """Return the places where members of *names* are read, each with its name, in the order of the text."""
    found = [
        (node, node.value.id)
        for node in program.nodes_of(ast.Attribute)
        if type(node.value) is ast.Name and node.value.id in names and type(node.ctx) is ast.Load
        and not node.attr.startswith("__")
    ]  # fmt: skip
    if any(alias.name == "*" for alias in program.nodes_of(ast.alias)):
        return []
    return sorted(found, key=lambda found: (found[0].lineno, found[0].col_offset))


def _name(node: ast.expr) -> str:
    match node:
        case ast.Call(func):
            return _name(func)
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _find_doubled(call: ast.Call) -> str:
    names = [given.arg for given in call.keywords]
    return next((name for name in names if name and names.count(name) > 1), "")


def _arguments(call: ast.Call | None) -> tuple[list[Any], dict[str, Any]] | None:
    if call is None or any(isinstance(given, ast.Starred) for given in call.args):
        return None
    named = {given.arg: read_value(given.value) for given in call.keywords if given.arg}
    return ([*map(read_value, call.args)], named) if len(named) == len(call.keywords) else None


def read_value(node: ast.expr | None) -> Any:
    """Return the value that *node* writes out; UNSEEN stands for each part that is known only when it runs."""
    match node:
        case ast.Constant(value) if isinstance(value, WRITTEN):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return -number
        case ast.List(parts):
            return [*map(read_value, parts)]
        case ast.Tuple(parts):
            return (*map(read_value, parts),)
        case ast.Set(parts):
            return {*map(_key, parts)}
        case ast.Dict(keys, values):
            return dict(zip(map(_key, keys), map(read_value, values), strict=True))
        case _:
            return UNSEEN


def _key(node: ast.expr | None) -> Any:
    value = read_value(node)
    return value if isinstance(value, WRITTEN) else UNSEEN

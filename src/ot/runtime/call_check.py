"""Finds the calls of a program that the door would refuse, on its tree and before anything of it runs.

What the door alone can judge is left to it: names that the program gives a meaning, ``*`` and ``**``, and calls whose
failure the program may expect.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from ot.errors import CallMistake, ProgramFailed, ToolError
from ot.execution.arguments import UNSEEN
from ot.runtime.engines.failures import builtin_exception
from ot.runtime.program import FUNCTIONS, Program

REBINDING: Final = frozenset({"exec", "eval", "globals", "locals", "vars", "__import__"})
"""With these a program may give a name a meaning that its tree does not show."""
LOOKING: Final = frozenset({"hasattr", "getattr", "dir"})
"""Whoever asks these about a pack knows that it may lack something."""
WRITTEN: Final = (str, bytes, int, float, bool, type(None))
BUILTINS: Final = frozenset(vars(builtins))

SUPPRESSING: Final = frozenset({"suppress", "ExitStack", "AsyncExitStack", "assertRaises"})

type Place = tuple[int, int]
type Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class PackCall:
    """What a program says of a member of a pack: its arguments, or that it is not called where it stands."""

    pack: str
    name: str
    line: int
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None
    is_known: bool = True
    """Whether there is a pack of that name."""
    must_exist: bool = True
    doubled: str = ""
    """The keyword that is there twice."""


class Foresees(Protocol):
    """What a run can reach, and what the door says of a call without making it."""

    def has_pack(self, name: str) -> bool:
        """Return whether *name* is a pack."""
        ...

    async def foresee(self, call: PackCall) -> ToolError | None:
        """Return how the door would refuse *call*, if that is certain."""
        ...


async def find_mistakes(program: Program, reach: Foresees, hidden: Collection[str] | None = None) -> list[CallMistake]:
    """Return the calls that the door would refuse, in the order of their lines, each mistake once.

    In a session, *hidden* are the names that earlier programs gave a meaning.
    """
    found: dict[tuple[str, str], CallMistake] = {}
    for call in pack_calls(program, reach, hidden):
        if not call.is_known:
            failure = ProgramFailed("NameError", f"name '{call.pack}' is not defined", call.line)
            found.setdefault(("", call.pack), CallMistake(failure, "NameError"))
        elif call.doubled:
            failure = ProgramFailed("SyntaxError", f"keyword argument repeated: {call.doubled}", call.line)
            found[call.doubled, program.line(call.line)] = CallMistake(failure, "SyntaxError")
        elif error := await reach.foresee(call):
            raised = builtin_exception(error)
            failure = ProgramFailed(type(raised).__name__, str(raised), call.line)
            found.setdefault((str(raised), program.line(call.line)), CallMistake(failure, type(error).__name__))
    return list(found.values())


def pack_calls(program: Program, reach: Foresees, hidden: Collection[str] | None = None) -> list[PackCall]:
    """Return what *program* asks of packs and the door can be asked about, in the order of the text."""
    packs = {name for name in program.loads if reach.has_pack(name)}
    if (packs or program.loads - BUILTINS) and program.loads.isdisjoint(REBINDING):
        tree = _Tree(program)
        own = program.binds.union((name for name, _ in program.prelude), hidden or ())
        # An earlier program of the session may have named what this one uses, in ways that nobody saw.
        unknown = program.loads - packs - own - BUILTINS if hidden is None else frozenset[str]()
        if not tree.imports_all:
            members = tree.members_of((packs - own) | unknown)
            return [call for member in members if (call := tree.read(member, unknown))]
    return []


class _Tree:
    """The parts of a program's tree that matter here, taken from nodes that were walked over already."""

    def __init__(self, program: Program) -> None:
        by_kind: dict[type[ast.AST], list[Any]] = {}
        for node in program.nodes:
            by_kind.setdefault(type(node), []).append(node)

        def of(*kinds: type[ast.AST]) -> list[Any]:
            return [node for kind in kinds for node in by_kind.get(kind, ())]

        calls: list[ast.Call] = of(ast.Call)
        functions: list[Function] = of(*FUNCTIONS)
        own = {node.name for node in functions if not isinstance(node, ast.Lambda)}
        tried: list[ast.stmt | ast.expr] = [
            *(node for node in of(ast.Try, ast.TryStar) if node.handlers),
            *(node for node in of(ast.With, ast.AsyncWith) if any(_may_suppress(item, own) for item in node.items)),
            *(call for call in calls if any(given.arg == "return_exceptions" for given in call.keywords)),
        ]
        self._calls = {id(call.func): call for call in calls}
        self._asked = {
            call.args[0].id
            for call in calls
            if isinstance(call.func, ast.Name) and call.func.id in LOOKING and call.args
            and isinstance(call.args[0], ast.Name)
        }  # fmt: skip
        # What a function calls may fail where somebody else expects it.
        self._guarded = [_span(node) for node in (*tried, *functions)] if tried else []
        self.imports_all = any(alias.name == "*" for alias in of(ast.alias))
        self._members: list[ast.Attribute] = of(ast.Attribute)

    def members_of(self, names: Collection[str]) -> list[ast.Attribute]:
        """Return where a member of something among *names* is read, in the order of the text."""
        found = [
            node
            for node in self._members
            if type(node.value) is ast.Name and node.value.id in names and type(node.ctx) is ast.Load
        ]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    def read(self, member: ast.Attribute, unknown: Collection[str]) -> PackCall | None:
        """Return what *member* asks of a pack, unless that is left to the door."""
        pack, name, line = cast("ast.Name", member.value).id, member.attr, member.lineno
        call = self._calls.get(id(member))
        if name.startswith("__") or self._is_guarded(member):
            return None
        if pack in unknown:
            return PackCall(pack, name, line, is_known=False) if call and not pack.startswith("_") else None
        must_exist = pack not in self._asked
        if call is None or any(isinstance(given, ast.Starred) for given in call.args):
            return PackCall(pack, name, line, must_exist=must_exist)
        names = [given.arg for given in call.keywords]
        if None in names:
            return PackCall(pack, name, line, must_exist=must_exist)
        if doubled := next((str(given) for given in names if names.count(given) > 1), ""):
            return PackCall(pack, name, line, doubled=doubled)
        kwargs = {str(given.arg): written_value(given.value) for given in call.keywords}
        return PackCall(pack, name, line, tuple(map(written_value, call.args)), kwargs, must_exist=must_exist)

    def _is_guarded(self, member: ast.Attribute) -> bool:
        place = member.lineno, member.col_offset
        return any(start <= place < end for start, end in self._guarded)


def _may_suppress(item: ast.withitem, own: Collection[str]) -> bool:
    """Whether a ``with`` of *item* may let a failure pass; the program itself defines *own*."""
    context = item.context_expr
    name = ast.unparse(context.func if isinstance(context, ast.Call) else context).rpartition(".")[2]
    return name in SUPPRESSING or name in own


def _span(node: ast.stmt | ast.expr) -> tuple[Place, Place]:
    return (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)


def written_value(node: ast.expr) -> Any:
    """Return the value that *node* writes out; UNSEEN stands for each part that is known only when it runs."""
    match node:
        case ast.Constant(value) if isinstance(value, WRITTEN):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return -number
        case ast.List(parts):
            return list(_parts(parts))
        case ast.Tuple(parts):
            return tuple(_parts(parts))
        case ast.Set(parts):
            return {part if isinstance(part, WRITTEN) else UNSEEN for part in _parts(parts)}
        case ast.Dict(keys, values):
            return dict(zip(map(_key, keys), _parts(values), strict=True))
        case _:
            return UNSEEN


def _parts(nodes: list[ast.expr]) -> Iterator[Any]:
    return map(written_value, nodes)


def _key(node: ast.expr | None) -> Any:
    value = written_value(node) if node else UNSEEN
    return value if isinstance(value, WRITTEN) else UNSEEN

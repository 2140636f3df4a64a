"""The nodes of a program, what its names stand for as far as its text tells, and which parts of it call tools."""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import TypeVar, cast

from ot.runtime.engines.portable.gaps.rules import LAZY, MODULES, NOT_PLAIN, VIEWS
from ot.runtime.program import BINDING, find_bound_names

Node = TypeVar("Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

# Before the name of a pack, so that no pack is mistaken for a module or a builtin.
PACK = "@"
# datetime.datetime.now has three parts; nothing that is looked for has more than four.
_LONGEST_PATH = 4
# Numbers that round() treats alike.
_MAKES = {"decimal.Decimal": "Decimal", "int": "int"}


class Names:
    """The nodes of a program by type, and what they stand for; whatever the program binds itself is its own."""

    def __init__(self, nodes: Iterable[ast.AST], packs: Collection[str]) -> None:
        self.by_type: dict[type[ast.AST], list[ast.AST]] = {}
        for node in nodes:
            self.by_type.setdefault(type(node), []).append(node)
        self.packs = frozenset(packs)
        self._bound: dict[str, list[ast.expr | None]] = {}
        self._imports: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._collect_imports()
        self._collect_names()

    def of(self, kind: type[Node]) -> list[Node]:
        """Return the nodes of exactly this type."""
        return cast(list[Node], self.by_type.get(kind, []))

    # ------------------------------------------------------------ what the program binds

    def _collect_imports(self) -> None:
        for node in self.of(ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                self._import(alias.asname or top, alias.name if alias.asname else top)
        for node in self.of(ast.ImportFrom):
            for alias in node.names:
                self._import(alias.asname or alias.name, f"{node.module}.{alias.name}")

    def _import(self, name: str, path: str) -> None:
        path = PACK + path if path.partition(".")[0] in self.packs else path
        # Two imports under one name (a fallback): what it stands for is decided at run time.
        self._imports[name] = path if self._imports.get(name, path) == path else ""

    def _collect_names(self) -> None:
        values = {id(target): value for target, value in self._assignments()}
        for node in self.of(ast.Name):
            if not isinstance(node.ctx, ast.Load):
                self._bound.setdefault(node.id, []).append(values.get(id(node)))
        binding = (node for kind in BINDING if kind is not ast.alias for node in self.by_type.get(kind, ()))
        for name in (name for node in binding for name in find_bound_names(node)):
            self._bound.setdefault(name, []).append(None)

    def _assignments(self) -> Iterator[tuple[ast.expr, ast.expr]]:
        for node in self.of(ast.Assign):
            if len(node.targets) == 1:
                yield node.targets[0], node.value
        for node in self.of(ast.AnnAssign):
            if node.value:
                yield node.target, node.value
        for node in self.of(ast.NamedExpr):
            yield node.target, node.value

    def binds(self, name: str) -> bool:
        """Whether the program gives *name* a meaning of its own, or a pack does."""
        return name in self._bound or name in self._imports or name in self.packs

    @cached_property
    def attributes(self) -> frozenset[str]:
        """The attributes that the program's own classes and objects have."""
        own = {node.attr for node in self.of(ast.Attribute) if not isinstance(node.ctx, ast.Load)}
        for node in self.of(ast.ClassDef):
            own.add("__class__")  # objects of the program have it, though no others do
            own.update(name for statement in node.body for name in self.list_bound(statement))
        for call, path in self.calls:
            if path in ("collections.namedtuple", "setattr", "type"):
                own.update(_words(call))
        return frozenset(own)

    def may_have(self, attribute: str) -> bool:
        """Whether a value of the program may have *attribute*: one of its own objects, or a pack that is handed on."""
        return attribute in self.attributes or self.packs_escape

    @staticmethod
    def list_bound(statement: ast.stmt) -> list[str]:
        """Return the names that a statement of a class binds."""
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return [statement.name]
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        return [node.id for target in targets if target for node in ast.walk(target) if isinstance(node, ast.Name)]

    # ------------------------------------------------------------ what an expression stands for

    def path(self, expr: ast.AST) -> str:
        """Return the name of *expr*, as ``re.sub``, ``map`` or ``@web.fetch``; nothing for one of the program's own."""
        attributes: list[str] = []
        while isinstance(expr, ast.Attribute) and len(attributes) < _LONGEST_PATH:
            attributes.append(expr.attr)
            expr = expr.value
        if not isinstance(expr, ast.Name):
            return ""
        if (known := self._paths.get(expr.id)) is None:
            self._paths[expr.id] = ""  # a name that stands for itself ends here
            known = self._paths[expr.id] = self._path_of(expr.id)
        return ".".join([known, *reversed(attributes)]) if known and attributes else known

    def _path_of(self, name: str) -> str:
        values = self._bound.get(name)
        if values is None:
            known = name if hasattr(builtins, name) or name in MODULES else ""
            return self._imports.get(name, PACK + name if name in self.packs else known)
        if name in self._imports or len(values) != 1 or values[0] is None:
            return ""
        return self.path(values[0])

    @cached_property
    def calls(self) -> list[tuple[ast.Call, str]]:
        """Every call, with what it calls as `path` gives it."""
        return [(call, self.path(call.func)) for call in self.of(ast.Call)]

    def is_pack(self, expr: ast.AST) -> bool:
        """Whether *expr* is a pack or something in it."""
        return self.path(expr).startswith(PACK)

    @cached_property
    def uses_packs(self) -> bool:
        """Whether the program names a pack at all."""
        return any(self.is_pack(node) for node in self.of(ast.Name))

    @cached_property
    def packs_escape(self) -> bool:
        """Whether a pack is handed on, so that an unknown object may be one."""
        held = {id(node.value) for node in self.of(ast.Attribute)}
        return any(id(node) not in held and self.is_pack(node) for node in self.of(ast.Name))

    def kind(self, expr: ast.AST | None) -> str:
        """Return ``lazy``, ``view``, ``range``, ``iterator`` or a type if the text shows it, else nothing."""
        if isinstance(expr, ast.Constant):
            return type(expr.value).__name__
        if isinstance(expr, ast.Call):
            return self._kind_of_call(expr)
        if isinstance(expr, ast.Subscript) and isinstance(expr.slice, ast.Slice):
            return self.kind(expr.value)
        if not isinstance(expr, ast.Name):
            return "lazy" if isinstance(expr, ast.GeneratorExp) else ""
        if expr.id not in self._kinds:
            self._kinds[expr.id] = ""
            kinds = {self.kind(value) for value in self._bound.get(expr.id, [])}
            self._kinds[expr.id] = kinds.pop() if len(kinds) == 1 and expr.id not in self._imports else ""
        return self._kinds[expr.id]

    def _kind_of_call(self, call: ast.Call) -> str:
        path = self.path(call.func)
        if path in LAZY:
            return "lazy"
        if path in NOT_PLAIN or (path.startswith("itertools.") and path != "itertools.tee"):
            return "range" if path == "range" else "iterator"
        if isinstance(call.func, ast.Attribute) and call.func.attr in VIEWS and not path and not call.args:
            return "" if call.func.attr in self.attributes else "view"
        return _MAKES.get(path, "")

    def only_value(self, expr: ast.expr | None) -> ast.expr | None:
        """Return the text's only assignment to the name *expr*, if there is just one."""
        if not isinstance(expr, ast.Name) or expr.id in self._imports:
            return None
        values = self._bound.get(expr.id, [])
        return values[0] if len(values) == 1 else None

    @staticmethod
    def arguments(call: ast.Call) -> list[ast.expr]:
        """Return a call's arguments, by position and by name."""
        return [*call.args, *(keyword.value for keyword in call.keywords)]

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """The program's functions, methods and named lambdas."""
        found: dict[str, list[Function]] = {}
        for kind in (ast.FunctionDef, ast.AsyncFunctionDef):
            for node in self.of(kind):
                found.setdefault(node.name, []).append(node)
        for target, value in self._assignments():
            if isinstance(target, ast.Name) and isinstance(value, ast.Lambda):
                found.setdefault(target.id, []).append(value)
        return found

    @cached_property
    def function_names(self) -> dict[int, str]:
        """The name under which the program keeps each of its functions."""
        return {id(function): name for name, known in self.functions.items() for function in known}

    @cached_property
    def tools(self) -> ToolCalls:
        """Which parts of the program call tools."""
        return ToolCalls(self)


def _words(call: ast.Call) -> Iterator[str]:
    """Yield the words written in the arguments of a call, and in lists and dicts among them."""
    for node in [*call.args, *(part for arg in call.args for part in ast.iter_child_nodes(arg))]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.replace(",", " ").split()


class ToolCalls:
    """Answers whether running a part of a program can call a tool; made in one walk, however deep the program is."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._parents: dict[int, ast.AST] = {}
        self._callers: dict[str, set[str]] = defaultdict(set)
        self._walk(names.of(ast.Module)[0])
        self._functions = self._functions_that_call()
        self._parts = self.around(call for call, _ in names.calls if self._callee(call.func) in self._functions)

    def _walk(self, tree: ast.AST) -> None:
        """Record the parent of every node, and which functions call which by name."""
        waiting = [(tree, "")]
        while waiting:
            node, function = waiting.pop()
            if isinstance(node, ast.Call):
                self._callers[self._callee(node.func)].add(function)
            inside = self._names.function_names.get(id(node), function)
            for child in ast.iter_child_nodes(node):
                self._parents[id(child)] = node
                waiting.append((child, inside))

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

    def around(self, nodes: Iterable[ast.AST]) -> set[int]:
        """Return the ids of *nodes* and of what they stand in, up to the function that holds them."""
        found: set[int] = set()
        for node in nodes:
            outer: ast.AST | None = node
            while outer and id(outer) not in found:
                found.add(id(outer))
                outer = None if isinstance(outer, Function) else self._parents.get(id(outer))
        return found

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

"""What the names of a program stand for, as far as its text tells."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cached_property

from ot.runtime.engines.portable_gaps.library import MODULES
from ot.runtime.engines.portable_gaps.nodes import Nodes
from ot.runtime.engines.portable_gaps.rules import LAZY, MAKES, NOT_PLAIN, VIEWS

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

# Before the name of a pack, so that no pack is mistaken for a module or a builtin.
PACK = "@"
# datetime.datetime.now has three parts; nothing that is looked for has more than four.
_LONGEST_PATH = 4
_DISPLAYS: dict[type[ast.AST], str] = {
    ast.JoinedStr: "str",
    ast.List: "list",
    ast.ListComp: "list",
    ast.Tuple: "tuple",
    ast.Dict: "dict",
    ast.DictComp: "dict",
    ast.Set: "set",
    ast.SetComp: "set",
    ast.GeneratorExp: "lazy",
}


class Names:
    """Answers what an expression stands for; whatever the program binds itself is its own."""

    def __init__(self, nodes: Nodes, packs: Collection[str]) -> None:
        self.nodes = nodes
        self._packs = frozenset(packs)
        self._bound: dict[str, list[ast.expr | None]] = {}
        self._imports: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._collect_imports()
        self._collect_names()

    # ------------------------------------------------------------ what the program binds

    def _collect_imports(self) -> None:
        for node in self.nodes.of(ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                self._import(alias.asname or top, alias.name if alias.asname else top)
        for node in self.nodes.of(ast.ImportFrom):
            for alias in node.names:
                self._import(alias.asname or alias.name, f"{node.module}.{alias.name}")

    def _import(self, name: str, path: str) -> None:
        path = PACK + path if path.partition(".")[0] in self._packs else path
        # Two imports under one name (a fallback): what it stands for is decided at run time.
        self._imports[name] = path if self._imports.get(name, path) == path else ""

    def _collect_names(self) -> None:
        values = {id(target): value for target, value in self._assignments()}
        for node in self.nodes.of(ast.Name):
            if not isinstance(node.ctx, ast.Load):
                self._bound.setdefault(node.id, []).append(values.get(id(node)))
        for name in self._other_bindings():
            self._bound.setdefault(name, []).append(None)

    def _assignments(self) -> Iterator[tuple[ast.expr, ast.expr]]:
        for node in self.nodes.of(ast.Assign):
            if len(node.targets) == 1:
                yield node.targets[0], node.value
        for node in self.nodes.of(ast.AnnAssign):
            if node.value:
                yield node.target, node.value
        for node in self.nodes.of(ast.NamedExpr):
            yield node.target, node.value

    def _other_bindings(self) -> Iterator[str]:
        for kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
            yield from (node.name for node in self.nodes.of(kind))
        yield from (node.arg for node in self.nodes.of(ast.arg))
        for kind in (ast.ExceptHandler, ast.MatchAs, ast.MatchStar):
            yield from (node.name for node in self.nodes.of(kind) if node.name)
        yield from (node.rest for node in self.nodes.of(ast.MatchMapping) if node.rest)

    def binds(self, name: str) -> bool:
        """Whether the program gives *name* a meaning of its own, or a pack does."""
        return name in self._bound or name in self._imports or name in self._packs

    def has_pack(self, name: str) -> bool:
        """Whether the host binds a pack of this name."""
        return name in self._packs

    @cached_property
    def exceptions(self) -> frozenset[str]:
        """The names that stand for nothing but a caught exception."""
        caught = Counter(node.name for node in self.nodes.of(ast.ExceptHandler) if node.name)
        return frozenset(name for name, count in caught.items() if count == len(self._bound[name]))

    @cached_property
    def attributes(self) -> frozenset[str]:
        """The attributes that the program's own classes and objects have."""
        own = {node.attr for node in self.nodes.of(ast.Attribute) if not isinstance(node.ctx, ast.Load)}
        for node in self.nodes.of(ast.ClassDef):
            own.add("__class__")  # objects of the program have it, though no others do
            own.update(name for statement in node.body for name in _names_of(statement))
        for call, path in self.calls:
            if path in ("collections.namedtuple", "setattr", "type"):
                own.update(_words(call))
        return frozenset(own)

    # ------------------------------------------------------------ what an expression stands for

    def path(self, expr: ast.AST) -> str:
        """Return what *expr* names, as ``re.sub``, ``map`` or ``@web.fetch``, or nothing if it is the program's own."""
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
            return self._imports.get(name, PACK + name if name in self._packs else known)
        if name in self._imports or len(values) != 1 or values[0] is None:
            return ""
        return self.path(values[0])

    @cached_property
    def calls(self) -> list[tuple[ast.Call, str]]:
        """Every call, with what it calls as `path` gives it."""
        return [(call, self.path(call.func)) for call in self.nodes.of(ast.Call)]

    def is_pack(self, expr: ast.AST) -> bool:
        """Whether *expr* is a pack or something in it."""
        return self.path(expr).startswith(PACK)

    @cached_property
    def uses_packs(self) -> bool:
        """Whether the program names a pack at all."""
        return any(self.is_pack(node) for node in self.nodes.of(ast.Name))

    @cached_property
    def packs_escape(self) -> bool:
        """Whether a pack is handed on, so that an unknown object may be one."""
        held = {id(node.value) for node in self.nodes.of(ast.Attribute)}
        return any(id(node) not in held and self.is_pack(node) for node in self.nodes.of(ast.Name))

    def kind(self, expr: ast.AST | None) -> str:
        """Return the type of *expr* if its text shows it: ``str``, ``list``, ``lazy``, ``view``..., else nothing."""
        if isinstance(expr, ast.Constant):
            return type(expr.value).__name__
        if isinstance(expr, ast.Call):
            return self._kind_of_call(expr)
        if isinstance(expr, ast.Subscript) and isinstance(expr.slice, ast.Slice):
            return self.kind(expr.value)
        if not isinstance(expr, ast.Name):
            return _DISPLAYS.get(type(expr), "") if expr else ""
        if expr.id not in self._kinds:
            self._kinds[expr.id] = ""
            kinds = {self.kind(value) for value in self._bound.get(expr.id, [])}
            self._kinds[expr.id] = kinds.pop() if len(kinds) == 1 and expr.id not in self._imports else ""
        return self._kinds[expr.id]

    def _kind_of_call(self, call: ast.Call) -> str:
        path = self.path(call.func)
        if path in LAZY:
            return "lazy"
        if path in NOT_PLAIN:
            return "range" if path == "range" else "iterator"
        if isinstance(call.func, ast.Attribute) and call.func.attr in VIEWS and not path and not call.args:
            return "" if call.func.attr in self.attributes else "view"
        return MAKES.get(path, "")

    def values(self, name: str) -> list[ast.expr | None]:
        """Return what is assigned to *name*, None for each binding whose value is unknown."""
        return self._bound.get(name, [])

    def kept_iterators(self) -> Iterator[tuple[str, ast.expr]]:
        """Yield the variables that hold nothing but one iterator, and that iterator."""
        for name, values in self._bound.items():
            if len(values) == 1 and values[0] and self.kind(values[0]) == "lazy" and name not in self._imports:
                yield name, values[0]

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """The program's functions, methods and named lambdas."""
        found: dict[str, list[Function]] = {}
        for kind in (ast.FunctionDef, ast.AsyncFunctionDef):
            for node in self.nodes.of(kind):
                found.setdefault(node.name, []).append(node)
        for target, value in self._assignments():
            if isinstance(target, ast.Name) and isinstance(value, ast.Lambda):
                found.setdefault(target.id, []).append(value)
        return found

    @cached_property
    def decorated(self) -> frozenset[str]:
        """The parameters that stand for a function, since their own function is used as a decorator."""
        methods = [node for kind in (ast.FunctionDef, ast.AsyncFunctionDef) for node in self.nodes.of(kind)]
        used = [part.id for node in methods for part in node.decorator_list if isinstance(part, ast.Name)]
        own = [function for name in used for function in self.functions.get(name, [])]
        return frozenset(function.args.args[0].arg for function in own if function.args.args)

    def function_name(self, node: ast.AST) -> str:
        """Return the name under which the program keeps the function *node*, or nothing."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return node.name
        return self._lambdas.get(id(node), "") if isinstance(node, ast.Lambda) else ""

    @cached_property
    def _lambdas(self) -> dict[int, str]:
        return {id(value): target.id for target, value in self._assignments() if isinstance(target, ast.Name)}


def _names_of(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    yield from (node.id for target in targets if target for node in ast.walk(target) if isinstance(node, ast.Name))


def _words(call: ast.Call) -> Iterator[str]:
    """Yield the words written in the arguments of a call, and in lists and dicts among them."""
    for node in [*call.args, *(part for arg in call.args for part in ast.iter_child_nodes(arg))]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.replace(",", " ").split()

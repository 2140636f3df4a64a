"""Statements and class bodies that the portable engine does not run, or runs differently."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ot.errors import Gap
from ot.runtime.engines.portable_gaps.library import ANY_MODULE, ANY_NAME, INSTEAD_OF_MODULE, INSTEAD_OF_NAME, MODULES
from ot.runtime.engines.portable_gaps.names import Names
from ot.runtime.engines.portable_gaps.report import gap
from ot.runtime.engines.portable_gaps.rules import (
    SPECIAL_METHODS_LACKING,
    SPECIAL_METHODS_THAT_WAIT,
    SYNTAX,
)
from ot.runtime.engines.portable_gaps.tool_calls import ToolCalls

_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError"})
_CATCH_ASSERT = frozenset({"AssertionError", "BaseException", "Exception"})
_METHODS = (ast.FunctionDef, ast.AsyncFunctionDef)


def unknown_syntax(names: Names) -> Iterator[Gap]:
    """Yield what the engine's parser refuses."""
    for kind in names.nodes.types():
        if rule := SYNTAX.get(kind.__name__):
            yield from (gap(node, rule) for node in names.nodes.of(kind))
    for comprehension in names.nodes.of(ast.comprehension):
        if comprehension.is_async:
            yield gap(comprehension.target, "async comprehension")


# ---------------------------------------------------------------- imports


def imports(names: Names) -> Iterator[Gap]:
    """Yield modules that are missing and whose absence the program does not handle."""
    handled = _handled_imports(names)
    for node in names.nodes.of(ast.Import):
        if id(node) not in handled:
            yield from (found for alias in node.names for found in _module(names, node, alias.name))


def imports_from(names: Names) -> Iterator[Gap]:
    """Yield modules, and names in them, that are missing and whose absence the program does not handle."""
    handled = _handled_imports(names)
    for node in names.nodes.of(ast.ImportFrom):
        if id(node) not in handled:
            yield from _import_from(names, node)


def _handled_imports(names: Names) -> frozenset[int]:
    """Return the ids of what stands in a try that catches the failure of an import."""
    tries = [node for node in names.nodes.of(ast.Try) if any(map(_catches_import, node.handlers))]
    return frozenset(id(node) for statement in tries for part in statement.body for node in ast.walk(part))


def _catches_import(handler: ast.ExceptHandler) -> bool:
    return any(node.id in _IMPORT_ERRORS for node in _types(handler))


def _types(handler: ast.ExceptHandler) -> Iterator[ast.Name]:
    if handler.type:
        yield from (node for node in ast.walk(handler.type) if isinstance(node, ast.Name))


def _module(names: Names, node: ast.stmt, module: str) -> Iterator[Gap]:
    top = module.partition(".")[0]
    if module not in MODULES and not names.has_pack(top):
        instead = INSTEAD_OF_MODULE.get(module) or INSTEAD_OF_MODULE.get(top, ANY_MODULE)
        yield gap(node, "module", name=module, instead=instead)


def _import_from(names: Names, node: ast.ImportFrom) -> Iterator[Gap]:
    if node.level:
        yield gap(node, "relative import")
    elif module := node.module:
        missing = list(_module(names, node, module))
        yield from missing
        for alias in () if missing or names.has_pack(module) else node.names:
            yield from _imported_name(node, module, alias.name)


def _imported_name(node: ast.ImportFrom, module: str, name: str) -> Iterator[Gap]:
    if name == "*":
        yield gap(node, "star import", name=module)
    elif name not in MODULES[module] and module != "__future__":
        path = f"{module}.{name}"
        yield gap(node, "name", name=path, instead=INSTEAD_OF_NAME.get(path, ANY_NAME))


# ---------------------------------------------------------------- classes


def classes(names: Names) -> Iterator[Gap]:
    """Yield what the engine refuses or ignores in a class."""
    tools = ToolCalls(names) if names.uses_packs else None
    for node in names.nodes.of(ast.ClassDef):
        if node.bases or node.keywords:
            yield gap(node, "inheritance")
        for statement in node.body:
            if isinstance(statement, _METHODS):
                yield from _method(tools, statement)
            else:
                yield from _class_variable(statement)


def _method(tools: ToolCalls | None, method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Gap]:
    if method.decorator_list:
        yield gap(method, "method decorator")
    if instead := SPECIAL_METHODS_LACKING.get(method.name):
        yield gap(method, "special method", name=method.name, instead=instead)
    elif tools and tools.within(method) and _is_special(method.name) and method.name not in SPECIAL_METHODS_THAT_WAIT:
        yield gap(method, "tool in method", name=method.name)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _class_variable(statement: ast.stmt) -> Iterator[Gap]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    target = targets[0]
    if isinstance(statement, (ast.Pass, ast.Expr)):
        # A docstring and ... are fine, a call is not.
        if isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Constant):
            yield gap(statement, "class body")
    elif not isinstance(statement, (ast.Assign, ast.AnnAssign)) or len(targets) > 1 or not isinstance(target, ast.Name):
        yield gap(statement, "class body")
    elif instead := SPECIAL_METHODS_LACKING.get(target.id):
        yield gap(statement, "special method", name=target.id, instead=instead)


# ---------------------------------------------------------------- assert


def caught_asserts(names: Names) -> Iterator[Gap]:
    """Yield asserts whose message a handler of the program may read: the engine adds the failed comparison to it."""
    asserts = names.nodes.of(ast.Assert)
    handlers = names.nodes.of(ast.ExceptHandler) if asserts else []
    if any(handler.name and _catches_assert(handler) for handler in handlers):
        yield from (gap(node, "caught assert") for node in asserts if not isinstance(node.test, ast.Constant))


def _catches_assert(handler: ast.ExceptHandler) -> bool:
    return any(node.id in _CATCH_ASSERT for node in _types(handler))

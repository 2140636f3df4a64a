"""A program's text as code: its last expression is its value, ``return`` and ``await`` may stand outside functions.

``await`` and asyncio also take what has come already: the value of a tool that was called before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Generator, Mapping
from functools import wraps
from types import CodeType, GeneratorType
from typing import Any, cast

FILE = "<program>"
LATER, NO_VALUE = "__ot_later__", "__ot_no_value__"
AWAITABLE, NO_LIST, IMPORT_ALL = "__ot_awaitable__", "__ot_no_list__", "__ot_import_all__"
"""Names that a program is given beside the builtins."""
PROGRAM = "__ot_program__"
BYTES_OF_LINE_END = 1
COROUTINE = 0x80  # inspect.CO_COROUTINE, whose module is costly to load
ANNOTATIONS = 0x1000000  # __future__.annotations.compiler_flag

Span = tuple[int, int]
Steps = tuple[list[tuple[CodeType, bool]], bool]


def compile_program(
    source: str, awaited: Collection[Span], returns: Mapping[str, Any] | None, file: str = FILE
) -> Steps:
    """Return the code objects of *source*, each with whether its value is the program's, and whether they wait.

    *returns* tells of a program that has a ``return`` outside functions: the names that it ``binds``, and whether it
    ``waits`` outside functions. *file* is what tracebacks call it.
    """
    tree = ast.parse(source, file)
    if awaited:
        _call_later(tree, source, awaited)
    if "await" in source:
        _take_values(tree)
    if returns:
        return _with_returns(tree, returns["binds"], returns["waits"], file)
    body, last = tree.body, None
    if body and isinstance(body[-1], ast.Expr):
        last = body.pop()
    steps = [(_compile(ast.Module(body, tree.type_ignores), "exec", file), False)] if body else []
    if isinstance(last, ast.Expr):
        steps.append((_compile(ast.Expression(last.value), "eval", file), True))
    return steps, any(code.co_flags & COROUTINE for code, _ in steps)


def _compile(tree: ast.Module | ast.Expression, mode: str, file: str) -> CodeType:
    return compile(tree, file, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _with_returns(tree: ast.Module, names: list[str], waits: bool, file: str) -> Steps:
    """Return a program that has a ``return`` as a function whose names are all global."""
    first = 0
    while first < len(tree.body) and _is_future(tree.body[first]):
        first += 1
    future, body = tree.body[:first], [_InFunction().visit(statement) for statement in tree.body[first:]]
    last = body[-1]
    if isinstance(last, ast.Expr):
        body[-1] = ast.copy_location(ast.Return(last.value), last)
    else:
        body.append(ast.copy_location(ast.Return(ast.Name(NO_VALUE, ast.Load())), last))
    if names:
        body.insert(0, ast.copy_location(ast.Global(names), body[0]))
    kind = ast.AsyncFunctionDef if waits else ast.FunctionDef
    arguments = ast.arguments([], [], None, [], [], None, [])
    function = kind(name=PROGRAM, args=arguments, body=body, decorator_list=[], returns=None, type_params=[])
    call: ast.expr = ast.Call(ast.Name(PROGRAM, ast.Load()), [], [])
    ending = ast.fix_missing_locations(ast.Expression(ast.Await(call) if waits else call))
    module = ast.fix_missing_locations(ast.Module([*future, ast.copy_location(function, body[0])], []))
    steps = [(_compile(module, "exec", file), False), (_compile(ending, "eval", file), True)]
    return steps, waits


class _InFunction(ast.NodeTransformer):
    """Writes in other words what may stand in a module and not in a function whose names are global."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            return node
        plain = ast.Assign([node.target], node.value) if node.value else ast.Pass()
        return ast.fix_missing_locations(ast.copy_location(plain, node))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        if node.names[0].name != "*":
            return node
        names = ast.Call(ast.Name("globals", ast.Load()), [], [])
        call = ast.Call(ast.Name(IMPORT_ALL, ast.Load()), [ast.Constant(ast.unparse(node)), names], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), node))

    def _leave(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _leave


def import_all(statement: str, names: dict[str, Any]) -> None:
    """Import into the program's *names*, as *statement* says, whatever function it stands in."""
    exec(statement, names)


def _is_future(node: ast.stmt) -> bool:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _call_later(tree: ast.Module, source: str, awaited: Collection[Span]) -> None:
    """Make each call that is awaited one of ``__ot_later__(function)(...)``."""
    starts = [0]
    for line in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + BYTES_OF_LINE_END)
    wanted = set(awaited)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _span(node, starts) in wanted:
            name = ast.copy_location(ast.Name(LATER, ast.Load()), node.func)
            node.func = ast.copy_location(ast.Call(name, [node.func], []), node.func)


def _take_values(tree: ast.Module) -> None:
    """Let ``await`` take a value that is there already, and ``gather`` no list without its star."""
    for node in ast.walk(tree):
        match node:
            case ast.Await():
                node.value = _through(AWAITABLE, node.value)
            case ast.Call(ast.Attribute(attr="gather") | ast.Name("gather"), [given]):
                node.args = [given if isinstance(given, ast.Starred) else _through(NO_LIST, given)]
            case _:
                continue


def _through(function: str, node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Call(ast.copy_location(ast.Name(function, ast.Load()), node), [node], []), node)


def _span(node: ast.expr, starts: list[int]) -> Span:
    last, end = node.end_lineno or node.lineno, node.end_col_offset or 0
    return starts[node.lineno - 1] + node.col_offset, starts[last - 1] + end


async def run_steps(steps: list[tuple[CodeType, bool]], namespace: dict[str, Any], no_value: Any) -> Any:
    """Return the program's value, awaiting what waits."""
    value = no_value
    for code, is_value in steps:
        found = eval(code, namespace)
        if code.co_flags & COROUTINE:
            found = await found
        value = found if is_value else value
    return value


def run_plainly(steps: list[tuple[CodeType, bool]], namespace: dict[str, Any], no_value: Any) -> Any:
    """Return the value of a program that awaits nothing."""
    value = no_value
    for code, is_value in steps:
        found = eval(code, namespace)
        value = found if is_value else value
    return value


def run_definitions(source: str, awaited: Collection[Span], file: str, names: dict[str, Any]) -> None:
    """Define in *names* what a saved program defines; annotations are never evaluated."""
    if "asyncio" in source:
        accept_values()
    tree = ast.parse(source, file)
    if awaited:
        _call_later(tree, source, [(first, last) for first, last in awaited])
    if "await" in source:
        _take_values(tree)
    exec(compile(tree, file, "exec", flags=ANNOTATIONS, dont_inherit=True), names)


def finish(coroutine: Any) -> Any:
    """Return the value of *coroutine* where nobody awaits it, whether or not an event loop runs here."""
    import asyncio  # noqa: PLC0415 - as in accept_values
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - as above

    if asyncio._get_running_loop() is None:  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownMemberType] - what get_running_loop() asks, without an exception
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, coroutine).result()


ROW = "finished-value"
"""The name of this in the table of tolerances."""
ONE_BY_ONE = "gather() takes calls one by one, not a list of them: put a star before it, asyncio.gather(*calls)"
LISTS = (list, tuple, set, GeneratorType)

used: set[str] = set()
"""Whether the program gave a value where something to wait for is expected."""


class Finished:
    """A value that is there, as something to await."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __await__(self) -> Generator[Any, Any, Any]:
        yield from ()
        return self._value


def awaitable(value: Any) -> Any:
    """Return *value* itself if it can be awaited, else what gives it when awaited."""
    if _can_wait(value):
        return value
    used.add(ROW)
    return Finished(value)


def no_list(value: Any) -> Any:
    """Return the only argument of ``gather``, unless it is a list whose star was forgotten."""
    if _is_list(value):
        raise TypeError(ONE_BY_ONE)
    return value


def accept_values() -> None:
    """Let the functions of asyncio that take something to wait for take values too."""
    import asyncio  # noqa: PLC0415 - costly, and only for programs that name it

    if hasattr(asyncio.gather, "__wrapped__"):
        return
    asyncio.gather = _gather(asyncio.gather)
    for name in ("create_task", "ensure_future", "run", "shield", "wait_for"):
        setattr(asyncio, name, _accepting(getattr(asyncio, name), _coroutine))
    for name in ("as_completed", "wait"):
        setattr(asyncio, name, _accepting(getattr(asyncio, name), _coroutines(asyncio.ensure_future)))
    group = asyncio.TaskGroup
    group.create_task = _accepting(group.create_task, _coroutine, place=1)


def _can_wait(value: Any) -> bool:
    return hasattr(cast("object", type(value)), "__await__")


def _is_list(value: Any) -> bool:
    return isinstance(value, LISTS)


async def _value(value: Any) -> Any:
    return value


def _coroutine(value: Any) -> Any:
    if _can_wait(value):
        return value
    used.add(ROW)
    return _value(value)


def _gather(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def gather(*things: Any, **options: Any) -> Any:
        for thing in things:
            # A list passed whole: its elements would never be awaited.
            if isinstance(thing, GeneratorType) or (_is_list(thing) and any(map(_can_wait, thing))):
                raise TypeError(ONE_BY_ONE)
        return function(*map(_coroutine, things), **options)

    return gather


def _accepting(function: Callable[..., Any], convert: Callable[[Any], Any], place: int = 0) -> Callable[..., Any]:
    @wraps(function)
    def accepting(*args: Any, **options: Any) -> Any:
        given = [convert(value) if number == place else value for number, value in enumerate(args)]
        return function(*given, **options)

    return accepting


def _coroutines(task: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def convert(things: Any) -> Any:
        if not _is_list(things):
            return things
        return [thing if _can_wait(thing) else task(_coroutine(thing)) for thing in things]

    return convert

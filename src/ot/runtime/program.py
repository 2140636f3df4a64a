"""Program: a command's text parsed once, with the lines that the model wrote."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, cast

from ot.errors import CommandTooLong, InvalidSyntax, OneToolError

MAGIC = ("__format__", "__sanitize__")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
BINDING = (
    *FUNCTIONS, ast.arg, ast.alias, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping
)  # fmt: skip
"""The kinds of nodes, beside names, that give a name a meaning."""
SCOPES = (*FUNCTIONS, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
MAX_TOKENS = 12_000
"""Outside of texts. Python's parser lets no other thread work until it is done: so many take it about 20 ms."""
TOKEN = re.compile(r"\w++|[^\w\s]")
"""Python sees no more tokens than this finds."""
WORD = re.compile(r"[^\W\d]\w*")
LONG_SOURCE = 1 << 16
Edit = tuple[int, int, str]
"""A range of bytes of a program's source, and what takes its place."""
BETWEEN_STATEMENTS = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.ENDMARKER})


@dataclass(frozen=True, eq=False)
class Program:
    """One parsed program; ``source`` has the line numbers of the model's own code, ``written`` its words."""

    source: str
    tree: ast.Module
    written: str
    prelude: tuple[tuple[str, str], ...] = ()
    """Names that the program uses without saying where they come from, each with the statement that says it."""
    answers: tuple[str, ...] = ()
    """The variables that it assigns last: its answer when it has no other."""
    tolerated: tuple[str, ...] = ()
    """The rows of the table of tolerances by which it was read."""

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree in the order of ``ast.walk``, walked once for all who ask."""
        found: list[ast.AST] = [self.tree]
        for node in found:  # which grows meanwhile
            for name in node._fields:
                value = getattr(node, name, None)
                if isinstance(value, list):
                    found += [part for part in cast("list[Any]", value) if isinstance(part, ast.AST)]
                elif isinstance(value, ast.AST):
                    found.append(value)
        return found

    @cached_property
    def by_kind(self) -> Mapping[type[ast.AST], list[Any]]:
        """The nodes by their exact type."""
        found: dict[type[ast.AST], list[Any]] = {}
        for node in self.nodes:
            found.setdefault(type(node), []).append(node)
        return found

    def nodes_of(self, *kinds: type[ast.AST]) -> list[Any]:
        """Return the nodes of these types, one type after the other."""
        return [node for kind in kinds for node in self.by_kind.get(kind, ())]

    @cached_property
    def returns(self) -> bool:
        """Whether a ``return`` stands outside every function."""
        if ast.Return not in self.by_kind:
            return False
        return any(isinstance(node, ast.Return) for node in outside_functions(self.tree.body))

    @cached_property
    def waits(self) -> bool:
        """Whether an ``await``, or what is one in other words, stands outside every function."""
        outside = list(outside_functions(self.tree.body))
        awaits = any(isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)) for node in outside)
        return awaits or any(isinstance(node, ast.comprehension) and node.is_async for node in outside)

    @property
    def ends_in_expression(self) -> bool:
        """Whether the last statement is an expression, whose value is the result."""
        return bool(self.tree.body) and isinstance(self.tree.body[-1], ast.Expr)

    @cached_property
    def loads(self) -> frozenset[str]:
        """The names that are read somewhere."""
        return frozenset([node.id for node in self.nodes_of(ast.Name) if type(node.ctx) is ast.Load])

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that the program uses, also in texts, unless those are long: a program may evaluate one."""
        return frozenset(WORD.findall(self.source)) if len(self.source) <= LONG_SOURCE else self.loads

    @cached_property
    def binds(self) -> frozenset[str]:
        """The names that the program itself gives a meaning, in any scope."""
        names = [node.id for node in self.nodes_of(ast.Name) if type(node.ctx) is not ast.Load]
        return frozenset([*names, *(name for node in self.nodes_of(*BINDING) for name in find_bound_names(node))])

    @cached_property
    def assigns(self) -> frozenset[str]:
        """The names that it assigns outside functions, if all is reached: those that a session has afterwards."""
        names = (name for node in outside_functions(self.tree.body, SCOPES) for name in _find_assigned_names(node))
        return frozenset(name for name in names if not name.startswith("__"))

    @cached_property
    def magic(self) -> tuple[str, ...]:
        """The magic variables that are assigned."""
        return tuple(name for name in MAGIC if name in self.binds)

    @cached_property
    def asks_to_sanitize(self) -> bool:
        """Whether ``__sanitize__`` may become anything but False; decides for a run that fails."""
        if "__sanitize__" not in self.binds:
            return False
        values = [
            node.value
            for node in self.nodes_of(ast.Assign)
            if any(isinstance(target, ast.Name) and target.id == "__sanitize__" for target in node.targets)
        ]
        no = [isinstance(value, ast.Constant) and (value.value is False or value.value is None) for value in values]
        return not no or not all(no)

    @cached_property
    def single_call(self) -> tuple[str, str] | None:
        """``(pack, tool)`` when the program is one call of one tool."""
        if len(self.tree.body) != 1:
            return None
        value = getattr(self.tree.body[0], "value", None)
        if isinstance(value, ast.Await):
            value = value.value
        match value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=pack), attr=tool)):
                return pack, tool
            case _:
                return None

    @cached_property
    def awaited(self) -> frozenset[tuple[int, int]]:
        """The byte ranges of the calls that are awaited: under ``await``, or in the arguments of ``gather``."""
        awaits = self.nodes_of(ast.Await)
        return frozenset([self.span(call) for node in awaits for call in find_awaited_calls(node.value)])

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        """Return the range of bytes of the source that *node* takes."""
        starts = self._line_starts
        last = starts[(node.end_lineno or node.lineno) - 1]
        return starts[node.lineno - 1] + node.col_offset, last + (node.end_col_offset or 0)

    def edit(self, edits: Iterable[Edit]) -> Program:
        """Return the program with *edits* made, every other line where it was; it keeps the model's own words.

        What replaces several lines is followed by as many line ends: it must stand where those mean nothing.
        """
        source, parts, place = self.source.encode(), list[bytes](), 0
        for start, end, text in sorted(edits):
            lost = source.count(b"\n", start, end) - text.count("\n")
            parts += (source[place:start], text.encode(), b"\n" * lost)
            place = end
        changed = parse_program(b"".join([*parts, source[place:]]).decode(), max_bytes=1 << 30)
        return replace(self, source=changed.source, tree=changed.tree)

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        for line in self.source.encode().split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        return starts

    def line_at(self, offset: int) -> int:
        """Return the number of the line that holds the byte at *offset* of the source."""
        return bisect_right(self._line_starts, offset)

    def line(self, number: int | None) -> str:
        """Return the model's own line of that number, cut to a readable length."""
        text = self.whole_line(number)
        return text if len(text) <= 200 else text[:200] + "…"

    def whole_line(self, number: int | None) -> str:
        """Return the model's own line of that number, however long it is."""
        lines = self.written.split("\n")
        return lines[number - 1].strip() if number and 0 < number <= len(lines) else ""


@dataclass(frozen=True)
class Reading:
    """A command as it was read: its program, or why there is none."""

    chars: int
    started: float
    result: Program | OneToolError

    @property
    def program(self) -> Program | None:
        """The program, if there is one."""
        return self.result if isinstance(self.result, Program) else None

    @property
    def names(self) -> Collection[str]:
        """The names that the program uses."""
        return self.result.names if isinstance(self.result, Program) else ()


def find_awaited_calls(node: ast.expr) -> Iterator[ast.Call]:
    """Yield the calls whose value *node* awaits: itself, or what stands in the arguments of a ``gather``."""
    match node:
        case ast.Call(func=ast.Name(id="gather") | ast.Attribute(value=ast.Name(id="asyncio"), attr="gather")):
            for argument in node.args:
                yield from find_awaited_calls(argument)
        case ast.Call():
            yield node
        case ast.Starred(value=inner) | ast.ListComp(elt=inner) | ast.GeneratorExp(elt=inner) | ast.SetComp(elt=inner):
            yield from find_awaited_calls(inner)
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            for element in elements:
                yield from find_awaited_calls(element)
        case ast.IfExp(body=first, orelse=second):
            yield from find_awaited_calls(first)
            yield from find_awaited_calls(second)
        case _:
            return


def parse_program(code: str, *, max_bytes: int = 1 << 20) -> Program:
    """Return *code* as a program, its indentation normalised and its string literals untouched.

    Raises:
        CommandTooLong: It has more than *max_bytes*, or too many tokens.
        InvalidSyntax: Python's parser refuses it; the line is the model's own.
    """
    size = len(code.encode(errors="surrogatepass"))
    if size > max_bytes:
        raise CommandTooLong(size, max_bytes)
    # As Python's own reader does: its line numbers count every kind of line end.
    code = code.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        try:
            tree = _parse(code)
        except IndentationError:
            code = normalise_indentation(code)
            tree = _parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _explain(error, code) from None
    return Program(code, tree, code)


def _require_few_tokens(code: str) -> None:
    if len(code) <= MAX_TOKENS or not _has_many(TOKEN.finditer(code)):
        return
    try:
        many = _has_many(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError):
        return  # the parser reads no further either, and will say what is wrong
    if many:
        raise CommandTooLong(None, MAX_TOKENS)


def _has_many(tokens: Iterable[object]) -> bool:
    return next(islice(tokens, MAX_TOKENS, None), None) is not None


def _parse(code: str) -> ast.Module:
    _require_few_tokens(code)
    with warnings.catch_warnings():
        # A model's "\d" outside a raw string is its own affair: it must not write on our standard error.
        warnings.simplefilter("ignore")
        return ast.parse(code)


def _explain(error: Exception, code: str) -> InvalidSyntax:
    if isinstance(error, SyntaxError):
        lines = code.split("\n")
        # For a null byte Python names no line.
        line = error.lineno or code[: max(code.find("\0"), 0)].count("\n") + 1
        source = lines[line - 1].strip()[:200] if 0 < line <= len(lines) else ""
        return InvalidSyntax(f"{type(error).__name__}: {error.msg}", line, error.offset, source)
    if isinstance(error, ValueError):
        return InvalidSyntax(f"SyntaxError: {error}", 1)
    return InvalidSyntax("SyntaxError: the program is nested too deeply", 1)


def normalise_indentation(code: str) -> str:
    """Return *code* with a common indent taken off and tabs made spaces, outside of string literals."""
    lines = code.split("\n")
    inside, starts = _layout(lines)
    for number, line in enumerate(lines):
        if number not in inside:
            text = line.lstrip(" \t")
            lines[number] = line[: len(line) - len(text)].expandtabs(8) + text if text else ""
    common = min((_indent(lines[number]) for number in starts), default=0)
    return "\n".join(
        line if number in inside else line[min(common, _indent(line)) :] for number, line in enumerate(lines)
    )


def indent_lines(code: str, by: str) -> str:
    """Return *code* with *by* before its lines, but for those within string literals."""
    lines = code.split("\n")
    inside, _ = _layout(lines)
    return "\n".join(by + line if line and number not in inside else line for number, line in enumerate(lines))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _layout(lines: list[str]) -> tuple[set[int], set[int]]:
    """Return the 0-based lines that begin inside a string literal, and those on which a statement begins.

    Only the latter say something about the common indent: blank lines, comments and lines within brackets do not.
    """
    inside: set[int] = set()
    starts: set[int] = set()
    opened: list[int] = []
    begins = True
    # Without any indent the text can be read whatever its indentation; what is inside a string ends where it did.
    readline = io.StringIO("\n".join(line.lstrip(" \t") for line in lines)).readline
    try:
        for count, token in enumerate(tokenize.generate_tokens(readline)):
            if count > MAX_TOKENS:
                raise CommandTooLong(None, MAX_TOKENS)
            if begins and token.type not in BETWEEN_STATEMENTS:
                starts.add(token.start[0] - 1)
            begins = token.type == tokenize.NEWLINE or (begins and token.type in BETWEEN_STATEMENTS)
            if token.type == tokenize.STRING:
                inside.update(range(token.start[0], token.end[0]))
            elif token.type == tokenize.FSTRING_START:
                opened.append(token.start[0])
            elif token.type == tokenize.FSTRING_END:
                inside.update(range(opened.pop(), token.end[0]))
    except (tokenize.TokenError, SyntaxError):
        pass  # known are the tokens read so far; the parser will report the error
    return inside, starts


def outside_functions(body: Iterable[ast.stmt], inner: tuple[type[ast.AST], ...] = FUNCTIONS) -> Iterator[ast.AST]:
    """Yield every node that stands in no function or class of *body*, or in none of the types *inner*."""
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, inner):
            todo.extend(ast.iter_child_nodes(node))


def find_bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that *node* itself gives a meaning, or takes it from."""
    match node:
        case ast.Name(id=name, ctx=ast.Del()) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
            yield name
        case _:
            yield from _find_assigned_names(node)


def _find_assigned_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=asname) if name != "*":
            yield asname or name.partition(".")[0]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
        case _:
            return

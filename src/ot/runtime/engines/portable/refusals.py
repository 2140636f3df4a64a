"""The portable engine's own refusals, in our words: what it lacks, and what to write instead.

One is no refusal: asyncio may be given values of calls that were made before, as far as a program's text shows them.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import types
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, Final

from ot.runtime.engines.portable.gaps.library import ANY_NAME, BUILTINS, INSTEAD_OF_NAME, LACKING_ATTRIBUTES, TYPES
from ot.runtime.engines.portable.gaps.names import Names
from ot.runtime.engines.portable.gaps.rules import MODULES, Rule
from ot.runtime.program import Edit, Program

REFUSED: Final = "NotImplementedError"
OTHERWISE: Final = "write it in other words; the exact engine runs all of Python"
_LONGEST: Final = 300

# What its parser refuses: nothing of the program has run. The advice is found by the beginning of what it names.
_PARSER = re.compile(r"The monty syntax parser does not yet support (.+)|.*?((?:Wildcard|relative) import)")
SYNTAX: Final = {
    "yield": "build a list and return it",
    "the 'del' statement": "use .pop(key), a slice such as xs[1:], or leave it out",
    "async for": "await the whole list, then use a plain for",
    "async comprehensions": "await the whole list, then use a plain for",
    "async context managers": "use await and try/finally",
    "exception groups": "use except",
    "type aliases": "leave the alias out",
    "class inheritance": "repeat what you need; raise ValueError('...')",
    "method decorators": "write a plain method, or a function outside the class",
    "class bodies": "move the rest out of the class",
    "complex class variable": "write one name = value for each",
    "wildcard imports": "name what you import",
    "relative imports": "a program is one file: define it here",
}

# What it refuses when it is reached, by its message and the line: groups of the first are named in the text.
RAISED: Final = (
    (r".*'(?:\w+__)?(\w+)' cannot suspend in this synchronous context", "", Rule(
        r"a tool cannot be called from inside map(), sorted() or a special method: \1",
        "call it in a list comprehension first: [pack.f(x) for x in xs]")),
    (r"(.+) does not yet support (.+)", "", Rule(r"\1 does not support \2", OTHERWISE)),
    (r"unknown encoding: (.+)", "", Rule(r"there is no encoding \1", "use utf-8, utf-16, utf-32 or ascii")),
    (r"cannot convert '(list|tuple|range)' object to bytes", "", Rule(
        r"bytes() takes no \1", "use bytes.fromhex(''.join(f'{n:02x}' for n in ns))")),
    (r"(\w+\.\w+\(\)) takes exactly one argument .*", "", Rule(
        r"\1 takes one argument", "use the operator: a | b | c")),
    (r"'float' object cannot be interpreted as an integer", r"\btimedelta\(", Rule(
        "timedelta() takes whole numbers", "use a smaller unit: timedelta(minutes=90)")),
    (r"cannot create 'object' instances", "", Rule(
        "object() cannot be created", "use a value that cannot occur, such as a list of its own: MISSING = []")),
    (r"no such group", r"\.(?:start|end|span)\(['\"]", Rule(
        ".start(), .end() and .span() take no name", "use .group('name'), or the number of the group")),
    (r"re\.Match\.groups\(\) takes no .*", "", Rule(".groups() takes no default", "use .groups() and a check")),
    (r"callable replacement .*", "", Rule(
        "re.sub() takes no function", "use a constant text, or build the text from re.finditer()")),
    (r"JSON\w+\.__init__\(\) got an unexpected keyword argument '(\w+)'", "", Rule(
        r"json lacks \1=", "turn the values into plain data before, or change them afterwards")),
    (r"(?:Parsing error|Error compiling regex).*", "", Rule(
        r"the pattern cannot be read: \g<0>", r"write the characters out: \x00, [a-zA-Z0-9_]")),
    (r".*exceptions can only be called with zero or one string argument", "", Rule(
        "an exception takes at most one text", "use one f-string: ValueError(f'...')")),
    (r"'(encoding|errors)' argument is not yet supported", "", Rule(
        r"open() takes no \1=", "read bytes and decode them: open(path, 'rb').read().decode('latin-1')")),
    (r"update modes \('\+'\) are not yet supported", "", Rule(
        "open() has no '+' in its mode", "read the whole file, change the text, and write it with mode 'w'")),
    (r"exclusive creation mode is not supported", "", Rule(
        "open() has no mode 'x'", "ask os.path.exists(path) first, and use mode 'w'")),
    (r"(read_text|write_text)\(\) takes .*", "", Rule(
        r"\1() takes no encoding but UTF-8", "use .read_bytes().decode('latin-1'), .write_bytes(data)")),
    (r"print\(\) 'file' argument must be .*", "", Rule("print() writes to no file", "use f.write(f'{text}\\n')")),
    (r"iterating an unread .*", "", Rule("a file is only read by for, next() and its methods", "use f.readlines()")),
    (r"'([\w.]+)' is not supported in this environment", "", Rule(r"there is no \1", ANY_NAME)),
)  # fmt: skip
_MISSING: Final = re.compile(
    r"(?:module '(?P<module>[\w.]+)'|type object '(?P<type>[\w.]+)'|'(?P<value>[\w.]+)' object) has no attribute "
    r"'(?P<name>\w+)'|cannot import name '(?P<imported>\w+)' from '(?P<package>[\w.]+)'|name '(?P<builtin>\w+)' is not"
)
_TYPES: Final[dict[str, Any]] = {
    **{name: kind for name, kind in vars(builtins).items() if isinstance(kind, type)},
    **{f"{kind.__module__}.{kind.__name__}": kind for kind in TYPES},
    "json.JSONDecodeError": type(
        "JSONDecodeError", (ValueError,), dict.fromkeys(("msg", "doc", "pos", "lineno", "colno"))
    ),
    "PosixPath": next(kind for kind in TYPES if kind.__name__ == "Path"),
    "function": types.FunctionType,
    "_io.TextIOWrapper": io.TextIOWrapper,
    "_io.BufferedReader": io.BufferedReader,
    "_io.BufferedWriter": io.BufferedWriter,
}


def refusal(message: str, source: str, has_pack: Callable[[str], bool]) -> Rule | None:
    """Return what the engine lacks and what to write instead, if its *message* about the line *source* says so.

    A module that hides a pack lacks nothing: the pack is what the program means.
    """
    message = message[:_LONGEST]
    if parsed := _PARSER.match(message):
        named = parsed[1] or f"{parsed[2].lower()}s"
        advice = next((text for start, text in SYNTAX.items() if named.startswith(start)), OTHERWISE)
        return _lacks(Rule(f"there is no support for {named}; nothing was run", advice))
    for pattern, line, rule in RAISED:
        if (found := re.fullmatch(pattern, message)) and re.search(line, source):
            return _lacks(Rule(found.expand(rule.what), rule.instead))
    missing = _MISSING.match(message)
    return _missing(missing.groupdict(), source) if missing and not has_pack(missing["module"] or "") else None


def _lacks(rule: Rule) -> Rule:
    return Rule(f"the portable engine cannot run this: {rule.what}", rule.instead)


def _missing(found: dict[str, str | None], source: str) -> Rule | None:
    """Return the missing name, unless CPython lacks it too: that is a mistake in the program."""
    name = found["name"] or found["imported"] or ""
    if builtin := found["builtin"]:
        return _lacks(Rule(f"there is no {builtin}", BUILTINS[builtin])) if builtin in BUILTINS else None
    if module := found["module"] or found["package"]:
        advice = INSTEAD_OF_NAME.get(f"{module}.{name}", ANY_NAME)
        return _lacks(Rule(f"there is no {module}.{name}", advice)) if module in MODULES else None
    kind = found["type"] or found["value"] or ""
    if kind == "PackHandle" or (not hasattr(_TYPES.get(kind, object), name) and kind != "function"):
        return None  # a pack has tools, and nothing of Python's own
    return _lacks(Rule(f"there is no {kind}.{name}", LACKING_ATTRIBUTES.get(name) or _instead(found, name, source)))


def _instead(found: dict[str, str | None], name: str, source: str) -> str:
    if found["type"]:
        return f"methods are not reached through their type: use lambda x: x.{name}()"
    kind = _TYPES.get(found["value"] or "", object)
    if issubclass(kind, BaseException):
        return "an exception has only .args: use str(error) and type(error).__name__"
    if kind is types.FunctionType:
        return "write the text out, or keep the value in a variable"
    is_called = re.search(rf"\.{name}\s*\(", source)
    return ANY_NAME if is_called else f"a method can only be called, not held: use lambda *args: x.{name}(*args)"


ROW = "finished-value"
"""The name of this in the table of tolerances."""
VALUE = "__ot_value__"
DEFINITION = (VALUE, f"async def {VALUE}(value):\n    return value")
TAKE_ONE = frozenset({"asyncio.create_task", "asyncio.ensure_future", "asyncio.wait_for"})
SEQUENCES = (ast.List, ast.Tuple)
COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp)


def with_finished_values(program: Program, packs: Collection[str]) -> Program:
    """Return *program* with values that asyncio is given made coroutines that give them."""
    if "asyncio" not in program.source and "await" not in program.source:
        return program
    found = _Found(program, Names(program.nodes, packs))
    edits = list(found.edits())
    if not edits:
        return program
    rows = (*program.tolerated, ROW)
    return replace(program.edit(edits), prelude=(*program.prelude, DEFINITION), tolerated=rows)


class _Found:
    """What a program gives to asyncio that has its value already."""

    def __init__(self, program: Program, names: Names) -> None:
        self._program = program
        self._names = names

    def edits(self) -> Iterator[Edit]:
        for node in self._names.of(ast.Await):
            if isinstance(node.value, ast.Name) and self._is_value(node.value):
                yield from self._instead(node.value, node.value, f"{VALUE}(", ")")
        for call, path in self._names.calls:
            if path in TAKE_ONE and call.args and self._is_value(call.args[0]):
                yield from self._instead(call, call.args[0], f"{VALUE}(", ")")
            elif path == "asyncio.as_completed" and call.args and self._is_list(call.args[0]):
                yield from self._instead(call, call.args[0], f"[{VALUE}(__ot_item__) for __ot_item__ in ", "]")
            elif path == "asyncio.gather":
                yield from self._wrap_gathered(call)
        for node in self._names.of(ast.Attribute):
            if self._names.path(node) == "asyncio.TimeoutError":  # another name of the same class
                yield (*self._program.span(node), "TimeoutError")

    def _wrap_gathered(self, call: ast.Call) -> Iterator[Edit]:
        for given in call.args:
            if isinstance(given, ast.Name) and self._is_value(given):
                yield from self._instead(given, given, f"{VALUE}(", ")")
            elif isinstance(given, ast.Starred) and isinstance(given.value, ast.Name) and self._is_list(given.value):
                yield from self._instead(given.value, given.value, f"[{VALUE}(__ot_item__) for __ot_item__ in ", "]")

    def _is_value(self, expr: ast.expr) -> bool:
        """Whether *expr* is a call of a tool that is not awaited, or the only thing that a variable ever is."""
        if isinstance(expr, ast.Name):
            expr = self._names.only_value(expr) or expr
        is_call = isinstance(expr, ast.Call) and self._names.is_pack(expr.func)
        return is_call and self._program.span(expr) not in self._program.awaited

    def _is_list(self, expr: ast.expr) -> bool:
        if isinstance(expr, ast.Name):
            expr = self._names.only_value(expr) or expr
        if isinstance(expr, COMPREHENSIONS):
            return self._is_value(expr.elt)
        return isinstance(expr, SEQUENCES) and all(map(self._is_value, expr.elts))

    def _instead(self, whole: ast.expr, expr: ast.expr, before: str, after: str) -> Iterator[Edit]:
        start, end = self._program.span(whole)
        first, last = self._program.span(expr)
        yield start, first, before
        yield last, end, after

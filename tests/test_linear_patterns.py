"""No regular expression over outside text takes more time than a multiple of the text's length."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from re import _constants as code  # pyright: ignore[reportAttributeAccessIssue] - the parser's own words
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue] - as above
from typing import Any

import pytest

from checkout import PACKS, SOURCES
from ot.registry.value_shape import DATA
from ot.runtime.failure_text import NETWORK

FUNCTIONS = ("match", "fullmatch", "search", "sub", "subn", "findall", "finditer", "split")
ALL = frozenset(FUNCTIONS)
USE = re.compile(rf"\b(\w+)\.({'|'.join(FUNCTIONS)})\(")
SIZES = (12, 24, 2000)
"""The small ones show what grows exponentially, before a large one would never end."""
MOST_TIMES = 60
"""How many times a plain search's time a linear pattern may take: 1 to 15 were measured, for others over 300."""
LEAST_SECONDS = 0.0005
REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT)
KINDS = {
    code.CATEGORY_DIGIT: "0",
    code.CATEGORY_SPACE: " \n",
    code.CATEGORY_WORD: "a_0",
    code.CATEGORY_NOT_DIGIT: "a ",
    code.CATEGORY_NOT_SPACE: "a",
    code.CATEGORY_NOT_WORD: " ",
}
FAILS = "\0"
COMMON = "a0_ <"
MOST_LETTERS = 7


@dataclass(frozen=True)
class Found:
    """A pattern in the source, and how it is used there."""

    where: str
    pattern: str
    flags: int
    used: frozenset[str]


def every_pattern(root: Path) -> list[Found]:
    """Return every pattern below *root*: those written out as texts, and those that modules put together."""
    written = list(_written_patterns(root))
    known = {one.pattern for one in written}
    return written + [one for one in _module_patterns(root) if one.pattern not in known]


def _module_patterns(root: Path) -> Iterator[Found]:
    texts = _texts(root)
    uses = _all_uses(texts)
    for path, text in texts.items():
        # Packs in workers import what is installed for them alone; a test sees to it that their patterns are texts.
        if "re.compile(" not in text or path.is_relative_to(PACKS):
            continue
        module = import_module(".".join(path.relative_to(root).with_suffix("").parts))
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                used = uses.get(name, ALL)
                yield Found(f"{module.__name__}.{name}", value.pattern, value.flags, used)


def _written_patterns(root: Path) -> Iterator[Found]:
    texts = _texts(root)
    uses = _all_uses(texts)
    for path, text in texts.items():
        tree = ast.parse(text)
        names = {id(node.value): _target(node) for node in ast.walk(tree) if isinstance(node, ast.Assign)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (found := _pattern(node)) is not None:
                function, pattern = found
                used = uses.get(names.get(id(node), ""), ALL) if function == "compile" else frozenset({function})
                yield Found(f"{path.relative_to(root)}:{node.lineno}", pattern, _flags(node), used)


def _texts(root: Path) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}


def _all_uses(texts: Mapping[Path, str]) -> dict[str, frozenset[str]]:
    """Return with which functions each name is used anywhere."""
    found: dict[str, set[str]] = {}
    for text in texts.values():
        for name, function in USE.findall(text):
            found.setdefault(name, set()).add(function)
    return {name: frozenset(functions) for name, functions in found.items()}


def _target(node: ast.Assign) -> str:
    return node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""


def _pattern(node: ast.Call) -> tuple[str, str] | None:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=function), args=[first, *_]):
            text = _text(first) if function in (*FUNCTIONS, "compile") else None
            return None if text is None else (function, text)
        case _:
            return None


def _text(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant(value=bytes(data)):
            return data.decode("latin-1")
        case ast.JoinedStr(values=parts) if all(isinstance(part, ast.Constant) or _escaped(part) for part in parts):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)
        case _:
            return None


def _escaped(part: ast.expr) -> bool:
    return "re.escape(" in ast.unparse(part)


def _flags(node: ast.Call) -> int:
    names = {name.attr for name in ast.walk(node) if isinstance(name, ast.Attribute) and name.attr.isupper()}
    return sum(int(getattr(re, name)) for name in names if isinstance(getattr(re, name, None), re.RegexFlag))


def super_linear(pattern: str, flags: int = 0, used: frozenset[str] = ALL) -> str:
    """Return a text on which *pattern* takes far too long, described, or nothing."""
    compiled = re.compile(pattern, flags)
    ways = [compiled.search] if used - {"match", "fullmatch"} else []
    ways += [compiled.fullmatch] if "fullmatch" in used else [compiled.match] if "match" in used else []
    for lead, unit in dict.fromkeys(_attacks(parser.parse(pattern, flags))):
        for way in ways:
            if any(_hurts(way, lead + unit * (size // len(unit) + 1) + FAILS) for size in SIZES):
                return f"{way.__name__}({lead!r} + {unit!r} * n + {FAILS!r})"
    return ""


def _hurts(way: Any, text: str) -> bool:
    bound = max(MOST_TIMES * _plain_seconds(len(text)), LEAST_SECONDS)
    # Three times: what a busy machine adds is not there each time.
    return all(_seconds(way, text) > bound for _ in range(3))


@cache
def _plain_seconds(length: int) -> float:
    return min(_seconds(re.compile("[^x]x").search, "a" * length) for _ in range(5))


def _seconds(way: Any, text: str) -> float:
    started = time.thread_time()
    way(text)
    return time.thread_time() - started


def _attacks(tree: Any) -> Iterator[tuple[str, str]]:
    letters = list(dict.fromkeys(COMMON + "".join(_letters(tree))))[:MOST_LETTERS]
    for lead, body in _repeats(list(tree), ""):
        for unit in dict.fromkeys([_sample(body), *letters]):
            yield lead, unit or "a"
            yield "", (lead + unit) or "a"


def _repeats(nodes: list[Any], lead: str) -> Iterator[tuple[str, Any]]:
    """Yield every unbounded repetition, with a text that leads up to it."""
    for operation, argument in nodes:
        inner = _inner(operation, argument)
        if operation in (*REPEATS, code.POSSESSIVE_REPEAT) and argument[1] > 100:
            yield lead, list(argument[2])
        for branch in inner:
            yield from _repeats(branch, lead)
        lead += _sample([(operation, argument)])


def _inner(operation: Any, argument: Any) -> list[list[Any]]:
    if operation is code.BRANCH:
        return [list(branch) for branch in argument[1]]
    if operation in (*REPEATS, code.POSSESSIVE_REPEAT):
        return [list(argument[2])]
    if operation is code.SUBPATTERN:
        return [list(argument[3])]
    if operation is code.ATOMIC_GROUP:
        return [list(argument)]
    return [list(argument[1])] if operation in (code.ASSERT, code.ASSERT_NOT) else []


def _sample(nodes: list[Any]) -> str:
    """Return a short text that *nodes* match, as far as that is easily told."""
    text = ""
    for operation, argument in nodes:
        if operation in (*REPEATS, code.POSSESSIVE_REPEAT):
            text += _sample(list(argument[2])) * max(argument[0], 0)
        elif operation in (code.LITERAL, code.NOT_LITERAL, code.IN, code.ANY):
            text += "".join(_letters([(operation, argument)]))[:1]
        elif operation not in (code.ASSERT, code.ASSERT_NOT):
            text += "".join(_sample(branch) for branch in _inner(operation, argument)[:1])
    return text


def _letters(nodes: Any) -> Iterator[str]:
    """Yield characters that parts of *nodes* match."""
    for operation, argument in nodes:
        if operation is code.LITERAL:
            yield chr(argument)
        elif operation is code.NOT_LITERAL:
            yield "a" if argument != ord("a") else "b"
        elif operation is code.ANY:
            yield "a"
        elif operation is code.IN:
            yield _letters_of_set(argument)
        for branch in _inner(operation, argument):
            yield from _letters(branch)


def _letters_of_set(items: Any) -> str:
    written = "".join(chr(i) for o, i in items if o is code.LITERAL)
    written += "".join(chr(i[0]) for o, i in items if o is code.RANGE)
    written += "".join(KINDS.get(i, "a") for o, i in items if o is code.CATEGORY)
    if items and items[0][0] is code.NEGATE:
        return next((letter for letter in "a 0_-x" if letter not in written), "a")
    return written[:4]


OF_THE_USER = {
    r"\[[^]]+\]": "patterns of tools in the user's policy, when it is loaded",
    r"from ot\.runtime\.engines\.jail\.zygote import main.* # of server (\d+)\Z": "command lines, in onetool doctor",
}
"""Super-linear, but over texts of the user's own, before the server takes its first request or in another process."""
OF_SHORT_TEXTS = {
    NETWORK.pattern: "the first 100 characters of an exception's name",
    r"(\w+)\s*(?:\[[^\]]*\])?\s*\)$": "the last 200 characters of what a method in Go belongs to",
    DATA.pattern: "a key of at most 32 characters",
    r"\b(?:[a-z_]\w*\.)+(?=[A-Z])": "the annotation of a parameter, in a pack's own source",
}


def test_no_pattern_in_the_source_is_super_linear() -> None:
    patterns = chain.from_iterable(map(every_pattern, SOURCES))
    found = [one for one in patterns if one.pattern not in OF_THE_USER | OF_SHORT_TEXTS]
    assert len(found) > 90
    places = {one.where.partition(":")[0] for one in found}
    assert {"ot.output.sanitize.IN_TEXT", "ot/runtime/snippets.py"} <= places, "with a name and without"
    slow = {one.where: hurt for one in found if (hurt := super_linear(one.pattern, one.flags, one.used))}
    assert slow == {}


def test_the_patterns_of_packs_in_workers_are_written_out_or_made_of_escaped_texts() -> None:
    calls = [
        call
        for file in (PACKS / "ot_packs").rglob("*.py")
        for call in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "re.compile"
    ]
    assert len(calls) > 10
    put_together = [ast.unparse(call.args[0]) for call in calls if not isinstance(call.args[0], ast.Constant)]
    assert sorted(put_together) == [r"'\\s+'.join(words)", "'|'.join(map(re.escape, arguments.get('names', ())))"]


@pytest.mark.parametrize(
    "pattern",
    [
        r"<\s*/?\s*external-content[^>\n]{0,100}>?",
        r"(?P<fence>`{3,}|~{3,})[ \t]*[\w+-]*[ \t]*\n(?P<code>.*?)\n?(?P=fence)[`~]*",
        r"(a+)+b",
        r"(a|a)*b",
        r"(\w+\s?)+:",
        r"\s+$",
        r"a.*b.*c",
        r"(?:x[ab]*)+y",
    ],
)
def test_a_pattern_that_is_super_linear_is_found(pattern: str) -> None:
    assert super_linear(pattern)


@pytest.mark.parametrize(
    "pattern", [r"<\s*+/?+\s*+external-content", r"\w+", r"(?:[^\"\\]+|\\.)*+", r"[ab]{1,50}c", r"\bname\b|[0-9]x"]
)
def test_a_linear_pattern_passes(pattern: str) -> None:
    assert not super_linear(pattern)

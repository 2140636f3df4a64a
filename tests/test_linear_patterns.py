"""No regular expression over outside text takes more time than a multiple of the text's length."""

from __future__ import annotations

import ast
from itertools import chain

import pytest

from checkout import SOURCES
from linear_patterns import IN_WORKERS, every_pattern, super_linear
from ot.registry.value_shape import DATA
from ot.runtime.failure_text import NETWORK

SRC = SOURCES[0]
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
        for file in (SRC / "ot_tools" / IN_WORKERS).rglob("*.py")
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

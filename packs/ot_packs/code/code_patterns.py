"""Finds pieces of code by a pattern, and writes others in their place. It runs in the parser's process."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from functools import cache
from typing import Any

from ast_grep_py import SgNode, SgRoot

VARIABLE = re.compile(r"(\$\$\$|\$)([A-Z_][A-Z0-9_]*)")
NAMELESS = re.compile(r"\$\$\$(?![A-Z_])|(?:\$\$\$|\$)_[A-Z0-9_]*")
"""Variables that stand for anything, and of which nothing is kept."""
EXPRESSIONS = {"c": ("int _(void) { return ", "; }"), "go": ("package _\nfunc _() { _ = ", " }")}
"""Where an expression can stand in languages whose parsers take a call alone, such as f(x), for a type."""
MAX_NESTED = 50
TEXT = 2_000


class WrongPattern(Exception):
    """What the program gave cannot be a pattern, or cannot stand in its place."""


def find_all(root: SgNode, grammar: str, pattern: str) -> list[SgNode]:
    """Return the nodes that match, outer ones before those inside them.

    Raises:
        WrongPattern: It is not one piece of code in this language.
    """
    try:
        return root.find_all(pattern=_in_context(grammar, pattern))
    except RuntimeError:
        example = "'print($A)' or 'f($FIRST, $$$REST)'"
        raise WrongPattern(
            f"pattern {pattern!r:.200} is not one piece of code in this language, as {example} is"
        ) from None


@cache
def _in_context(grammar: str, pattern: str) -> Any:
    """Return the pattern, as part of a function where it is an expression that would be misread alone."""
    if grammar not in EXPRESSIONS:
        return pattern
    before, after = EXPRESSIONS[grammar]
    plain = pattern.replace("$", "x")  # names, to any parser
    root = SgRoot(f"{before}{plain}{after}", grammar).root()
    kinds = [node.kind() for node in root.find_all(regex=f"^{re.escape(plain)}$")]
    kind = next((each for each in kinds if each.endswith("_expression")), None)
    return {"context": f"{before}{pattern}{after}", "selector": kind} if kind else pattern


def matches(root: SgNode, grammar: str, pattern: str) -> Iterator[dict[str, Any]]:
    """Yield each match with what its variables stand for."""
    variables = VARIABLE.findall(pattern)
    for node in find_all(root, grammar, pattern):
        place = node.range()
        yield {
            "line": place.start.line + 1,
            "end_line": place.end.line + 1,
            "column": place.start.column + 1,
            "text": node.text()[:TEXT],
            "captures": {
                name: value for many, name in variables if (value := _read_capture(node, many, name)) is not None
            },
        }


def _read_capture(node: SgNode, many: str, name: str) -> str | list[str] | None:
    if many == "$$$":
        return [each.text()[:TEXT] for each in node.get_multiple_matches(name) if each.is_named()]
    found = node.get_match(name)
    return None if found is None else found.text()[:TEXT]


class Rewriting:
    """One file, in which each match becomes *replacement* with the variables filled in."""

    def __init__(self, text: str, root: SgNode, grammar: str, pattern: str, replacement: str) -> None:
        """Find the matches.

        Raises:
            WrongPattern: As above, or the replacement names what the pattern does not.
        """
        for nameless in {*NAMELESS.findall(pattern)} & {*NAMELESS.findall(replacement)}:
            raise WrongPattern(f"{nameless} captures nothing for the replacement: name it, as in $A or $$$ARGS")
        known = set(VARIABLE.findall(pattern))
        for many, name in VARIABLE.findall(replacement):
            if (many, name) not in known:
                raise WrongPattern(f"replacement names {many}{name}, which the pattern does not have")
        self.count = 0
        self._text = text
        returns = text.count("\r\n")
        self._newline = "\r\n" if returns and returns == text.count("\n") else "\n"
        self._replacement = replacement.replace("\r\n", "\n").replace("\n", self._newline)
        self._nodes = find_all(root, grammar, pattern)
        self._places = [(place.start.index, place.end.index) for place in (node.range() for node in self._nodes)]
        self._starts = [start for start, _ in self._places]

    def result(self) -> str:
        """Return the whole text, rewritten; matches inside what a variable stands for are rewritten too."""
        return self._write(0, len(self._text), 0, 0)

    def _write(self, start: int, end: int, first: int, nested: int) -> str:
        """Return this part of the text with the matches from number *first* on rewritten."""
        if nested > MAX_NESTED:
            raise WrongPattern(f"more than {MAX_NESTED} matches lie inside each other")
        parts: list[str] = []
        number, at = max(first, bisect_left(self._starts, start)), start
        while number < len(self._places) and self._starts[number] < end:
            if self._places[number][0] < at or self._places[number][1] > end:
                number += 1
                continue
            parts += [self._text[at : self._starts[number]], self._replace(number, nested)]
            at = self._places[number][1]
            number += 1
        return "".join((*parts, self._text[at:end]))

    def _replace(self, number: int, nested: int) -> str:
        self.count += 1
        node = self._nodes[number]

        def fill(variable: re.Match[str]) -> str:
            nodes = _nodes(node, variable[1], variable[2])
            if not nodes:
                return ""
            start, end = nodes[0].range().start.index, nodes[-1].range().end.index
            written = self._write(start, end, number + 1, nested + 1)
            # What the replacement has next must not become part of a comment.
            return written + self._newline if _ends_line(nodes[-1]) else written

        return VARIABLE.sub(fill, self._replacement)


def _ends_line(node: SgNode) -> bool:
    return "comment" in node.kind() and not node.text().startswith("/*")


def is_broken(root: SgNode) -> bool:
    """Return whether the code has a part that does not parse, or lacks one, such as a bracket."""
    # The parser puts what is missing in, without any text; other nodes without text have names of their own.
    lacking = (not node.is_named() or "identifier" in node.kind() for node in root.find_all(regex="^$"))
    return root.find(kind="ERROR") is not None or any(lacking)


def _nodes(node: SgNode, many: str, name: str) -> Sequence[SgNode]:
    if many == "$$$":
        return node.get_multiple_matches(name)
    found = node.get_match(name)
    return [] if found is None else [found]


def diff(path: str, before: str, after: str) -> str:
    """Return the change as a unified diff."""
    lines = unified_diff(_lines(before), _lines(after), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    return [line + "\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.rsplit("\n", 1)[-1]) else [])

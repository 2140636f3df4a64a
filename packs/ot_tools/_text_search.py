"""Finds lines in text by a regular expression, in linear time whatever the expression is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from ot.execution.tool_context import TooMuchHere

MAX_PATTERN = 1000
MAX_LINE = 500
"""Characters of a line that are shown."""
BEFORE_MATCH = 100
"""Bytes shown before the match where a line is too long."""
SMALL_MEMORY = 1 << 20
"""Bytes that RE2 may use for an expression in the server's process: it holds the interpreter while it compiles."""


class Expression(Protocol):
    """A compiled pattern, of whichever library there is."""

    def search(self, text: bytes, pos: int, /) -> Any:
        """Return the first match from *pos* on, or nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that matches, with its neighbours."""

    line: int
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def compile_pattern(pattern: str, *, ignore_case: bool, small: bool = False) -> Expression:
    """Return an expression that matches inside single lines; a *small* one is compiled in a few milliseconds.

    Raises:
        ValueError: RE2 does not accept the pattern, or is not there and the pattern is more than plain text.
        TooMuchHere: It is not a small one.
    """
    if not pattern or len(pattern) > MAX_PATTERN:
        raise ValueError(f"a pattern has 1 to {MAX_PATTERN:,} characters, this one has {len(pattern):,}")
    try:
        import re2  # noqa: PLC0415 - there is no wheel for every system
    except ImportError:
        return _plain_text(pattern, ignore_case=ignore_case)
    return _linear(re2, pattern, ignore_case=ignore_case, small=small)


def _linear(re2: Any, pattern: str, *, ignore_case: bool, small: bool) -> Expression:
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.never_nl = True
    options.log_errors = False
    if small:
        options.max_mem = SMALL_MEMORY
    try:
        return re2.compile(f"(?m){pattern}", options)
    except (re2.error, UnicodeEncodeError) as error:
        if small and "too large" in str(error):
            raise TooMuchHere from None
        why = (
            error.args[0].decode(errors="replace") if isinstance(error, re2.error) else "it holds an unpaired surrogate"
        )
        raise ValueError(
            f"{pattern!r} cannot be searched: {why} (RE2 syntax: as Python's, but no look-around or backreferences)"
        ) from None


def _plain_text(pattern: str, *, ignore_case: bool) -> Expression:
    # Python's own expressions can take for ever on a hostile pattern, and nothing could stop them.
    if re.search(r"[\\^$.|?*+()\[\]{}]", pattern):
        raise ValueError(f"{pattern!r} needs the google-re2 package, which is missing here: search for plain text")
    return re.compile(re.escape(pattern.encode()), re.IGNORECASE if ignore_case else 0)


def find_lines(data: bytes, expression: Expression, *, context: int = 0) -> Iterator[Hit]:
    """Yield every line that matches, once; only a line feed, or both carriage return and line feed, ends a line."""
    data = data.replace(b"\r\n", b"\n")
    number, counted, place = 1, 0, 0
    while place < len(data) and (match := expression.search(data, place)):
        start = data.rfind(b"\n", 0, match.start()) + 1
        if start >= len(data):
            return  # an expression that matches nothing at all also meets the end of the text
        number += data.count(b"\n", counted, start)
        end = _line_end(data, start)
        shown = _show_line(data[start:end], match.start() - start)
        yield Hit(number, shown, _lines_before(data, start, context), _lines_after(data, end, context))
        counted, place = start, end + 1


def _line_end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return len(data) if end < 0 else end


def _lines_before(data: bytes, start: int, count: int) -> tuple[str, ...]:
    lines: list[str] = []
    while len(lines) < count and start > 0:
        end, start = start - 1, data.rfind(b"\n", 0, start - 1) + 1
        lines.append(_show_line(data[start:end]))
    return tuple(reversed(lines))


def _lines_after(data: bytes, end: int, count: int) -> tuple[str, ...]:
    lines: list[str] = []
    while len(lines) < count and end + 1 < len(data):
        start, end = end + 1, _line_end(data, end + 1)
        lines.append(_show_line(data[start:end]))
    return tuple(lines)


def _show_line(line: bytes, match: int = 0) -> str:
    """Return the line, or of a long one the part around the match."""
    start = max(0, match - BEFORE_MATCH) if len(line) > MAX_LINE else 0
    while start > 0 and start > match - BEFORE_MATCH - 3 and line[start] & 0xC0 == 0x80:
        start -= 1  # not into the middle of a character
    # A character has at most four bytes.
    return line[start : start + 4 * MAX_LINE].decode(errors="replace")[:MAX_LINE]

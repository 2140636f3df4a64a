"""Finds the lines of a stored result that match a pattern, or are like a text, in bounded time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from ot.output.result_lines import LineBlock

MAX_PATTERN_LENGTH = 1000
MAX_PROGRAM_SIZE = 10_000
MAX_REGEX_MEMORY = 8 << 20
MAX_FUZZY_LENGTH = 100
MAX_FUZZY_RESULTS = 1000
FUZZY_LINE = 4096
"""Only this many characters of a line are compared."""

FUZZY_CUTOFF = 70.0
SEARCH_SECONDS = 10.0
SLOW_SECONDS = 0.5
SLOW_BYTES = 100_000_000
"""A search that sees fewer bytes in a second of the processor's time is stopped after ``SLOW_SECONDS`` of it.

Ordinary patterns see several times as many; only hostile ones are so slow.
"""
_META_CHARACTERS = frozenset("\\.^$*+?{}[]|()")
_TEXT_ANCHOR = re.compile(r"(?:[^\\]|\\[^AzC])*?(\\[AzC])", re.DOTALL)
_LINE_MODE_OFF = re.compile(r"\(\?[imsU]*-[imsU]*m")
_HINTS = (
    (re.compile(r"invalid perl operator: \(\?<?[=!]"), "unsupported: look-around"),
    (re.compile(r"invalid escape sequence: \\[1-9]"), "unsupported: back-reference"),
    (re.compile(r"repetition operator: \{|repetition size|too large"), "too large: a repetition goes up to 1000"),
)


@dataclass(frozen=True, slots=True)
class LineHit:
    """A line that was found, and how many of its bytes come before the match."""

    number: int
    column: int = 0


@dataclass(frozen=True, slots=True)
class Closest:
    """The lines most like a text, best first."""

    hits: tuple[LineHit, ...]
    stopped_at: int | None = None
    """The line where the time was up, if it was."""


Find = Callable[[bytes, int], int]
"""Takes lines and a place, and returns where the first match within one line begins at or after it, or -1."""


def finder(pattern: str) -> Find:
    """Return a finder of *pattern*, a literal text or an RE2 pattern, in time linear in the text.

    Raises:
        ValueError: It is too long, or not an RE2 pattern.
    """
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise ValueError(f"search is too large: at most {MAX_PATTERN_LENGTH} characters, got {len(pattern)}")
    if _META_CHARACTERS.isdisjoint(pattern):
        text = pattern.encode()
        return lambda lines, start: -1 if b"\n" in text else lines.find(text, start)
    if anchor := _TEXT_ANCHOR.match(pattern):
        raise ValueError(f"search cannot use {anchor[1]}: it looks at one line at a time, whose ends are ^ and $")
    if _LINE_MODE_OFF.search(pattern):
        raise ValueError("search cannot turn off (?m): it looks at one line at a time")
    regex = _compile(pattern)
    return lambda lines, start: found.start() if (found := regex.search(lines, start)) else -1


def matching(blocks: Iterable[LineBlock], find: Find) -> Iterator[LineHit]:
    """Yield the matching lines in their order."""
    last = 0
    for block in blocks:
        for hit in _matching_in(block, find):
            if hit.number > last:  # a long line comes in several pieces
                yield hit
            last = hit.number


def closest(blocks: Iterable[LineBlock], wanted: str, seconds: float) -> Closest:
    """Return the lines most like *wanted*, letter case aside, as far as they can be compared within *seconds*.

    Raises:
        ValueError: *wanted* is too long.
    """
    if len(wanted) > MAX_FUZZY_LENGTH:
        raise ValueError(f"a fuzzy search takes at most {MAX_FUZZY_LENGTH} characters, got {len(wanted)}")
    deadline = time.monotonic() + seconds
    best: list[tuple[float, int]] = []
    stopped_at = None
    for block in blocks:
        cutoff = -best[-1][0] if len(best) == MAX_FUZZY_RESULTS else FUZZY_CUTOFF
        if cutoff == 100:
            break  # nothing can be better than these
        if time.monotonic() > deadline:
            stopped_at = block.number
            break
        best = sorted(best + _scores(block, wanted.lower(), cutoff))[:MAX_FUZZY_RESULTS]
    return Closest(tuple(LineHit(number) for _, number in best), stopped_at)


def _matching_in(block: LineBlock, find: Find) -> Iterator[LineHit]:
    # A piece's borders are not a line's: ^ must not match at its start, nor $ at its end. No pattern matches 0xff.
    lines = block.text() + (b"\xff" if block.ends_in_line else b"")
    position = 1 if block.column else 0
    number = line_start = 0
    while position <= len(lines) and (found := find(lines, position)) >= 0:
        start = lines.rfind(b"\n", 0, found) + 1
        # Which line a block begins with is only asked when something is found in it.
        number = (number or block.number) + lines.count(b"\n", line_start, start)
        line_start = start
        yield LineHit(number, found - start + (0 if start else block.column))
        position = lines.find(b"\n", found) + 1 or len(lines) + 1


def _scores(block: LineBlock, wanted: str, cutoff: float) -> list[tuple[float, int]]:
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - only fuzzy searches need it, no start-up should pay for it

    lines = block.text().decode(errors="replace").lower().split("\n")
    first = block.number
    numbered = {first + place: line[:FUZZY_LINE] for place, line in enumerate(lines)}
    if block.column:
        del numbered[first]  # the start of this line was compared before
    # In a line shorter than the query, a part of the query would match: the wrong way round.
    long = {number: line for number, line in numbered.items() if len(line) >= len(wanted)}
    short = {number: line for number, line in numbered.items() if len(line) < len(wanted)}
    found = [
        *process.extract(wanted, long, scorer=fuzz.partial_ratio, limit=None, score_cutoff=cutoff),
        *process.extract(wanted, short, scorer=fuzz.ratio, limit=None, score_cutoff=cutoff),
    ]
    return [(-score, number) for _, score, number in found]


def _compile(pattern: str) -> Any:
    try:
        import re2  # noqa: PLC0415 - it has no wheel for every platform, and only searches need it
    except ImportError:
        raise ValueError("search takes plain text only: google-re2, needed for patterns, is not installed") from None
    engine = cast(Any, re2)
    options = engine.Options()
    options.max_mem = MAX_REGEX_MEMORY
    options.never_nl = True
    options.never_capture = True
    options.log_errors = False
    try:
        regex = engine.compile(b"(?m)" + pattern.encode(), options)
    except engine.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        hint = next((f" ({text})" for pattern, text in _HINTS if pattern.search(reason)), "")
        raise ValueError(f"search is not a valid RE2 pattern: {reason[:200]}{hint}") from None
    finally:
        engine.purge()  # the library would keep the last 128 patterns in memory
    if regex.programsize > MAX_PROGRAM_SIZE:
        raise ValueError("search is too large: use fewer or smaller repetitions")
    return regex


class SearchTime:
    """Lets blocks pass until the time is up, and remembers where that was."""

    def __init__(self) -> None:
        """Begin now."""
        self._start = time.monotonic()
        self._work = time.thread_time()
        self.stopped_at: int | None = None

    @property
    def seconds(self) -> float:
        """How long it has been."""
        return time.monotonic() - self._start

    def watch(self, blocks: Iterable[LineBlock]) -> Iterator[LineBlock]:
        """Yield *blocks* while there is time."""
        for block in blocks:
            if self.seconds > SEARCH_SECONDS or self._is_slow(block.start):
                self.stopped_at = block.number
                return
            yield block

    def _is_slow(self, seen: int) -> bool:
        worked = time.thread_time() - self._work
        return worked > SLOW_SECONDS and seen < SLOW_BYTES * worked

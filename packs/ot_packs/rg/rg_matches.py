"""Turns what ripgrep says of one file into matches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from open_tree import OpenTree
from ripgrep_run import OneFile, raw_of, relative_path

WIDTH = 500
MULTILINE_WIDTH = 2_000
MAX_PARTS = 100


@dataclass(frozen=True)
class FoundLine:
    """A match with the lines around it."""

    path: str
    line: int
    column: int
    text: str
    matched: list[str]
    before: list[str]
    after: list[str]


def file_matches(messages: Sequence[dict[str, Any]], tree: OpenTree | OneFile, context: int) -> Iterator[FoundLine]:
    """Yield the matches of one file, as far as the file really holds them; those before a NUL make no text of it."""
    if messages[-1].get("binary_offset") is not None:
        return
    spoken = [each for each in messages if "lines" in each]
    if isinstance(tree, OneFile):
        yield from _hits(tree.path, spoken, context)
        return
    relative = relative_path(raw_of(messages[0]["path"]))
    with tree.open(relative) as file:
        if file is not None:
            yield from _hits(tree.name_of(relative), [each for each in spoken if _is_in(file, each)], context)


def _is_in(file: int, message: dict[str, Any]) -> bool:
    raw = raw_of(message["lines"])
    return os.pread(file, len(raw), message["absolute_offset"]) == raw


def _hits(path: str, messages: Sequence[dict[str, Any]], context: int) -> Iterator[FoundLine]:
    lines = {
        each["line_number"] + below: line
        for each in (messages if context else ())
        for below, line in enumerate(_line_texts(each))
    }
    for each in messages:
        if each["type"] == "match":
            yield _hit(path, each, lines, context)


def _hit(path: str, message: dict[str, Any], lines: dict[int, str], context: int) -> FoundLine:
    raw, parts = raw_of(message["lines"]), message["submatches"]
    text = _text(raw)
    first = last = message["line_number"]
    last += text.count("\n")
    start = len(_text(raw[: parts[0]["start"]])) if parts else 0
    return FoundLine(
        path,
        first,
        column=start + 1,
        text=_around(text, start, MULTILINE_WIDTH if last > first else WIDTH),
        matched=[_text(raw_of(part["match"]))[:WIDTH] for part in parts[:MAX_PARTS]],
        before=[lines[number] for number in range(first - context, first) if number in lines],
        after=[lines[number] for number in range(last + 1, last + 1 + context) if number in lines],
    )


def _line_texts(message: dict[str, Any]) -> list[str]:
    return [line[:WIDTH] for line in _text(raw_of(message["lines"])).split("\n")]


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace").removesuffix("\n").removesuffix("\r")


def _around(text: str, start: int, width: int) -> str:
    """Return at most *width* characters, beginning a little before the match."""
    if len(text) <= width:
        return text
    begin = max(0, min(start - width // 4, len(text) - width))
    return text[begin : begin + width]

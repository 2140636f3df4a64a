"""Writes a value that is too large to be read whole as lines of JSON, a few parts at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson

from ot.execution.message_parts import end_of_text
from ot.execution.unread import Unread
from ot.output.formats import stored_text
from ot_sdk.tagged_decode import TAG, decode

MARK = re.compile(rb'["\[\]{},]')
INNER = re.compile(rb'["\[\]{}]')
TAGGED = re.compile(rb'\{"\$ot":"(\w{1,20})","v":(?=\[)')
WRITTEN = f'"{TAG}"'.encode()
SCALARS = re.compile(rb'(?:[^"\[\]{},]++,)++')
SIMPLE = re.compile(
    rb'(?:"(?:[^"\\]++|\\.)*+":)?+'  # a key
    rb'(?:[^"\[\]{},]++|"(?:[^"\\]++|\\.)*+"|[\[{](?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+[\]}])(?=[,\]}])'
)
"""An element that holds no container in a container, or a key and its value: found quickly."""
BATCH_BYTES = 1 << 16
MOST_READ = 4 * BATCH_BYTES


def unread_lines(value: Unread) -> Iterator[str]:
    """Yield the text of *value*, an element or a key a line, as other values are stored.

    Raises:
        ValueError: It is no JSON.
    """
    tag = TAGGED.match(value.data)
    start = tag.end() if tag else 0
    pairs = tag is not None and tag[1] == b"dict"
    is_dict = pairs or value.data[start : start + 1] == b"{"
    whole = b'{"$ot":"dict","v":[%b]}' if pairs else b"{%b}" if is_dict else b"[%b]"
    tagged, first = WRITTEN in value.data, True
    yield "{" if is_dict else "["
    for batch in _batches(value.data, start + 1):
        yield "" if first else ",\n"
        joined = b",".join(batch)
        if len(joined) > MOST_READ:  # one large element: it stays as it is
            yield joined.decode()
        else:
            read = orjson.loads(whole % joined)
            # Without a tag in it a value is what JSON says.
            yield stored_text(decode(read), None)[1:-1] if tagged else b",\n".join(batch).decode()
        first = False
    yield "}" if is_dict else "]"


def _batches(data: bytes, place: int) -> Iterator[list[bytes]]:
    """Yield the elements of the container that opened before *place*, some at a time."""
    batch: list[bytes] = []
    size = 0
    for element in _elements(data, place):
        batch.append(element)
        size += len(element)
        if size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _elements(data: bytes, start: int) -> Iterator[bytes]:
    place, depth = start, 0
    while True:
        while not depth and place == start and (found := SCALARS.match(data, place, place + BATCH_BYTES)):
            yield from found[0][:-1].split(b",")
            start = place = found.end()
        if not depth and place == start and (found := SIMPLE.match(data, place, place + BATCH_BYTES)):
            place = found.end()
        mark = (MARK if not depth else INNER).search(data, place)
        if mark is None:
            raise ValueError("the value has no end")
        sign, place = mark[0], mark.end()
        if sign == b'"':
            place = end_of_text(data, place)
        elif sign in b"[{":
            depth += 1
        elif sign == b",":
            if not depth:
                yield data[start : place - 1]
                start = place
        elif depth:
            depth -= 1
        else:
            if start < place - 1:
                yield data[start : place - 1]
            return

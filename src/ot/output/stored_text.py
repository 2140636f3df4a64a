"""How values are written to the result store: an element or a key a line, so that lines mean something."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import orjson

from ot.output.formats import compact_json, serialize_result
from ot.output.json_reader import JsonReader, NotJson
from ot.output.result_blobs import Form
from ot.values.jsonable import Describe, describe_type, jsonable
from ot.values.parts import Unread
from ot_sdk.tagged import TAG, decode

TAGGED = re.compile(rb'\{"\$ot":"(\w{1,20})","v":(?=\[)')
WRITTEN = f'"{TAG}"'.encode()
BATCH_BYTES = 1 << 16
MOST_READ = 4 * BATCH_BYTES


def stored_text(value: Any, format: object, describe: Describe = describe_type) -> str:
    """Return *value* as it is written to the result store: an element or a key a line, so that lines mean something."""
    shown = jsonable(value, describe) if stored_form(value, format) == "json" else None
    if isinstance(shown, dict):
        return "{" + ",\n".join(f"{compact_json(key)}:{compact_json(item)}" for key, item in shown.items()) + "}"  # pyright: ignore[reportUnknownVariableType] - JSON types
    if isinstance(shown, list):
        return "[" + ",\n".join(compact_json(item) for item in shown) + "]"  # pyright: ignore[reportUnknownVariableType] - JSON types
    return serialize_result(value, format, describe)


def stored_form(value: Any, format: object) -> Form:
    """Return the stored form of *value*, as ``stored_text`` writes it."""
    compact = format not in ("raw", "yml", "yml_h", "json_h")
    return "json" if compact and type(value) in (list, tuple, set, dict) else "text"


def unread_lines(value: Unread) -> Iterator[str]:
    """Yield the text of *value*, an element or a key a line, as other values are stored.

    Raises:
        ValueError: It is malformed.
    """
    tag = TAGGED.match(value.data)
    start = tag.end() if tag else 0
    pairs = tag is not None and tag[1] == b"dict"
    is_dict = pairs or value.data[start : start + 1] == b"{"
    whole = b'{"$ot":"dict","v":[%b]}' if pairs else b"{%b}" if is_dict else b"[%b]"
    tagged, first = WRITTEN in value.data, True
    yield "{" if is_dict else "["
    for batch in _batches(_elements(value.data, start, "}" if is_dict and not pairs else "]")):
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


def _batches(elements: Iterator[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for element in elements:
        batch.append(element)
        size += len(element)
        if size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _elements(data: bytes, at: int, closing: str) -> Iterator[bytes]:
    """Yield the elements, or the keys with their values, of the container at *at*."""
    reader = JsonReader(lambda start, length: data[start : start + length], len(data), math.inf)
    last = 0
    try:
        for place in reader.parts(at, closing):
            if last:
                yield data[last:place].rstrip(b", \t\r\n")
            last = place
    except (NotJson, RecursionError):
        raise ValueError("the value is malformed JSON, or nested too deeply") from None
    if last:
        yield data[last : data.rindex(closing.encode())]

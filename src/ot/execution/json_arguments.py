"""Arguments as JSON has them, for tools that are called over a wire that has nothing else."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import PurePath
from typing import Any, cast

MAX_INT_BITS = 14_000
"""Python reads and writes no whole number that has more; nor do most readers of JSON."""
HINTS: Mapping[type, str] = {
    bytes: "give text, such as base64.b64encode(data).decode()",
    set: "give a list, such as sorted(values)",
    frozenset: "give a list, such as sorted(values)",
    datetime.datetime: "give text, such as value.isoformat()",
    datetime.date: "give text, such as value.isoformat()",
    datetime.time: "give text, such as value.isoformat()",
    datetime.timedelta: "give a number, such as value.total_seconds()",
    Decimal: "give float(value) or str(value)",
}


class NotJson(ValueError):
    """A value that JSON does not have; ``where`` tells its place, ``hint`` what to give instead."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what, hint)
        self.where = ""
        self.what = what
        self.hint = hint

    def below(self, step: str) -> NotJson:
        """Return this with one step more before its place."""
        self.where = step + self.where
        return self


def json_value(value: Any) -> Any:
    """Return *value* made of what JSON has: tuples become lists and paths text.

    Raises:
        NotJson: Some part has no form in JSON.
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        if value.bit_length() <= MAX_INT_BITS:
            return value
        raise NotJson("is a whole number of more than 4,000 digits", "give text, such as hex(value)")
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise NotJson(f"is {value}, which JSON has no number for", "give a finite number or None")
    if isinstance(value, dict):
        return {_key(key): _below(f"[{key!r}]", part) for key, part in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_below(f"[{place}]", part) for place, part in enumerate(cast("list[Any]", value))]
    if isinstance(value, PurePath):
        return str(value)
    kind = type(cast("object", value))
    raise NotJson(f"is {kind.__name__}, which JSON does not have", HINTS.get(kind, "give plain data"))


def _below(step: str, part: Any) -> Any:
    try:
        return json_value(part)
    except NotJson as error:
        raise error.below(step) from None


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise NotJson(f"has the key {key!r:.40}, and keys are text in JSON", "give str(key)")

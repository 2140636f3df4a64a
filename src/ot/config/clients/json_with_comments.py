"""JSON as editors write it: with comments, and commas before a closing bracket."""

from __future__ import annotations

import json
import re
from typing import Any, cast

# Nothing in it is tried a second way: a repository's file could make that take for ever.
GAP = r"(?>\s++|//[^\n]*+|/\*(?>.*?(?:\*/|\Z)))*+"
TOKEN = re.compile(rf'"(?:[^"\\\n]|\\.)*+"?|//[^\n]*+|/\*(?>.*?(?:\*/|\Z))|,(?={GAP}[}}\]])', re.DOTALL)


def read_json(data: bytes) -> dict[str, Any]:
    """Return the object that *data* holds.

    Raises:
        ValueError: It holds none; the message says where it stops making sense.
    """
    text = TOKEN.sub(
        lambda found: found.group() if found.group()[0] == '"' else _blank(found.group()), data.decode("utf-8-sig")
    )
    found: Any = json.loads(text) if text.strip() else {}
    if not isinstance(found, dict):
        raise ValueError("it holds no JSON object")
    return cast("dict[str, Any]", found)


def table(value: Any) -> dict[str, Any]:
    """Return *value* if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def texts(value: Any) -> list[str]:
    """Return the texts in *value* if it is a list, else none."""
    return [item for item in cast("list[Any]", value) if isinstance(item, str)] if isinstance(value, list) else []


def _blank(cut: str) -> str:
    # Lines stay lines, so that an error names the right one.
    return "\n" * cut.count("\n")

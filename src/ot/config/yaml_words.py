"""Plain values as YAML text, for lines that are put into a user's file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ot.config.document import scalar

PLAIN = re.compile(r"(?:-{1,2}[A-Za-z]|[A-Za-z_/.])[\w./@+*=-]*", re.ASCII)
OLD_WORDS = frozenset({"y", "n", "yes", "no", "on", "off"})
"""Text to us, but true or false to older readers."""

# JSON leaves these as they are, and a YAML file may not hold them.
UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
WIDTH = 100


def flow(value: Any) -> str:
    """Return *value* on one line."""
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value)
        return "{" + ", ".join(f"{flow(str(key))}: {flow(entry)}" for key, entry in entries.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(flow(item) for item in cast("Sequence[Any]", value)) + "]"
    if isinstance(value, str) and _is_plain(value):
        return value
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(value, ensure_ascii=False))


def block(key: str, value: Any, indent: str = "") -> list[str]:
    """Return ``key: value`` as lines, a mapping with an entry a line."""
    if isinstance(value, Mapping) and value:
        entries = cast("Mapping[str, Any]", value)
        below = [line for name, entry in entries.items() for line in block(name, entry, f"{indent}  ")]
        return [f"{indent}{flow(key)}:", *below]
    line = f"{indent}{flow(key)}: {flow(value)}"
    if len(line) <= WIDTH or not isinstance(value, list | tuple):
        return [line]
    items = cast("Sequence[Any]", value)
    return [f"{indent}{flow(key)}:", *(f"{indent}  - {flow(item)}" for item in items)]


def _is_plain(text: str) -> bool:
    return bool(PLAIN.fullmatch(text)) and isinstance(scalar(text), str) and text.lower() not in OLD_WORDS

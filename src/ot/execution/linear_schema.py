"""A schema without the patterns whose search takes more than linear time: somebody else wrote them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ot.registry.definition_limits import DATA

NOT_LINEAR = re.compile(r"\(\?<?[=!]|\(\?>|\\[1-9]|\\k|[*+?}]\+|\(\?\(")
"""Looking around, going back to what was found, and the like."""
OTHER_KEYS = ("additionalProperties", "unevaluatedProperties")


def linear_schema(schema: Any, *, patterns: bool = True) -> Any:
    """Return a copy of *schema* that leaves such patterns out, or all of them; it allows no less than before."""
    if isinstance(schema, list | tuple):
        return [linear_schema(part, patterns=patterns) for part in cast("Sequence[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    found = cast("Mapping[str, Any]", schema)
    copy = {key: part if key in DATA else linear_schema(part, patterns=patterns) for key, part in found.items()}
    if isinstance(copy.get("pattern"), str) and not (patterns and _is_linear(copy["pattern"])):
        del copy["pattern"]
    by_pattern = copy.get("patternProperties")
    if isinstance(by_pattern, dict) and not (patterns and all(map(_is_linear, cast("dict[str, Any]", by_pattern)))):
        # Without them, keys that they allow would count as others.
        for key in ("patternProperties", *OTHER_KEYS):
            copy.pop(key, None)
    return copy


def _is_linear(pattern: str) -> bool:
    return not NOT_LINEAR.search(pattern)

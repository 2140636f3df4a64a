"""Hypothesis strategies for JSON, and for JSON schemas good and bad."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(["id", "name", "max-results", "from", "a b", "größe", "", "1st", "class", "x"])
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, width=16) | st.text(max_size=5)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
REFERENCES = st.sampled_from(["#", "#/$defs/a", "#/properties/id", "http://127.0.0.1:9/x", "other.json", "#/nothing"])


def _with_keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    by_name = st.dictionaries(NAMES, inner, max_size=4)
    keywords = {
        "type": st.sampled_from(["string", "integer", "object", "array", "null", "nonsense", ["string", "null"], 3]),
        "properties": by_name | JSON,
        "required": st.lists(NAMES, max_size=3) | JSON,
        "items": inner,
        "anyOf": st.lists(inner, max_size=3) | JSON,
        "oneOf": st.lists(inner, max_size=3),
        "allOf": st.lists(inner, max_size=3),
        "enum": st.lists(SCALARS, max_size=20) | JSON,
        "const": JSON,
        "$ref": REFERENCES | JSON,
        "$defs": st.dictionaries(st.just("a"), inner, max_size=1),
        "default": JSON,
        "nullable": st.booleans(),
        "additionalProperties": st.booleans() | inner,
        "description": st.text(max_size=20) | JSON,
        "format": st.sampled_from(["date-time", "uri"]) | JSON,
        "pattern": st.sampled_from(["^a+$", "(", "(?=a)(a|aa)+$"]),
    }
    return st.fixed_dictionaries({}, optional=keywords)


SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.sampled_from([{"type": "string"}, {"type": "integer"}, {}]) | JSON, _with_keywords, max_leaves=12
)
OBJECTS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.just({"type": "string"}), _with_keywords, max_leaves=15
).filter(lambda schema: isinstance(schema, dict))

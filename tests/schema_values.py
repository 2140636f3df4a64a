"""Values made from a JSON schema, and values that are almost such ones."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from pydantic_core import to_jsonable_python

Values = st.SearchStrategy[Any]

LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXT = st.text(LETTERS, max_size=8)
NUMBERS = st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6, allow_nan=False, allow_infinity=False)
ANYTHING = (
    st.none()
    | st.booleans()
    | NUMBERS
    | TEXT
    | st.lists(NUMBERS, max_size=2)
    | st.dictionaries(TEXT, NUMBERS, max_size=2)
)
FORMATS: dict[str, Values] = {
    "date": st.dates(date(1, 1, 1)),
    "date-time": st.datetimes(datetime(1, 1, 1)),
    "duration": st.timedeltas(timedelta(days=-999), timedelta(days=999)),
    "uuid": st.builds(UUID, int=st.integers(0, 2**128 - 1)),
    "decimal": st.decimals(-1000, 1000),
    "path": TEXT,
    "binary": TEXT,
}


def values_of(schema: Any, root: dict[str, Any]) -> Values:
    """Return a strategy of values that *schema*, a part of *root*, allows; only what pydantic writes is known."""
    if "$ref" in schema:
        return st.deferred(lambda: values_of(root["$defs"][schema["$ref"].rpartition("/")[2]], root))
    if "anyOf" in schema or "oneOf" in schema:
        return st.one_of([values_of(part, root) for part in schema.get("anyOf") or schema["oneOf"]])
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    return {"object": _objects, "array": _arrays, "string": _texts}.get(schema.get("type"), _simple)(schema, root)


def _simple(schema: Any, root: dict[str, Any]) -> Values:
    low, high = schema.get("minimum", -(10**6)), schema.get("maximum", 10**6)
    low = schema.get("exclusiveMinimum", low - 1) + 1
    whole = st.integers(low, high)
    kinds: dict[Any, Values] = {
        "integer": whole | whole.map(float),
        "number": whole | st.floats(low, high),
        "boolean": st.booleans(),
        "null": st.none(),
        None: ANYTHING,
    }
    return kinds[schema.get("type")]


def _texts(schema: Any, root: dict[str, Any]) -> Values:
    if "pattern" in schema:
        # To Python alone a line's end may follow what $ matches.
        return st.from_regex(schema["pattern"].replace("$", r"\Z"))
    if "format" in schema:
        return FORMATS[schema["format"]].map(to_jsonable_python)
    return st.text(LETTERS, min_size=schema.get("minLength", 0), max_size=schema.get("maxLength", 8))


def _arrays(schema: Any, root: dict[str, Any]) -> Values:
    if "prefixItems" in schema:
        return st.tuples(*(values_of(part, root) for part in schema["prefixItems"])).map(list)
    return st.lists(
        values_of(schema.get("items", {}), root), min_size=schema.get("minItems", 0), max_size=schema.get("maxItems", 3)
    )


def _objects(schema: Any, root: dict[str, Any]) -> Values:
    if "properties" not in schema:
        more = schema.get("additionalProperties", {})
        return st.dictionaries(TEXT, values_of({} if more is True else more, root), max_size=3)
    parts = {name: values_of(part, root) for name, part in schema["properties"].items()}
    needed = schema.get("required", [])
    return st.fixed_dictionaries(
        {name: parts[name] for name in needed}, optional={name: parts[name] for name in parts if name not in needed}
    )


@st.composite
def almost(draw: st.DrawFn, values: Values) -> Any:
    """Draw a value of *values* with one place in it, at any depth, replaced, added or taken away."""
    return _changed(draw, draw(values))


def _changed(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, dict | list) and value and draw(st.integers(0, 3)):
        copy = value.copy()
        place = draw(st.sampled_from([*copy] if isinstance(copy, dict) else range(len(copy))))
        copy[place] = _changed(draw, copy[place])
        return copy
    if isinstance(value, dict) and draw(st.booleans()):
        name = draw(st.sampled_from([*value, "unknown"]))
        return {key: item for key, item in value.items() if key != name} or {"unknown": 1}
    return draw(ANYTHING)

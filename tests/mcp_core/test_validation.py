"""What a published schema allows is accepted; everything else is refused with the field's name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from pydantic_core import to_jsonable_python

from mcp_core import Result, ToolArguments, program_function, validated

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


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Level(IntEnum):
    LOW = 2
    HIGH = 3


@dataclass
class Point:
    x: int
    y: float = 0.0


class Label(TypedDict):
    text: str
    size: Size


class Part(BaseModel):
    """A plain model: what makes it strict is where it stands."""

    count: int
    when: date | None = None
    parts: list[Part] = Field(default_factory=list)


class Everything(ToolArguments):
    size: Size
    level: Level = Level.LOW
    day: date | None = None
    moment: datetime | None = None
    span: timedelta | None = None
    key: UUID | None = None
    place: Path | None = None
    price: Decimal | None = None
    data: bytes | None = None
    numbers: set[int] = Field(default_factory=set)
    pair: tuple[int, str] | None = None
    point: Point | None = None
    label: Label | None = None
    part: Part | None = None
    either: int | str | list[Part] | None = None
    kind: Literal["a", "b", 7] | None = None
    name: Annotated[str, Field(min_length=1, max_length=4)] = "x"
    word: Annotated[str, Field(pattern="^[a-z]+$")] = "x"
    share: Annotated[float, Field(ge=0, le=1)] = 0.5
    many: list[int] = Field(default=[1], min_length=1, max_length=3)
    flags: dict[str, bool] = Field(default_factory=dict)
    anything: Any = None


SCHEMA = Everything.model_json_schema()
VALUES = values_of(SCHEMA, SCHEMA)
ALLOWS = jsonschema_rs.Draft202012Validator(SCHEMA, validate_formats=False).is_valid


@given(VALUES)
def test_everything_that_the_schema_allows_is_accepted(arguments: dict[str, Any]) -> None:
    assert ALLOWS(arguments)
    result = validated(Everything, arguments)
    assert result.success, result.error


@given(almost(VALUES))
def test_everything_else_is_refused_with_the_name_of_a_field(arguments: Any) -> None:
    result = validated(Everything, arguments)
    if not ALLOWS(arguments):
        assert result.error_type == "invalid_arguments"
        names = [*Everything.model_fields, *(arguments if isinstance(arguments, dict) else ()), "arguments"]
        assert (result.error or "").startswith(tuple(f"{name}{end}" for name in names for end in (":", ".")))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"size": "huge"}, "size: Input should be 'small' or 'large'"),
        ({"size": "small", "part": {"count": "2"}}, "part.count: Input should be a valid integer"),
        ({"size": "small", "part": {"count": 2, "cuont": 2}}, "part.cuont: Extra inputs are not permitted"),
        ({"size": "small", "part": {"count": 1, "parts": [{"count": "1"}]}}, "part.parts.0.count: Input should be"),
        ({"size": "small", "label": {"text": "x", "size": "huge"}}, "label.size: Input should be"),
        ({"size": "small", "anything": [{"a": "\0"}]}, "anything.0.a: must not contain a NUL character"),
        ({"size": "small", "anything": {"a": "\ud800"}}, "anything.a: must not contain an unpaired surrogate"),
        ({"size": "small", "anything": {"a": float("nan")}}, "anything.a: Input should be a finite number"),
        ({"size": "small", "anything": object()}, "anything: is not JSON"),
    ],
    ids=range(9),
)
def test_what_is_wrong_is_named_with_its_place_at_any_depth(arguments: dict[str, Any], error: str) -> None:
    assert (validated(Everything, arguments).error or "").startswith(error)


def test_a_program_may_give_what_python_has_for_it() -> None:
    given = {
        "size": "small",
        "day": date(2026, 3, 1),
        "numbers": {1},
        "data": b"x",
        "place": Path("a"),
        "pair": (1, "a"),
    }
    found = validated(Everything, given).unwrap()
    assert (found.day, found.numbers, found.data, found.place) == (date(2026, 3, 1), {1}, b"x", Path("a"))


class Quote(BaseModel):
    price: Decimal
    on: date


class QuoteArguments(ToolArguments):
    symbol: str


def quote(args: QuoteArguments) -> Result[Quote]:
    """Return a price."""
    return Result.ok(Quote(price=Decimal("1.50"), on=date(2026, 3, 1)))


def strange(args: QuoteArguments) -> Result[object]:
    """Return what JSON has no word for."""
    return Result.ok(object())


def test_a_program_gets_a_model_as_plain_json() -> None:
    assert program_function(quote)(symbol="X") == {"price": "1.50", "on": "2026-03-01"}
    with pytest.raises(TypeError, match="object is not JSON"):
        program_function(strange)(symbol="X")

"""What a published schema allows is accepted, and everything else is refused with the field's name."""

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
from pydantic import BaseModel, Field

from mcp_core import Result, ToolArguments, program_function, validated
from schema_values import almost, values_of


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
        ({"size": "small", "anything": {"a": "\ud800"}}, "anything.a: must not contain half a character"),
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

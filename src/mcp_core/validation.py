"""Arguments from outside become a model, read as JSON, strictly at every depth, or a failure that names the field."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from mcp_core.result import Result

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MAX_PROBLEMS = 10
MAX_NAME = 100
MAX_DEPTH = 64
EXACT = 1 << 53
"""Below it a float that is whole is exactly that number."""
Place = tuple[str | int, ...]


class UnfitValue(ValueError):
    """What is wrong with a value, and where in the arguments it stands."""

    def __init__(self, what: str, where: Place = ()) -> None:
        super().__init__(what)
        self.where = where


def validated[M: BaseModel](model: type[M], arguments: object) -> Result[M]:
    """Return *arguments* as an instance of *model*, or the failure ``invalid_arguments``; it does not raise."""
    try:
        return Result.ok(model.model_validate_json(_as_json(arguments), strict=True, extra="forbid"))
    except UnfitValue as error:
        problem = f"{_name(error.where)}: {error}"
    except ValidationError as error:
        problem = _problems_text(error.errors(include_url=False, include_context=False, include_input=False))
    names = ", ".join(model.model_fields) or "none"
    advice = f"Correct the arguments and call again. Arguments: {names}."
    return Result.failure(problem, "invalid_arguments", instruction=advice)


def _as_json(arguments: object) -> str:
    given: object = dict[str, Any]() if arguments is None else arguments
    if not isinstance(given, Mapping):
        raise UnfitValue(f"must be an object, not {type(given).__name__}")
    return "{" + ",".join(_member(name, value) for name, value in cast("Mapping[Any, Any]", given).items()) + "}"


def _member(name: Any, value: Any) -> str:
    if not isinstance(name, str):
        raise UnfitValue("every name must be a text")
    try:
        # Bytes are the text that they are in UTF-8: so they are read again, at any depth.
        return f"{json.dumps(name)}:{to_json(as_json_has_it(value, (name,)), bytes_mode='utf8').decode()}"
    except PydanticSerializationError as error:
        raise UnfitValue(f"is not JSON: {error}", (name,)) from None


def as_json_has_it(value: Any, where: Place = ()) -> Any:
    """Return *value* with whole numbers as integers, for 2.0 is one in JSON; refuse what no file or reply can hold."""
    if len(where) > MAX_DEPTH:
        raise UnfitValue(f"is nested more than {MAX_DEPTH} deep", where[:1])
    if isinstance(value, str):
        _check_text(value, where)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise UnfitValue("Input should be a finite number", where)
        return int(value) if value.is_integer() and abs(value) < EXACT else value
    elif isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return {as_json_has_it(key, where): as_json_has_it(item, (*where, str(key))) for key, item in pairs}
    elif isinstance(value, list | tuple):
        return [as_json_has_it(item, (*where, place)) for place, item in enumerate(cast("list[Any]", value))]
    return value


def _check_text(value: str, where: Place) -> None:
    if "\0" in value:
        raise UnfitValue("must not contain a NUL character", where)
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise UnfitValue("must not contain half a character (a lone surrogate)", where)


def _problems_text(problems: list[ErrorDetails]) -> str:
    shown = [f"{_name(problem['loc'])}: {problem['msg']}" for problem in problems[:MAX_PROBLEMS]]
    more = len(problems) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _name(where: Place) -> str:
    place = ".".join(str(part)[:MAX_NAME] for part in where) or "arguments"
    return place.encode(errors="replace").decode()

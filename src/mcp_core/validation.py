"""Arguments from outside become a model, read as JSON, strictly at every depth, or a failure that names the field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json, to_jsonable_python

from mcp_core.result import Result

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
        given = as_json_has_it({} if arguments is None else arguments)
        if not isinstance(given, dict) or not all(isinstance(name, str) for name in cast("dict[Any, Any]", given)):
            raise UnfitValue(f"must be an object with names, not {type(arguments).__name__}")
        return Result.ok(model.model_validate_json(to_json(given), strict=True, extra="forbid"))
    except UnfitValue as error:
        problem = f"{_name(error.where)}: {error}"
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        shown = [f"{_name(one['loc'])}: {one['msg']}" for one in found[:MAX_PROBLEMS]]
        problem = "; ".join([*shown, *([f"and {len(found) - MAX_PROBLEMS} more"] if len(found) > MAX_PROBLEMS else [])])
    names = ", ".join(model.model_fields) or "none"
    advice = f"Correct the arguments and call again. Arguments: {names}."
    return Result.failure(problem, "invalid_arguments", instruction=advice)


def as_json_has_it(value: Any, where: Place = ()) -> Any:
    """Return *value* as JSON types, 2.0 as the integer that it is there; refuse what has no such form."""
    if len(where) > MAX_DEPTH:
        raise UnfitValue(f"is nested more than {MAX_DEPTH} deep", where[:1])
    if isinstance(value, str):
        _check_text(value, where)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise UnfitValue("Input should be a finite number", where)
        return int(value) if value.is_integer() and abs(value) < EXACT else value
    elif isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {as_json_has_it(key, where): as_json_has_it(item, (*where, str(key))) for key, item in pairs}
    elif isinstance(value, list | tuple):
        return [as_json_has_it(item, (*where, place)) for place, item in enumerate(cast("list[Any]", value))]
    elif value is not None and not isinstance(value, int):
        try:
            # Bytes are the text that they are in UTF-8: so they are read again, at any depth.
            return to_jsonable_python(value, bytes_mode="utf8")
        except ValueError as error:
            raise UnfitValue(f"is not JSON: {error}", where) from None
    return value


def _check_text(value: str, where: Place) -> None:
    if "\0" in value:
        raise UnfitValue("must not contain a NUL character", where)
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise UnfitValue("must not contain an unpaired surrogate", where)


def _name(where: Place) -> str:
    place = ".".join(str(part)[:MAX_NAME] for part in where) or "arguments"
    return place.encode(errors="replace").decode()

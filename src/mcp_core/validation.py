"""Arguments from outside become a model, or a failure that names each field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from mcp_core.result import Result
from mcp_core.tool_arguments import ToolArguments

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

INVALID = "invalid_arguments"
MAX_PROBLEMS = 10
MAX_NAME = 100


def validated[M: ToolArguments](model: type[M], arguments: object) -> Result[M]:
    """Return *arguments* as an instance of *model*, or the failure ``invalid_arguments``; it does not raise."""
    given: object = dict[str, Any]() if arguments is None else arguments
    if not isinstance(given, Mapping):
        return _invalid(f"arguments: must be an object, not {type(given).__name__}", model)
    named = dict(cast("Mapping[Any, Any]", given))
    if not all(isinstance(name, str) for name in named):
        return _invalid("arguments: every name must be a text", model)
    try:
        return Result.ok(model.model_validate(named))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        return _invalid(_problems_text(problems), model)
    except RecursionError:
        return _invalid("arguments: are nested too deep", model)


def _invalid(error: str, model: type[ToolArguments]) -> Result[Any]:
    names = ", ".join(model.model_fields) or "none"
    return Result.failure(error, INVALID, instruction=f"Correct the arguments and call again. Arguments: {names}.")


def _problems_text(problems: list[ErrorDetails]) -> str:
    shown = [f"{_place(problem)}: {problem['msg']}" for problem in problems[:MAX_PROBLEMS]]
    more = len(problems) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _place(problem: ErrorDetails) -> str:
    place = ".".join(str(part)[:MAX_NAME] for part in problem["loc"]) or "arguments"
    return place.encode(errors="replace").decode()

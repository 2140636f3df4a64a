"""Result: what a tool hands back, success or failure, as data that is always JSON.

Examples:
    >>> from mcp_core.result import Result
    >>> Result.ok(3, message="three found").to_json_str()
    '{"success":true,"value":3,"message":"three found"}'
    >>> Result.failure("no such page", "not_found", instruction="Ask which page is meant.").to_json_str()
    '{"success":false,"error":"no such page","error_type":"not_found","instruction":"Ask which page is meant."}'
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python


@dataclass(eq=False)
class ToolFailure(Exception):
    """A failure as an exception, for callers who want the value or nothing."""

    error: str
    error_type: str
    instruction: str | None = None

    def __str__(self) -> str:
        return f"{self.error_type}: {self.error}" + (f" ({self.instruction})" if self.instruction else "")


@dataclass(frozen=True)
class Result[T]:
    """The outcome of a tool; make one with `Result.ok` or `Result.failure`.

    ``message`` is for the user. ``instruction`` is for the agent: what to do next, or to leave alone.
    """

    success: bool
    value: T | None = None
    error: str | None = None
    error_type: str | None = None
    exception: BaseException | None = None
    message: str | None = None
    instruction: str | None = None

    def __post_init__(self) -> None:
        """Refuse a success with an error and a failure without one."""
        if any((field is None) != self.success for field in (self.error, self.error_type)):
            raise ValueError("a success carries no error, a failure carries error and error_type")

    @staticmethod
    def ok[V](value: V, *, message: str | None = None, instruction: str | None = None) -> Result[V]:
        """Return a success with *value*."""
        return Result(True, value, message=message, instruction=instruction)

    @staticmethod
    def failure(
        error: str,
        error_type: str = "error",
        *,
        exception: BaseException | None = None,
        message: str | None = None,
        instruction: str | None = None,
    ) -> Result[Any]:
        """Return a failure: *error* says what went wrong, *error_type* is its kind, for programs to tell apart."""
        return Result(False, None, error, error_type, exception, message, instruction)

    def unwrap(self) -> T:
        """Return the value, or raise `ToolFailure` for a failure."""
        if failure := failure_in(self):
            raise failure
        return self.value  # pyright: ignore[reportReturnType] - a success has its value, which may be None

    def to_json_str(self) -> str:
        """Return ``success``, then the fields that are set, as JSON text; what JSON does not know becomes text."""
        fields: dict[str, Any] = {"error": self.error, "error_type": self.error_type}
        if self.exception is not None:
            fields |= {"exception_type": type(self.exception).__name__, "exception_message": _words(self.exception)}
        fields |= {"message": self.message, "instruction": self.instruction}
        said = {name: text for name, text in fields.items() if text is not None}
        found = {"success": self.success, **({"value": self.value} if self.success else {}), **said}
        return "{" + ",".join(f'"{key}":{_json(value)}' for key, value in found.items()) + "}"


def failure_in(outcome: Any) -> ToolFailure | None:
    """Return the failure that a tool returned, as the exception that it could have raised; nothing for a success."""
    if not isinstance(outcome, Result) or outcome.success:
        return None
    return ToolFailure(outcome.error or "", outcome.error_type or "error", outcome.instruction)


def as_result(outcome: Any) -> Result[Any]:
    """Return a tool's value as a result, unless it already is one."""
    return cast("Result[Any]", outcome) if isinstance(outcome, Result) else Result.ok(outcome)


def json_value(value: Any) -> Any:
    """Return *value* as JSON types: models and dataclasses as dicts, dates as texts; TypeError for what has no form."""
    try:
        return to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="null")
    except (PydanticSerializationError, ValueError) as error:
        raise TypeError(f"{type(value).__name__} is not JSON: {error}") from None


def _json(value: object) -> str:
    try:
        return to_json(value, inf_nan_mode="null", bytes_mode="base64", fallback=_words).decode()
    except Exception:  # noqa: BLE001 - serialising a value runs other people's code
        # Cycles, lone surrogates and the like: a text for people is better than no answer.
        return json.dumps(_words(value))


def _words(value: object) -> str:
    """Return *value* as text that UTF-8 can carry, also when its own ``__str__`` raises."""
    try:
        text = str(value)
    except Exception:  # noqa: BLE001 - an object's own __str__ is other people's code
        text = f"<{type(value).__name__} without text>"
    return text.encode(errors="replace").decode()

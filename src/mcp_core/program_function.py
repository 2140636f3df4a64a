"""program_function: a typed tool as an ordinary function, for programs.

Examples:
    >>> from mcp_core import Result, ToolArguments, program_function
    >>> class AddArguments(ToolArguments):
    ...     a: int
    ...     b: int = 1
    >>> def add(args: AddArguments) -> Result[int]:
    ...     return Result.ok(args.a + args.b)
    >>> program_function(add)(a=2)
    3
    >>> program_function(add)(a="2")
    Traceback (most recent call last):
    mcp_core.program_function.InvalidArguments: a: Input should be a valid integer
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, get_type_hints

from pydantic.fields import FieldInfo

from mcp_core.published_schema import returned_type
from mcp_core.result import as_result, json_value
from mcp_core.tool_arguments import ToolArguments, required_model
from mcp_core.validation import validated

_notes: ContextVar[list[str]] = ContextVar("mcp_core_notes")


@contextmanager
def collect_notes() -> Generator[list[str]]:
    """Collect the messages and instructions of successes meanwhile, for a host that shows them beside the values."""
    notes: list[str] = []
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


class InvalidArguments(ValueError):
    """The arguments do not fit the tool's model; its caller knows the tool's name and signature, and adds them."""

    refuses_arguments = True


def program_function(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the model's fields, async if the tool is, that returns the value as JSON types or raises."""
    model = required_model(tool)
    if inspect.iscoroutinefunction(tool):

        @wraps(tool)
        async def call_later(**arguments: Any) -> Any:
            return _value(await tool(_validate(model, arguments)))

        return _set_signature(call_later, model)

    @wraps(tool)
    def call(**arguments: Any) -> Any:
        return _value(tool(_validate(model, arguments)))

    return _set_signature(call, model)


def _validate[M: ToolArguments](model: type[M], arguments: Mapping[str, Any]) -> M:
    found = validated(model, arguments)
    if not found.success:
        raise InvalidArguments(found.error)
    return found.unwrap()


def _value(outcome: Any) -> Any:
    result = as_result(outcome)
    value = json_value(result.unwrap())
    if (notes := _notes.get(None)) is not None:
        notes.extend(text for text in (result.message, result.instruction) if text)
    return value


def _set_signature(function: Callable[..., Any], model: type[ToolArguments]) -> Callable[..., Any]:
    # Without what stands in Annotated: a reader of a signature wants to know the types alone.
    types = get_type_hints(model)
    parameters = [
        inspect.Parameter(
            field.alias or name, inspect.Parameter.KEYWORD_ONLY, default=_default(field), annotation=types[name]
        )
        for name, field in model.model_fields.items()
    ]
    function.__signature__ = inspect.Signature(parameters, return_annotation=returned_type(function))  # pyright: ignore[reportFunctionMemberAccess] - what inspect looks for
    return function


def _default(field: FieldInfo) -> Any:
    required = field.is_required()
    return inspect.Parameter.empty if required else json_value(field.get_default(call_default_factory=True))

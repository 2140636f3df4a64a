"""program_function: a typed tool as an ordinary function, for programs.

Examples:
    >>> from mcp_core import Result, ToolArguments, program_function
    >>> class AddArguments(ToolArguments):
    ...     a: int
    ...     b: int = 1
    >>> def add(args: AddArguments) -> Result[int]:
    ...     '''Add two numbers.'''
    ...     return Result.ok(args.a + args.b)
    >>> program_function(add)(a=2)
    3
    >>> program_function(add)(a="2")
    Traceback (most recent call last):
    ValueError: a: Input should be a valid integer
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from mcp_core.result import Result
from mcp_core.tool_arguments import ToolArguments, arguments_model, validated


def program_function(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of keyword arguments that returns the result's value and raises its failure.

    It is asynchronous if the tool is, and its signature is that of the tool's argument model.

    Raises:
        TypeError: *tool* has no argument model.
    """
    model = arguments_model(tool)
    if model is None:
        raise TypeError(f"{tool.__name__} must have one parameter, annotated with a model of ToolArguments")

    if inspect.iscoroutinefunction(tool):

        @wraps(tool)
        async def call_later(**arguments: Any) -> Any:
            return _value(await tool(_checked(model, arguments)))

        return _signed(call_later, model)

    @wraps(tool)
    def call(**arguments: Any) -> Any:
        return _value(tool(_checked(model, arguments)))

    return _signed(call, model)


def _checked[M: ToolArguments](model: type[M], arguments: Mapping[str, Any]) -> M:
    found = validated(model, arguments)
    if not found.success:
        # The name of a built-in exception is what a program can catch on every engine.
        raise ValueError(found.error)
    return found.unwrap()


def _value(outcome: Any) -> Any:
    return outcome.unwrap() if isinstance(outcome, Result) else outcome  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - of any value


def _signed(function: Callable[..., Any], model: type[ToolArguments]) -> Callable[..., Any]:
    # Without what stands in Annotated: a reader of a signature wants to know the types alone.
    types, returns = get_type_hints(model), get_type_hints(inspect.unwrap(function)).get("return", Any)
    parameters = [_parameter(name, field, types[name]) for name, field in model.model_fields.items()]
    value = get_args(returns)[0] if get_origin(returns) is Result else returns
    function.__signature__ = inspect.Signature(parameters, return_annotation=value)  # pyright: ignore[reportFunctionMemberAccess] - what inspect looks for
    return function


def _parameter(name: str, field: FieldInfo, annotation: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

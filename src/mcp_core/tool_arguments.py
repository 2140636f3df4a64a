"""ToolArguments: the strict base of argument models, and the collection of the tools that use them.

`validated` makes a model of arguments from outside, or a failure that names each field.

Examples:
    >>> import asyncio
    >>> from typing import Literal
    >>> from pydantic import Field
    >>> from mcp_core import Result, ToolArguments
    >>> class CountArguments(ToolArguments):
    ...     of: Literal["words", "lines"] = Field(description="What to count")
    ...     text: str = ""
    >>> @ToolArguments.declare
    ... def count(args: CountArguments) -> Result[int]:
    ...     '''Count.'''
    ...     return Result.ok(len(args.text.split()))
    >>> print(CountArguments.to_schema_markdown())
    ## Arguments
    <BLANKLINE>
    - `of` (`"words" | "lines"`, required): What to count
    - `text` (`str`, optional, default `''`)
    >>> list(asyncio.run(ToolArguments.get_declared_tools()))
    ['count']
    >>> asyncio.run(ToolArguments.get_declared_tools())
    {}
"""

from __future__ import annotations

import inspect
import logging
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from pydantic.fields import FieldInfo

from mcp_core.consent import MEANING, WARNING, consent_in
from mcp_core.result import Result

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

logger = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])
Tool = Callable[..., Any]
MAX_DEPTH = 64
INVALID = "invalid_arguments"
MAX_PROBLEMS = 10
MAX_NAME = 100


class ToolArguments(BaseModel):
    """The base of argument models: nothing is converted, nothing unknown is let through, also on assignment."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, strict=True, allow_inf_nan=False)

    read_only: ClassVar[bool | None] = None
    """Whether the tool changes nothing; None leaves it open."""

    # The one collection of a process. A lock of threads guards it: modules are imported in threads, and a lock of
    # asyncio, shared by the loops of two threads, could leave one of them waiting for ever.
    _declared: ClassVar[dict[str, Tool]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Refuse a consent that could be given by accident, when the model is written."""
        consent_in(cls.model_fields)

    @field_validator("*", mode="before")
    @classmethod
    def _only_text_that_can_be_stored(cls, value: Any) -> Any:
        _check_text(value)
        return value

    @classmethod
    def consent_word(cls) -> str | None:
        """Return the word that a caller must pass as the user's consent, if the tool needs one."""
        consent = consent_in(cls.model_fields)
        return consent[1] if consent else None

    @classmethod
    def to_schema_markdown(cls) -> str:
        """Return the arguments as markdown: name, type, whether it is required, description."""
        lines = [_line(name, field) for name, field in cls.model_fields.items()]
        return "\n".join(["## Arguments", "", *(lines or ["None."])])

    @staticmethod
    def build_tool_description(function: Tool) -> str:
        """Return what an agent reads about a tool: its docstring, a warning if it needs consent, its arguments."""
        model = arguments_model(function)
        consent = consent_in(model.model_fields) if model else None
        warning = WARNING.format(name=consent[0], word=consent[1]) if consent else ""
        parts = [inspect.getdoc(function), warning, model.to_schema_markdown() if model else ""]
        return "\n\n".join(part for part in parts if part)

    @staticmethod
    def declare(function: F) -> F:
        """Add a tool to the collection and return it unchanged; a decorator, safe in any thread.

        Declared again by the same module it takes its own place, with a warning.

        Raises:
            ValueError: Another module has declared a tool of this name.
        """
        name = function.__name__
        with ToolArguments._lock:
            before = ToolArguments._declared.get(name)
            if before is not None and before.__module__ != function.__module__:
                raise ValueError(
                    f"{function.__module__} declares the tool '{name}', which is that of {before.__module__}"
                )
            ToolArguments._declared[name] = function
        if before is not None:
            logger.warning("the tool '%s' of %s is declared again and replaced", name, function.__module__)
        return function

    @staticmethod
    async def get_declared_tools() -> dict[str, Tool]:
        """Return all declared tools by name and empty the collection, so that none is registered twice."""
        with ToolArguments._lock:
            found = dict(ToolArguments._declared)
            ToolArguments._declared.clear()
        return found


def arguments_model(function: Tool) -> type[ToolArguments] | None:
    """Return the argument model of a tool, that is the annotation of its only parameter; none for other functions."""
    function = inspect.unwrap(function)
    if len(inspect.signature(function).parameters) != 1:
        return None
    (parameter,) = inspect.signature(function, eval_str=True).parameters.values()
    found: Any = parameter.annotation
    if not isinstance(found, type) or not issubclass(found, ToolArguments):
        return None
    # A model whose annotations were not known when it was written would hide its consent.
    found.model_rebuild()
    return found


def _check_text(value: object, depth: int = 0) -> None:
    """Refuse what no file and no reply can hold."""
    if depth > MAX_DEPTH:
        raise ValueError(f"is nested more than {MAX_DEPTH} deep")
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("must not contain a NUL character")
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise ValueError("must not contain half a character (a lone surrogate)")
    elif isinstance(value, dict):
        for key, item in cast("dict[object, object]", value).items():
            _check_text(key, depth + 1)
            _check_text(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in cast("list[object]", value):
            _check_text(item, depth + 1)


# ---------------------------------------------------------------- validation


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


# ---------------------------------------------------------------- description


def _line(name: str, field: FieldInfo) -> str:
    default: object = field.default
    optional = "optional" if field.default_factory else f"optional, default `{default!r}`"
    need = "required" if field.is_required() else optional
    consent = consent_in({"": field})
    what = " ".join((field.description or "").split()) or (MEANING.format(word=consent[1]) if consent else "")
    return f"- `{name}` (`{_type_text(field.annotation)}`, {need})" + (f": {what}" if what else "")


def _type_text(annotation: object) -> str:
    """Return a type as its author would write it, a Literal as its values."""
    if annotation is None or annotation is type(None):
        return "None"
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(_unique(f'"{value}"' if isinstance(value, str) else repr(value) for value in parts))
    if origin is Annotated:
        return _type_text(parts[0])
    if origin in (Union, types.UnionType):
        return " | ".join(_unique(_type_text(part) for part in parts))
    if origin is not None:
        named = cast("object", getattr(origin, "__name__", origin))
        return f"{named}[{', '.join('...' if part is ... else _type_text(part) for part in parts)}]"
    return str(getattr(annotation, "__name__", annotation))


def _unique(texts: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(texts))

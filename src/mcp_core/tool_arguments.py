"""ToolArguments: the strict base of argument models, and the collection of the tools that use them.

Examples:
    >>> from typing import Literal
    >>> from mcp_core import ToolArguments
    >>> class CountArguments(ToolArguments):
    ...     of: Literal["words", "lines"]
    >>> print(CountArguments.to_schema_markdown())
    ## Arguments
    <BLANKLINE>
    - `of` (`"words" | "lines"`, required)
"""

from __future__ import annotations

import inspect
import logging
import threading
import types
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, field_validator
from pydantic.fields import FieldInfo

from mcp_core.consent import MEANING, consent_in, consent_warning
from mcp_core.published_schema import PublishedSchema
from mcp_core.validation import as_json_has_it

logger = logging.getLogger(__name__)

Tool = Callable[..., Any]


class ToolArguments(BaseModel):
    """The base of argument models: nothing is converted, nothing unknown is let through, also on assignment."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, strict=True, allow_inf_nan=False)

    read_only: ClassVar[bool | None] = None
    """Whether the tool changes nothing; None leaves it open."""

    # The one collection of a process. A lock of threads guards it: modules are imported in threads, and a lock of
    # asyncio, shared by the loops of two threads, could leave one of them waiting for ever.
    _declared: ClassVar[dict[tuple[str, str], Tool]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Refuse a consent that could be given by accident, when the model is written."""
        consent_in(cls.model_fields)

    @field_validator("*", mode="after")  # one before would have pydantic read JSON as Python: no dates, no enums
    @classmethod
    def _fit(cls, value: Any) -> Any:
        as_json_has_it(value)
        return value

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """Return the JSON schema of the arguments; what it allows is accepted, all else refused."""
        schema = super().model_json_schema(*args, **{"schema_generator": PublishedSchema} | options)
        schema.pop("description", None)  # a tool's description says more than that of its model
        return schema

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
    def build_tool_description(function: Tool, *, arguments: bool = True) -> str:
        """Return what an agent reads about a tool: its docstring, a warning if it needs consent, its *arguments*."""
        model = arguments_model(function)
        warning = consent_warning(model.model_fields) if model else ""
        parts = [inspect.getdoc(function), warning, model.to_schema_markdown() if model and arguments else ""]
        return "\n\n".join(part for part in parts if part)

    @staticmethod
    def declare[F: Callable[..., Any]](function: F) -> F:
        """Add a tool to the collection, in the place of its module's own if need be, and return it unchanged."""
        key = (function.__module__, function.__name__)
        with ToolArguments._lock:
            again = key in ToolArguments._declared
            ToolArguments._declared[key] = function
        if again:
            logger.warning("the tool '%s' of %s is declared again and replaced", key[1], key[0])
        return function

    @staticmethod
    async def get_declared_tools(package: str = "") -> dict[str, Tool]:
        """Return all declared tools by name, or those of a *package*, and forget them: none is registered twice."""
        with ToolArguments._lock:
            keys = [key for key in ToolArguments._declared if f"{key[0]}.".startswith(f"{package}." if package else "")]
            modules = {name: module for module, name in reversed(keys)}
            for module, name in keys:
                if modules[name] != module:
                    raise ValueError(f"both {modules[name]} and {module} declare a tool '{name}': collect one package")
            return {key[1]: ToolArguments._declared.pop(key) for key in keys}


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


def required_model(function: Tool) -> type[ToolArguments]:
    """Return the argument model of a tool, which must have one."""
    model = arguments_model(function)
    if model is None:
        raise TypeError(f"{function.__name__} must have one parameter, annotated with a model of ToolArguments")
    return model


def _line(name: str, field: FieldInfo) -> str:
    default: object = field.default
    optional = "optional" if field.default_factory else f"optional, default `{default!r}`"
    need = "required" if field.is_required() else optional
    consent = consent_in({"": field})
    what = " ".join((field.description or "").split()) or (MEANING.format(word=consent[1]) if consent else "")
    return f"- `{name}` (`{_type_text(field.annotation)}`, {need})" + (f": {what}" if what else "")


def _type_text(annotation: Any) -> str:
    """Return a type as its author would write it, a Literal as its values."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_text(parts[0])
    if origin is Literal:
        return " | ".join(f'"{value}"' if isinstance(value, str) else repr(value) for value in parts)
    if origin in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(map(_type_text, parts)))
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(_type_text, parts))}]"
    if annotation is ...:
        return "..."
    return "None" if annotation is types.NoneType else getattr(annotation, "__name__", str(annotation))

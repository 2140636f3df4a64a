"""What an agent reads about a tool: the docstring, a warning where consent is needed, and the arguments."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic.fields import FieldInfo

from mcp_core.consent import MEANING, WARNING, consent_in


def build_description(function: Callable[..., Any], fields: dict[str, FieldInfo] | None) -> str:
    """Return docstring, warning and arguments of a tool as markdown; *fields* are those of its model, if it has one."""
    parts = [inspect.getdoc(function) or ""]
    if fields and (consent := consent_in(fields)):
        parts.append(WARNING.format(name=consent[0], word=consent[1]))
    if fields is not None:
        parts.append(schema_markdown(fields))
    return "\n\n".join(part for part in parts if part)


def schema_markdown(fields: dict[str, FieldInfo]) -> str:
    """Return one line for each argument: name, type, whether it is needed, and what it is."""
    lines = [_line(name, field) for name, field in fields.items()]
    return "\n".join(["## Arguments", "", *(lines or ["None."])])


def _line(name: str, field: FieldInfo) -> str:
    need = "required" if field.is_required() else f"optional{_default(field)}"
    what = field_description(field)
    return f"- `{name}` (`{type_text(field.annotation)}`, {need})" + (f": {what}" if what else "")


def field_description(field: FieldInfo) -> str:
    """Return what a field is, on one line."""
    consent = consent_in({"": field})
    return " ".join((field.description or "").split()) or (MEANING.format(word=consent[1]) if consent else "")


def _default(field: FieldInfo) -> str:
    default: object = field.default
    return "" if field.default_factory else f", default `{default!r}`"


def type_text(annotation: object) -> str:
    """Return a type as its author would write it, a Literal as its values."""
    if annotation is None or annotation is type(None):
        return "None"
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(_unique(f'"{value}"' if isinstance(value, str) else repr(value) for value in parts))
    if origin is Annotated:
        return type_text(parts[0])
    if origin in (Union, types.UnionType):
        return " | ".join(_unique(type_text(part) for part in parts))
    if origin is not None:
        named = cast("object", getattr(origin, "__name__", origin))
        return f"{named}[{', '.join('...' if part is ... else type_text(part) for part in parts)}]"
    return str(getattr(annotation, "__name__", annotation))


def _unique(texts: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(texts))

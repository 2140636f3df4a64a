"""Documents: markdown with a title, a description and tags in its front matter."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

import yaml
from pydantic import Field

from mcp_core import Result, ToolFailure

MAX_BYTES = 256 << 10
MAX_FRONT = 8 << 10
MAX_TITLE = 200
MAX_TAGS = 20

Name = Annotated[str, Field(pattern="^[a-z0-9_-]+$")]
"""Small letters, digits, - and _: no path can be made of it, on any system."""
Tag = Annotated[str, Field(min_length=1, max_length=50)]
Source = Literal["project", "user"]

_FRONT = re.compile(r"\A---[ \t]*\r?\n(?P<front>.*?)^---[ \t]*(?:\r?\n|\Z)", re.M | re.S)


class DocumentInfo(TypedDict):
    """What a listing says of a document."""

    category: str
    name: str
    title: str
    description: str
    tags: list[str]
    source: Source


class Document(DocumentInfo):
    """A document and its text without the front matter, and why its template was left as it is, if it was."""

    text: str
    unrendered: NotRequired[str]


def read_document(category: str, name: str, source: Source, content: str) -> Document:
    """Return the document that a file's content is; front matter that cannot be read is part of the text."""
    front, text = _split(content)
    return {
        "category": category,
        "name": name,
        "title": _line(front.get("title")) or _heading(text) or name,
        "description": _line(front.get("description")),
        "tags": _tags(front.get("tags")),
        "source": source,
        "text": text,
    }


def compose(title: str, description: str, tags: Sequence[str], text: str) -> str:
    """Return the content of a document's file."""
    front = {key: value for key, value in (("title", title), ("description", description), ("tags", [*tags])) if value}
    return f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---\n{text}" if front else text


def info_of(document: Document) -> DocumentInfo:
    """Return the document without its text."""
    return {key: value for key, value in document.items() if key != "text"}  # pyright: ignore[reportReturnType] - all but one of its keys


def _split(content: str) -> tuple[dict[str, Any], str]:
    found = _FRONT.match(content[: MAX_FRONT * 2])
    if not found or len(found["front"]) > MAX_FRONT:
        return {}, content
    try:
        # The loader in Python ends deep nesting with an error, the one in C with the process.
        front: Any = yaml.load(found["front"], Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, content
    return (cast("dict[str, Any]", front), content[found.end() :]) if isinstance(front, dict) else ({}, content)


def _line(value: object) -> str:
    return " ".join(value.split())[:MAX_TITLE] if isinstance(value, str) else ""


def _tags(value: Any) -> list[str]:
    """Return the tags of a list, or of one line: ``python`` or ``python, style``."""
    tags = cast("list[Any]", value) if isinstance(value, list) else value.split(",") if isinstance(value, str) else []
    return [tag for tag in (_line(tag)[:50] for tag in tags) if tag][:MAX_TAGS]


def _heading(text: str) -> str:
    found = re.search(r"^# +(.+)$", text[:2000], re.M)
    return _line(found[1]) if found else ""


def answer[T](work: Callable[[], T]) -> Result[T]:
    """Return the value of *work*, or its failure, as a result."""
    try:
        return Result.ok(work())
    except ToolFailure as error:
        return Result.failure(error.error, error.error_type, instruction=error.instruction)
    except OSError as error:
        # Its text alone: the paths of a machine are none of an agent's business.
        why = error.strerror or type(error).__name__
        return Result.failure(f"the documents cannot be reached: {why}", "io_error", instruction="Tell the user.")

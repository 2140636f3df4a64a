"""The tools that find, read and change documents; those that change one need the user's word."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from mcp_core import Consent, Result, ToolArguments
from mcp_guide.document import MAX_BYTES, MAX_TAGS, MAX_TITLE, Document, Name, Tag, answer
from mcp_guide.store import FoundDocument, Listing, Store
from mcp_guide.tools import ReadingArguments


class DocumentsArguments(ReadingArguments):
    category: Name | None = None


class GetArguments(ReadingArguments):
    name: Name
    category: Name | None = Field(default=None, description="Needed when several have the name")
    values: dict[str, Any] = Field(default={}, max_length=50, description="For {{ values.key }}")


class SearchArguments(ReadingArguments):
    query: str = Field(min_length=1, max_length=200, pattern=r"\S", description="Words of the task")
    category: Name | None = None
    limit: int = Field(default=10, ge=1, le=100)


@ToolArguments.declare
def documents(args: DocumentsArguments) -> Result[Listing]:
    """List the guideline documents of this project, and files that were skipped."""
    return answer(lambda: Store.here().documents(args.category))


@ToolArguments.declare
def get(args: GetArguments) -> Result[Document]:
    """Read one guideline, with the project's facts filled in."""
    return answer(lambda: Store.here().render(args.name, args.category, args.values))


@ToolArguments.declare
def search(args: SearchArguments) -> Result[list[FoundDocument]]:
    """Find conventions, guidelines and how-tos by words, the best first."""
    return answer(lambda: Store.here().search(args.query, args.category, args.limit))


class CreateArguments(ToolArguments):
    read_only: ClassVar[bool | None] = False

    category: Name
    name: Name
    text: str = Field(min_length=1, max_length=MAX_BYTES)
    consent: Annotated[Literal["CREATE_DOCUMENT"], Consent()]
    title: str = Field(default="", max_length=MAX_TITLE)
    description: str = Field(default="", max_length=MAX_TITLE, description="When it is of use")
    tags: list[Tag] = Field(default=[], max_length=MAX_TAGS)
    replace: bool = False


class RemoveArguments(ToolArguments):
    read_only: ClassVar[bool | None] = False

    category: Name
    name: Name
    consent: Annotated[Literal["REMOVE_DOCUMENT"], Consent()]


@ToolArguments.declare
def create(args: CreateArguments) -> Result[str]:
    """Write a guideline into the project."""
    return answer(lambda: Store.here().create(**args.model_dump(exclude={"consent"})))


@ToolArguments.declare
def remove(args: RemoveArguments) -> Result[str]:
    """Remove a guideline of the project for good."""
    return answer(lambda: Store.here().remove(args.category, args.name))

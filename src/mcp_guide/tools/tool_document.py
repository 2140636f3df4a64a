"""The tools that find and read documents."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from mcp_core import Result, ToolArguments
from mcp_guide.document import Document, DocumentInfo, Name
from mcp_guide.environment import GuideEnvironment
from mcp_guide.guide_error import answer
from mcp_guide.store import Hit, Store


class DocumentsArguments(ToolArguments):
    """Which documents to list."""

    read_only: ClassVar[bool | None] = True

    category: Name | None = Field(default=None, description="Only those of this category")


class GetArguments(ToolArguments):
    """Which document to read."""

    read_only: ClassVar[bool | None] = True

    category: Name = Field(description="The document's category")
    name: Name = Field(description="The document's name")


class SearchArguments(ToolArguments):
    """What to search for."""

    read_only: ClassVar[bool | None] = True

    query: str = Field(min_length=1, max_length=200, pattern=r"\S", description="Words that must all occur")
    category: Name | None = Field(default=None, description="Only in this category")
    limit: int = Field(default=10, ge=1, le=100, description="How many documents to return at most")


@ToolArguments.declare
def documents(args: DocumentsArguments) -> Result[list[DocumentInfo]]:
    """List documents that guide work in this project, with titles and descriptions.

    Returns:
        Category, name, title, description, tags and source of each.

    Example:
        documents(category="style")
    """
    return answer(lambda: _store().documents(args.category))


@ToolArguments.declare
def get(args: GetArguments) -> Result[Document]:
    """Read one document.

    Returns:
        The document with its text; templates in it are left as they are.

    Example:
        get(category="style", name="python")
    """
    return answer(lambda: _store().get(args.category, args.name))


@ToolArguments.declare
def search(args: SearchArguments) -> Result[list[Hit]]:
    """Find documents by words in their titles, tags and text, the best first.

    Returns:
        What a listing says of each, and the first lines that fit.

    Example:
        search(query="commit message")
    """
    return answer(lambda: _store().search(args.query, args.category, args.limit))


def _store() -> Store:
    return Store.of(GuideEnvironment.read())

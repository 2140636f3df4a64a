"""The tools that find, read and change documents; those that change one need the user's word."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from mcp_core import Consent, Result, ToolArguments
from mcp_guide.document import MAX_BYTES, MAX_TAGS, MAX_TITLE, Document, DocumentInfo, Name, Tag, answer
from mcp_guide.store import Category, FoundDocument, GuideEnvironment, Removed, Saved, Store
from mcp_guide.tools import ReadingArguments


class CategoriesArguments(ReadingArguments):
    """No arguments."""


class DocumentsArguments(ReadingArguments):
    """Which documents to list."""

    category: Name | None = Field(default=None, description="Only those of this category")


class GetArguments(ReadingArguments):
    """Which document to read."""

    category: Name = Field(description="The document's category")
    name: Name = Field(description="The document's name")


class SearchArguments(ReadingArguments):
    """What to search for."""

    query: str = Field(min_length=1, max_length=200, pattern=r"\S", description="Words that must all occur")
    category: Name | None = Field(default=None, description="Only in this category")
    limit: int = Field(default=10, ge=1, le=100, description="How many documents to return at most")


@ToolArguments.declare
def categories(args: CategoriesArguments) -> Result[list[Category]]:
    """List the categories of documents that guide work in this project.

    Returns:
        Name and number of documents of each.

    Example:
        categories()
    """
    return answer(lambda: _store().categories())


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
def search(args: SearchArguments) -> Result[list[FoundDocument]]:
    """Find documents by words in their titles, tags and text, the best first.

    Returns:
        What a listing says of each, and the first lines that fit.

    Example:
        search(query="commit message")
    """
    return answer(lambda: _store().search(args.query, args.category, args.limit))


# ---------------------------------------------------------------- changes


class CreateArguments(ToolArguments):
    """What to write, and where."""

    read_only: ClassVar[bool | None] = False

    category: Name = Field(description="The category, which need not exist")
    name: Name = Field(description="The document's name: small letters, digits, - and _")
    text: str = Field(min_length=1, max_length=MAX_BYTES, description="The text, in markdown")
    consent: Annotated[Literal["CREATE_DOCUMENT"], Consent()]
    title: str = Field(default="", max_length=MAX_TITLE, description="The title")
    description: str = Field(default="", max_length=MAX_TITLE, description="When the document is of use, in a sentence")
    tags: list[Tag] = Field(default_factory=list, max_length=MAX_TAGS, description="Words to find it by")
    replace: bool = Field(default=False, description="Replace a document that exists")


class RemoveArguments(GetArguments):
    """Which document to remove."""

    read_only: ClassVar[bool | None] = False

    consent: Annotated[Literal["REMOVE_DOCUMENT"], Consent()]


@ToolArguments.declare
def create(args: CreateArguments) -> Result[Saved]:
    """Write a document into the project.

    Returns:
        Where it is, and whether it is new.

    Example:
        create(category="style", name="python", text="# Python\\nBe brief.", consent="CREATE_DOCUMENT")
    """
    return answer(lambda: _store().create(**args.model_dump(exclude={"consent"})))


@ToolArguments.declare
def remove(args: RemoveArguments) -> Result[Removed]:
    """Remove a document of the project for good.

    Returns:
        Which one is gone.

    Example:
        remove(category="style", name="python", consent="REMOVE_DOCUMENT")
    """
    return answer(lambda: _store().remove(args.category, args.name))


def _store() -> Store:
    return Store.of(GuideEnvironment.read())

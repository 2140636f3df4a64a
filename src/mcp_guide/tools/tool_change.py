"""The tools that change the project's documents; each needs the user's word."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from mcp_core import Consent, Result, ToolArguments
from mcp_guide.document import MAX_BYTES, MAX_TAGS, MAX_TITLE, Name, Tag
from mcp_guide.environment import GuideEnvironment
from mcp_guide.guide_error import answer
from mcp_guide.store import Removed, Saved, Store


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


class RemoveArguments(ToolArguments):
    """Which document to remove."""

    read_only: ClassVar[bool | None] = False

    category: Name = Field(description="The document's category")
    name: Name = Field(description="The document's name")
    consent: Annotated[Literal["REMOVE_DOCUMENT"], Consent()]


@ToolArguments.declare
def create(args: CreateArguments) -> Result[Saved]:
    """Write a document into the project.

    Returns:
        Where it is, and whether it is new.

    Example:
        create(category="style", name="python", text="# Python\\nBe brief.", consent="CREATE_DOCUMENT")
    """
    return answer(
        lambda: _store().create(
            args.category,
            args.name,
            args.text,
            title=args.title,
            description=args.description,
            tags=args.tags,
            replace=args.replace,
        )
    )


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

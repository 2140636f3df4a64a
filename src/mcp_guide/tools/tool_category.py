"""The tool that lists categories."""

from __future__ import annotations

from typing import ClassVar

from mcp_core import Result, ToolArguments
from mcp_guide.environment import GuideEnvironment
from mcp_guide.guide_error import answer
from mcp_guide.store import Category, Store


class CategoriesArguments(ToolArguments):
    """No arguments."""

    read_only: ClassVar[bool | None] = True


@ToolArguments.declare
def categories(args: CategoriesArguments) -> Result[list[Category]]:
    """List the categories of documents that guide work in this project.

    Returns:
        Name and number of documents of each.

    Example:
        categories()
    """
    return answer(lambda: Store.of(GuideEnvironment.read()).categories())

"""The tools that know the project: its facts, and documents with the facts filled in."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from mcp_core import Result, ToolArguments
from mcp_guide.document import Name
from mcp_guide.environment import GuideEnvironment
from mcp_guide.facts import ProjectFacts, facts_of
from mcp_guide.guide_error import GuideError, answer
from mcp_guide.renderer import render_template
from mcp_guide.store import Store


class ProjectArguments(ToolArguments):
    """No arguments."""

    read_only: ClassVar[bool | None] = True


class RenderArguments(ToolArguments):
    """Which document to render, with what."""

    read_only: ClassVar[bool | None] = True

    category: Name = Field(description="The document's category")
    name: Name = Field(description="The document's name")
    values: dict[str, str | int | float | bool] = Field(
        default_factory=dict, max_length=50, description="Used in the document as {{ values.key }}"
    )


@ToolArguments.declare
def project(args: ProjectArguments) -> Result[ProjectFacts]:
    """Tell the project's name, path, git branch and languages by number of files.

    Returns:
        What documents can use as {{ project.name }} and the like.

    Example:
        project()
    """
    return answer(lambda: facts_of(GuideEnvironment.read().project))


@ToolArguments.declare
def render(args: RenderArguments) -> Result[str]:
    """Read one document with its Jinja2 template filled in: {{ project.* }} and {{ values.* }}.

    Returns:
        The text as it reads for this project.

    Example:
        render(category="style", name="python", values={"author": "Ada"})
    """
    return answer(lambda: _render(args, GuideEnvironment.read()))


def _render(args: RenderArguments, environment: GuideEnvironment) -> str:
    document = Store.of(environment).get(args.category, args.name)
    text, error = render_template(document["text"], {"project": facts_of(environment.project), "values": args.values})
    if error:
        instruction = "Give what is missing in values, or read the document with get."
        raise GuideError(f"{args.category}/{args.name}: {error}", "template_error", instruction)
    return text

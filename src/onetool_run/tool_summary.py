"""ToolSummary: a tool as a program that embeds OneTool sees it."""

from __future__ import annotations

from dataclasses import dataclass

from ot.registry.tool import Tool, signature_text


@dataclass(frozen=True, slots=True)
class ToolSummary:
    """A tool that programs can call: its name (`pack.tool`), how it is called, and what it does."""

    name: str
    signature: str
    description: str


def summary_of(tool: Tool) -> ToolSummary:
    """Return *tool* as it is shown outside."""
    return ToolSummary(tool.full_name, signature_text(tool), tool.description)

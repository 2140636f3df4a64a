"""The guide's tools as the pack ``guide`` of OneTool; the entry point of the group ``onetool.packs`` names TOOLS."""

from __future__ import annotations

from types import SimpleNamespace

from mcp_core import program_function
from mcp_guide.tools.tool_document import categories, create, documents, get, remove, search
from mcp_guide.tools.tool_project import project, render

TOOLS = SimpleNamespace(
    categories=program_function(categories),
    documents=program_function(documents),
    get=program_function(get),
    search=program_function(search),
    project=program_function(project),
    render=program_function(render),
    create=program_function(create),
    remove=program_function(remove),
)
"""The functions that programs call; each returns the value, or raises what failed."""

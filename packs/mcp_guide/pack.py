"""The guide's tools as the pack ``guide`` of OneTool; the entry point of the group ``onetool.packs`` names TOOLS."""

from __future__ import annotations

from types import SimpleNamespace

from mcp_core import program_function
from mcp_guide.tools.tool_document import create, documents, get, remove, search

TOOLS = SimpleNamespace(**{tool.__name__: program_function(tool) for tool in (documents, get, search, create, remove)})
"""The functions that programs call; each returns the value, or raises what failed."""

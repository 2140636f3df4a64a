"""Where the documentation of a pack is."""

from __future__ import annotations

from ot.registry.tool_registry import Pack

SLUGS = {
    "brave": "brave-search",
    "code": "code-search",
    "db": "database",
    "ground": "grounding-search",
    "llm": "transform",
    "web": "web-fetch",
}
"""Packs whose page has another name than the pack."""


def docs_url(template: str, pack: Pack) -> str:
    """Return the address of *pack*'s page, or nothing: other people's packs and servers have no page of ours."""
    return template.replace("{doc_slug}", SLUGS.get(pack.name, pack.name)) if pack.bundled else ""

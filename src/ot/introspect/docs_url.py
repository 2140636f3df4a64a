"""Where the documentation of a pack is."""

from __future__ import annotations

SLUGS = {
    "brave": "brave-search",
    "code": "code-search",
    "db": "database",
    "ground": "grounding-search",
    "llm": "transform",
    "web": "web-fetch",
}
"""Packs whose page has another name than the pack."""


def docs_url(template: str, pack: str) -> str:
    """Return the address of *pack*'s page, or nothing where none is configured."""
    return template.replace("{doc_slug}", SLUGS.get(pack, pack))

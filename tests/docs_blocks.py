"""The fenced blocks of the documentation: their language, their place, and why one is not run."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from checkout import ROOT

DOCS = ROOT / "docs"
BLOCK = re.compile(
    r"^(?:[ ]*<!-- not run: (?P<why>.+?) -->\n\n?)?"
    r"(?P<indent>[ ]*)```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?[^\n]*\n(?P<text>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    title: str
    text: str
    why_not: str
    """Why no test runs it, as the page's source says in a comment above it."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def all_pages() -> list[Path]:
    """Return every page that readers see, the README first."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the blocks of *page* in order."""
    text, name = page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix()
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        code = textwrap.dedent(found["text"])
        yield Block(name, line, found["language"], found["title"] or "", code, found["why"] or "")


def blocks(*languages: str) -> list[Block]:
    """Return the blocks in *languages* of all pages."""
    return [block for page in all_pages() for block in blocks_of(page) if block.language in languages]

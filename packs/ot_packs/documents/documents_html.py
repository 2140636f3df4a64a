"""Reads HTML files as Markdown."""

from __future__ import annotations

# ruff: noqa: E402 - what must not be loaded is said before
import sys
from collections.abc import Iterator
from typing import Any

sys.modules["soupsieve"] = None  # pyright: ignore[reportArgumentType] - selectors, never used, are a third of the start

from bs4 import BeautifulSoup, Tag
from bs4.dammit import EncodingDetector
from markdownify import ATX, MarkdownConverter

UNSEEN = ("script", "style", "template", "noscript", "iframe", "object", "embed", "svg", "canvas")
STYLE: dict[str, Any] = {"heading_style": ATX, "bullets": "-", "table_infer_header": True}
PLAIN: dict[str, Any] = {
    "strip": ["a", "b", "strong", "em", "i", "u", "s", "del", "code", "sub", "sup"],
    "escape_asterisks": False,
    "escape_underscores": False,
}
BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")
MAX_SPAN = 1_000
MAX_COLUMNS = 16_384


class TableSafeConverter(MarkdownConverter):
    """Writes Markdown; a bar inside a cell does not end it."""

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return a cell."""
        return super().convert_td(el, text.replace("|", "\\|"), parent_tags)

    def convert_th(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return a cell of the head."""
        return super().convert_th(el, text.replace("|", "\\|"), parent_tags)


class MarkupTree:
    """A tree of HTML, of a page or of what was made into one."""

    unit = "document"
    count = 1

    def __init__(self, html: str | bytes, kind: str, about: dict[str, str] | None = None) -> None:
        self.kind = kind
        self.names: list[str] = []
        self._tree = BeautifulSoup(html, "lxml", from_encoding=_encoding(html))
        self._about = _about(self._tree) if about is None else about
        for element in self._tree.find_all(UNSEEN):
            element.decompose()
        for image in self._tree.find_all("img"):
            image.replace_with(str(image.get("alt") or ""))
        if self._tree.head:
            self._tree.head.decompose()
        for table in self._tree.find_all("table"):
            self._fill_spanned_places(table)

    def _fill_spanned_places(self, table: Tag) -> None:
        """Put empty cells where a cell of a row above spans, so that the others stand in their own columns."""
        spanned: dict[int, tuple[int, int]] = {}  # by column: how many rows are left, and how many columns
        own = [row for row in table.find_all("tr") if row.find_parent("table") is table]
        for place, row in enumerate(own):
            column = 0
            below: dict[int, tuple[int, int]] = {}
            for cell in [*row.find_all(["td", "th"], recursive=False), None]:
                while column in spanned:
                    left, across = spanned.pop(column)
                    filler = self._tree.new_tag("td", attrs={"colspan": str(across)})
                    row.append(filler) if cell is None else cell.insert_before(filler)
                    if left > 1:
                        below[column] = (left - 1, across)
                    column += across
                if cell is not None:
                    across, down = _span(cell, "colspan"), min(_span(cell, "rowspan"), len(own) - place)
                    if down > 1:
                        below[column] = (down - 1, across)
                    column += across
            spanned = below | {at: (left - 1, across) for at, (left, across) in spanned.items() if left > 1}

    def about(self) -> dict[str, str]:
        """Return what it says of itself."""
        return self._about

    def page(self, number: int) -> tuple[str, str]:
        """Return the first heading, or the title, and the whole as Markdown."""
        heading = self._tree.find(["h1", "h2", "h3"])
        title = heading.get_text(" ") if heading else self._about.get("title", "")
        return title, TableSafeConverter(**STYLE).convert_soup(self._tree)

    def plain(self, number: int) -> str:
        """Return the whole without marks."""
        return TableSafeConverter(**STYLE, **PLAIN).convert_soup(self._tree).replace("\\|", "|")

    def tables(self, number: int) -> Iterator[tuple[str, list[list[Any]]]]:
        """Yield the tables, each by its caption."""
        for table in self._tree.find_all("table"):
            caption = table.find("caption")
            yield (caption.get_text(" ").strip() if caption else ""), _rows(table)


def open_document(data: bytes, kind: str) -> MarkupTree:
    """Return the page."""
    return MarkupTree(data, kind)


def _about(tree: BeautifulSoup) -> dict[str, str]:
    author = tree.find("meta", attrs={"name": "author"})
    return {
        "title": tree.title.get_text() if tree.title else "",
        "author": str(author.get("content") or "") if isinstance(author, Tag) else "",
    }


def _rows(table: Tag) -> list[list[Any]]:
    """Return the cells of a table; a cell that spans others leaves them empty."""
    rows: list[list[Any]] = []
    for row in table.find_all("tr"):
        if row.find_parent("table") is not table:
            continue
        cells: list[Any] = []
        for cell in row.find_all(["td", "th"], recursive=False):
            cells.append(" ".join(cell.get_text(" ").split()) or None)
            cells.extend([None] * (_span(cell, "colspan") - 1))
            if len(cells) > MAX_COLUMNS:
                raise ValueError(f"a table has more than {MAX_COLUMNS:,} columns")
        rows.append(cells)
    return [row for row in rows if row]


def _encoding(html: str | bytes) -> str | None:
    """Return the encoding of a page that neither is UTF-8 nor says what it is, as browsers guess it."""
    if isinstance(html, str) or html.startswith(BYTE_ORDER_MARKS):
        return None
    try:
        html.decode()
    except UnicodeDecodeError:
        return None if EncodingDetector.find_declared_encoding(html, is_html=True) else "windows-1252"
    return None


def _span(cell: Tag, name: str) -> int:
    value = str(cell.get(name) or "")
    return max(1, min(int(value), MAX_SPAN)) if value.isascii() and value.isdigit() and len(value) < 10 else 1

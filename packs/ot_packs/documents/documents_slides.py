"""Reads pptx files: titles, texts, tables, charts and notes of slides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pptx
from documents_archive import OfficePackage
from documents_grid import pipe_table

MAX_DEPTH = 50


class SlideDeck:
    """A presentation."""

    kind = "pptx"
    unit = "slide"

    def __init__(self, package: OfficePackage) -> None:
        self._package = package
        self._slides: list[Any] = list(pptx.Presentation(package.pack()).slides)
        self.count = len(self._slides)
        self.names: list[str] = []

    def about(self) -> dict[str, str]:
        """Return what it says of itself."""
        return self._package.about()

    def page(self, number: int) -> tuple[str, str]:
        """Return the title of a slide, and all of it as Markdown."""
        slide = self._slides[number - 1]
        head = slide.shapes.title
        title = head.text_frame.text.strip() if head is not None else ""
        blocks = [f"# {' '.join(title.split())}"] if title else []
        shapes = [shape for shape in _shapes(slide.shapes) if head is None or shape.shape_id != head.shape_id]
        blocks.extend(block for shape in shapes if (block := _block(shape)))
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.strip()
            blocks.extend(["Notes:\n\n" + "\n".join(f"> {line}" for line in notes.splitlines())] if notes else [])
        if not title:
            title = next((line for block in blocks for line in block.splitlines() if line.strip()), "")
        return title, "\n\n".join(blocks)

    def plain(self, number: int) -> str:
        """Return the text of a slide, whose few marks do no harm."""
        return self.page(number)[1].replace("\\|", "|")

    def tables(self, number: int) -> Iterator[tuple[str, list[list[Any]]]]:
        """Yield the tables and the numbers of charts of a slide."""
        for shape in _shapes(self._slides[number - 1].shapes):
            rows = _rows(shape)
            if rows:
                yield shape.name, rows


def open_document(package: OfficePackage, kind: str) -> SlideDeck:
    """Return the presentation."""
    return SlideDeck(package)


def _shapes(shapes: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the shapes from top to bottom, those in groups too."""
    if depth > MAX_DEPTH:
        raise RecursionError
    for shape in sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)):
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes, depth + 1)
        else:
            yield shape


def _block(shape: Any) -> str:
    rows = _rows(shape)
    if rows:
        return pipe_table(rows)
    if not shape.has_text_frame:
        return ""
    listed = shape.is_placeholder
    lines = [(paragraph.level, " ".join(paragraph.text.split())) for paragraph in shape.text_frame.paragraphs]
    return "\n".join(f"{'  ' * level}- {line}" if listed else line for level, line in lines if line)


def _rows(shape: Any) -> list[list[Any]]:
    if getattr(shape, "has_table", False):
        return [[" ".join(cell.text_frame.text.split()) or None for cell in row.cells] for row in shape.table.rows]
    if getattr(shape, "has_chart", False):
        return _chart_rows(shape.chart)
    return []


def _chart_rows(chart: Any) -> list[list[Any]]:
    """Return the numbers that a chart shows; kinds without categories have none to show as rows."""
    plots = list(chart.plots)
    if not plots:
        return []
    series = list(plots[0].series)
    head: list[Any] = [None, *(one.name for one in series)]
    columns = [list(one.values) for one in series]
    places = enumerate(plots[0].categories)
    body = [[str(name), *(values[at] if at < len(values) else None for values in columns)] for at, name in places]
    return [head, *body]

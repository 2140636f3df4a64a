# /// script
# requires-python = ">=3.12"
# dependencies = [
#     "lxml>=6,<7",
#     "mammoth>=1.11,<2",
#     "markdownify>=1.2,<2",
#     "pypdfium2>=5.14,<6",
#     "python-calamine>=0.9,<1",
#     "python-pptx>=1.0.2,<2",
# ]
# ///
"""Read pdf, docx, pptx, xlsx, xls, ods and html files: Markdown, pages, tables, search."""

from __future__ import annotations

# ruff: noqa: E402 - a pack file opens with its name and its tools
pack = "documents"

__all__ = ["info", "pages", "search", "tables", "to_markdown"]
__ot_read_only__ = ["info", "pages", "search", "tables", "to_markdown"]
__ot_needs__ = {
    "info": ["file.read"],
    "pages": ["file.read"],
    "search": ["file.read"],
    "tables": ["file.read"],
    "to_markdown": ["file.read"],
}

import re
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, BinaryIO, NotRequired, TypedDict

from documents_child import DocumentLimits, ask_child

import ot_sdk
from ot_sdk.numbers import check_number

MAX_TEXT = 500
MAX_PATHS = 200
RANGES = re.compile(r"[0-9 ,-]+")
"""How numbers of pages are written; other text is a sheet's name."""
MAX_LIMIT = 100_000
AT_ONCE = 2
"""Documents that one search reads at the same time: each may take the whole memory that a document has."""


@dataclass(frozen=True)
class Config:
    """The settings ``tools.documents``."""

    max_bytes: int = 50_000_000
    """Size of a document."""
    unpacked_bytes: int = 200_000_000
    """Size that an archive (docx, pptx, xlsx, xlsb, ods) unpacks to."""
    output_bytes: int = 20_000_000
    """Size of the text and tables that one call returns."""
    memory_bytes: int = 1_000_000_000
    """Memory of the process that reads a document."""
    seconds: float = 20.0
    """Time of one call."""

    def __post_init__(self) -> None:
        """Refuse a bound that nothing could keep."""
        for name, value in vars(self).items():
            if not 0 < value < 1e12:
                raise ValueError(f"{name} must be above 0, got {value}")


class AboutDocument(TypedDict):
    """What a document says of itself."""

    path: str
    kind: str
    bytes: int
    unit: str
    count: int
    names: list[str]
    title: str
    author: str
    created: str
    modified: str


class DocumentPage(TypedDict):
    """A page, a slide, a sheet, or a whole document that has no pages."""

    page: int
    title: str
    text: str


class DocumentTable(TypedDict):
    """A table; each row is a dict by column."""

    name: str
    page: int
    columns: list[str]
    rows: list[dict[str, Any]]
    more: bool


class DocumentMatch(TypedDict):
    """A place where the text was found."""

    path: str
    page: int
    text: str
    error: NotRequired[str]


def to_markdown(*, path: str, pages: str | int | list[int] | None = None) -> str:
    """Read a PDF, Word, PowerPoint, Excel or HTML file as Markdown.

    Args:
        path: A pdf, docx, pptx, xlsx, xlsb, xls, ods or html file.
        pages: Which pages, slides or sheets, such as 3, [1, 2], "1-3,7" or "10-", or a sheet's name; all when left out.

    Returns:
        Headings, lists, links and tables as Markdown; a comment such as <!-- page 2 --> begins each page or slide.
        Of a pdf its text, line by line. Images are left out, scanned pages have no text.

    Example:
        documents.to_markdown(path="contract.docx")
    """
    return _ask(path, "markdown", {"pages": _page_ranges(pages)})


def pages(*, path: str, pages: str | int | list[int] | None = None) -> list[DocumentPage]:
    """Read single pages, slides or sheets of a PDF, Word, PowerPoint or Excel file, each with title and text.

    Args:
        path: A pdf, docx, pptx, xlsx, xlsb, xls, ods or html file; docx and html are one page.
        pages: Which of them, such as 3, [1, 2], "1-3,7" or "10-", or a sheet's name; all when left out.

    Returns:
        The number, title and text of each. The title is a slide's title, a sheet's name or the first line.

    Example:
        documents.pages(path="talk.pptx", pages="1-5")
    """
    return _ask(path, "pages", {"pages": _page_ranges(pages)})


def tables(
    *, path: str, page: int | None = None, sheet: str | None = None, header: bool = True, limit: int = 10_000
) -> list[DocumentTable]:
    """Read the tables of an Excel, Word, PowerPoint or HTML file as rows; a sheet is one table.

    Args:
        path: An xlsx, xlsb, xls, ods, docx, pptx or html file; a pdf has text and lines, but no tables.
        page: Only the tables of this page, slide or sheet, from 1.
        sheet: Only the sheet of this name.
        header: The first row names the columns; otherwise they are called A, B, C.
        limit: The most rows of each table; more is True when there are others.

    Returns:
        The name, page, columns and rows of each table; each row is a dict. Workbooks give numbers, booleans and
        dates as ISO text, the others text; empty cells are None.

    Example:
        documents.tables(path="sales.xlsx", sheet="sales")
    """
    check_number("limit", limit, 1)
    if page is not None:
        check_number("page", page, 1)
    if sheet is not None and not isinstance(sheet, str):  # pyright: ignore[reportUnnecessaryIsInstance] - programs are not type-checked
        raise TypeError(f"sheet must be the name of a sheet, got {sheet!r:.100}: page= takes its number")
    return _ask(path, "tables", {"page": page, "sheet": sheet, "header": bool(header), "limit": min(limit, MAX_LIMIT)})


def info(*, path: str) -> AboutDocument:
    """Tell what a PDF, Word, PowerPoint or Excel file is: kind, title, author, dates, how many pages or sheets.

    Args:
        path: A pdf, docx, pptx, xlsx, xlsb, xls, ods or html file, known by its content and not by its name.

    Returns:
        The kind, the size, what count counts ('page', 'slide', 'sheet' or 'document'), names of sheets,
        and what the document says of its title, author and dates; empty text where it says nothing.

    Example:
        documents.info(path="report.pdf")
    """
    return _ask(path, "info", {})


def search(*, text: str, paths: str | list[str], ignore_case: bool = True, limit: int = 10_000) -> list[DocumentMatch]:
    """Find a word or phrase in PDF, Word, PowerPoint and Excel files, with the page of each place.

    Args:
        text: What to find, not a pattern; a blank in it also matches a line break.
        paths: The document, or several, for instance what file.glob returned.
        ignore_case: Take upper and lower case for the same.
        limit: The most places of each document to return.

    Returns:
        The path, page and surrounding text of each place. A document that could not be read, a scanned one for
        instance, or that has more places has a row with page 0 and the reason as error.

    Example:
        documents.search(text="termination", paths=["contract.docx", "report.pdf"])
    """
    check_number("limit", limit, 1)
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_TEXT:  # pyright: ignore[reportUnnecessaryIsInstance] - as above
        raise ValueError(f"text must be a word or phrase of at most {MAX_TEXT} characters, got {text!r:.100}")
    paths = [paths] if isinstance(paths, str) else paths
    if len(paths) > MAX_PATHS:
        raise ValueError(f"a search takes at most {MAX_PATHS} paths, got {len(paths):,}")
    request = {"text": text, "ignore_case": bool(ignore_case), "limit": min(limit, MAX_LIMIT)}
    until = time.monotonic() + _config().seconds
    found: list[DocumentMatch] = []
    with ThreadPoolExecutor(AT_ONCE) as threads:
        # In a copy of this call's context: only a tool that is being called may open files.
        asked = [threads.submit(copy_context().run, _search_one, path, request, until) for path in paths]
        for path, answer in zip(paths, (one.result() for one in asked), strict=True):
            if isinstance(answer, str):
                error = answer
            else:
                found.extend({"path": path, "page": hit["page"], "text": hit["text"]} for hit in answer["places"])
                error = f"there are more places than {len(answer['places']):,}" if answer["more"] else ""
            if error:
                found.append({"path": path, "page": 0, "text": "", "error": error})
    return found


def _search_one(path: str, request: Mapping[str, Any], until: float) -> dict[str, Any] | str:
    """Return where the text is in one document, or why nobody can say."""
    try:
        seconds = until - time.monotonic()
        if seconds <= 0:
            return f"not read: the search took longer than {_config().seconds:g} s (tools.documents.seconds)"
        return _ask(path, "search", request, seconds)
    except (OSError, ValueError) as error:
        return str(error)


def _config() -> Config:
    return ot_sdk.config()


def _ask(path: str, action: str, request: Mapping[str, Any], seconds: float | None = None) -> Any:
    """Return what a child process, which alone touches the document, makes of it."""
    config = _config()
    file: BinaryIO
    with ot_sdk.open_file(path) as file:
        size = file.seek(0, 2)
        if size > config.max_bytes:
            raise ValueError(f"{path!r} has {size:,} bytes, more than {config.max_bytes:,} (tools.documents.max_bytes)")
        file.seek(0)
        limits = DocumentLimits(
            input_bytes=config.max_bytes,
            unpacked_bytes=config.unpacked_bytes,
            output_bytes=config.output_bytes,
            memory_bytes=config.memory_bytes,
            seconds=config.seconds if seconds is None else seconds,
        )
        return ask_child(file, {"path": path, "action": action, **request}, limits)


def _page_ranges(pages: str | int | list[int] | None) -> list[tuple[int, int | None]] | str | None:
    """Return the first and last page of each range, None as last being the end of the document, or a sheet's name."""
    if pages is None:
        return None
    numbers = pages if isinstance(pages, list) else [pages]
    if numbers and all(type(number) is int for number in numbers):
        pages = ",".join(map(str, numbers))
    if not isinstance(pages, str) or len(pages) > MAX_TEXT:
        raise TypeError(f'pages must be numbers, text such as "1-3,7", or a sheet\'s name, got {pages!r:.100}')
    if not RANGES.fullmatch(pages):
        return pages
    return [_page_range(part.strip(), pages) for part in pages.split(",")]


def _page_range(part: str, pages: str) -> tuple[int, int | None]:
    first, dash, last = (word.strip() for word in part.partition("-"))
    if first.isascii() and first.isdigit() and (not last or (last.isascii() and last.isdigit())) and len(part) <= 20:
        begin, end = int(first), int(last) if last else None if dash else int(first)
        if begin >= 1 and (end is None or begin <= end):
            return begin, end
    raise ValueError(f'pages must look like 3, "1-3,7" or "10-" and count from 1, got {pages!r:.100}')

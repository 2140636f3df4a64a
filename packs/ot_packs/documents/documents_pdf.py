"""Reads PDF files with PDFium, which is built without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pypdfium2 as pdfium
from documents_kinds import BadDocument

DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(Z)|([+-]\d\d)'?(\d\d)?)?")
LINE_HYPHEN = re.compile("[\x02\ufffe](\r?\n)?")
"""What PDFium writes for a hyphen that only breaks a line."""
MAX_PAGE_CHARACTERS = 5_000_000


class PdfFile:
    """A PDF file."""

    kind = "pdf"
    unit = "page"

    def __init__(self, data: bytes) -> None:
        try:
            self._file = pdfium.PdfDocument(data)
        except pdfium.PdfiumError as error:
            if "password" in str(error).lower():
                raise BadDocument("is encrypted: save it without a password") from None
            raise BadDocument(f"cannot be read: it is a malformed PDF file ({error})") from None
        self.count = len(self._file)
        self.names: list[str] = []

    def about(self) -> dict[str, str]:
        """Return what its information dictionary says."""
        known: dict[str, str] = self._file.get_metadata_dict()
        return {
            "title": known.get("Title", ""),
            "author": known.get("Author", ""),
            "created": _iso_date(known.get("CreationDate", "")),
            "modified": _iso_date(known.get("ModDate", "")),
        }

    def page(self, number: int) -> tuple[str, str]:
        """Return the first line of a page, and its text."""
        text = self.plain(number)
        return next((line for line in text.splitlines() if line.strip()), ""), text

    def plain(self, number: int) -> str:
        """Return the text of a page."""
        try:
            page = self._file[number - 1]
            text_page = page.get_textpage()
            characters = text_page.count_chars()
            if characters > MAX_PAGE_CHARACTERS:
                raise BadDocument(
                    f"has {characters:,} characters on page {number:,}, more than {MAX_PAGE_CHARACTERS:,}"
                )
            text: str = text_page.get_text_range() if characters > 0 else ""
            text_page.close()
            page.close()
        except pdfium.PdfiumError as error:
            raise BadDocument(f"cannot be read: page {number:,} is broken ({error})") from None
        return LINE_HYPHEN.sub("", text)

    def tables(self, number: int) -> Iterator[tuple[str, list[list[Any]]]]:
        """Refuse: a PDF file holds no tables, only what looks like them."""
        raise BadDocument("is a pdf, which holds text and lines but no tables: read its text with documents.pages")


def open_document(data: bytes, kind: str) -> PdfFile:
    """Return the PDF file."""
    return PdfFile(data)


def _iso_date(text: str) -> str:
    """Return a date of a PDF file as ISO text, empty if it is malformed."""
    found = DATE.match(text)
    if not found:
        return ""
    year, month, day, hour, minute, second, utc, offset, minutes = found.groups()
    zone = "+00:00" if utc else f"{offset}:{minutes or '00'}" if offset else ""
    clock = f"T{hour}:{minute or '00'}:{second or '00'}{zone}" if hour else ""
    return f"{year}-{month or '01'}-{day or '01'}{clock}"

"""Tells what kind of document some bytes are, and what every kind can be asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any, Protocol
from zipfile import BadZipFile, ZipFile

KINDS = "pdf, docx, pptx, xlsx, xlsb, xls, ods and html"
READERS = {
    "pdf": "documents_pdf",
    "docx": "documents_word",
    "html": "documents_html",
    "pptx": "documents_slides",
    "xlsx": "documents_workbook",
    "xlsb": "documents_workbook",
    "ods": "documents_workbook",
    "xls": "documents_workbook",
}
ARCHIVES = ("docx", "pptx", "xlsx", "xlsb", "ods")
COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
HTML_STARTS = (b"<!doctype html", b"<html", b"<?xml", b"<head", b"<body")
HTML_NAMES = (".html", ".htm", ".xhtml")


class BadDocument(Exception):
    """The document cannot be read; the text continues a sentence that begins with its path."""


class AnyDocument(Protocol):
    """One document, whatever its kind."""

    kind: str
    unit: str
    """What its parts are: page, slide, sheet, or document where there are none."""
    count: int
    names: list[str]

    def about(self) -> Mapping[str, str]:
        """Return title, author, created and modified, as far as it says."""
        ...

    def page(self, number: int) -> tuple[str, str]:
        """Return the title of a part and its Markdown."""
        ...

    def plain(self, number: int) -> str:
        """Return the text of a part without marks, to be searched."""
        ...

    def tables(self, number: int) -> Iterable[tuple[str, Iterable[list[Any]]]]:
        """Yield the name and the rows of each table of a part."""
        ...


def kind_of(data: bytes, path: str) -> str:
    """Return the kind by the content; a name decides only for HTML, which is any text.

    Raises:
        BadDocument: It is not of a kind that this pack reads.
    """
    if not data:
        raise BadDocument("is empty")
    if b"%PDF-" in data[:1024]:
        return "pdf"
    if data.startswith(b"PK"):
        return _kind_of_archive(data)
    if data.startswith(COMPOUND_FILE):
        return _kind_of_compound_file(data)
    start = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"\0" not in data[:1024] and (path.lower().endswith(HTML_NAMES) or start.startswith(HTML_STARTS)):
        return "html"
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") and path.lower().endswith(HTML_NAMES):
        return "html"
    raise BadDocument(f"is not a document of a known kind: this pack reads {KINDS}")


def _kind_of_archive(data: bytes) -> str:
    try:
        with ZipFile(BytesIO(data)) as archive:
            names = archive.NameToInfo
    except (BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise BadDocument(f"cannot be read: its archive is broken ({str(error)[:100]})") from None
    for name, kind in (
        ("word/document.xml", "docx"),
        ("ppt/presentation.xml", "pptx"),
        ("xl/workbook.xml", "xlsx"),
        ("xl/workbook.bin", "xlsb"),
    ):
        if name in names:
            return kind
    if "content.xml" in names and b"opendocument.spreadsheet" in data[:200]:
        return "ods"
    raise BadDocument(f"is an archive, but not a document of a known kind: this pack reads {KINDS}")


def _kind_of_compound_file(data: bytes) -> str:
    if "EncryptedPackage".encode("utf-16-le") in data:
        raise BadDocument("is encrypted: save it without a password")
    if any(name.encode("utf-16-le") in data for name in ("Workbook", "Book")):
        return "xls"
    raise BadDocument("is of an old binary kind, or cut off: save it as docx, pptx or xlsx")

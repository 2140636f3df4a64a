"""Reads workbooks (xlsx, xlsb, xls, ods) with calamine."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from io import BytesIO
from math import isfinite
from typing import Any

from documents_archive import OfficePackage
from documents_grid import pipe_table
from documents_kinds import BadDocument
from python_calamine import CalamineError, CalamineWorkbook, PasswordError

EXACT = 2**53


class SheetFile:
    """A workbook; a sheet is a page, and one table."""

    unit = "sheet"

    def __init__(self, kind: str, file: BytesIO, about: dict[str, str]) -> None:
        self.kind = kind
        self._about = about
        try:
            self._book = CalamineWorkbook.from_filelike(file)
        except PasswordError:
            raise BadDocument("is encrypted: save it without a password") from None
        except CalamineError as error:
            raise BadDocument(f"cannot be read: it is a malformed workbook ({str(error)[:200]})") from None
        self.names = self._book.sheet_names
        self.count = len(self.names)

    def about(self) -> dict[str, str]:
        """Return what it says of itself."""
        return self._about

    def page(self, number: int) -> tuple[str, str]:
        """Return the name of a sheet, and its cells as a table."""
        name = self.names[number - 1]
        return name, f"## {name}\n\n{pipe_table(self._rows(number))}"

    def plain(self, number: int) -> str:
        """Return the cells of a sheet, a row a line."""
        return "\n".join("\t".join("" if cell is None else str(cell) for cell in row) for row in self._rows(number))

    def tables(self, number: int) -> Iterator[tuple[str, Iterator[list[Any]]]]:
        """Yield the only table of a sheet."""
        yield self.names[number - 1], self._rows(number)

    def _rows(self, number: int) -> Iterator[list[Any]]:
        try:
            sheet = self._book.get_sheet_by_index(number - 1)
        except CalamineError as error:
            raise BadDocument(f"cannot be read: sheet {number} is broken ({str(error)[:200]})") from None
        if not sheet.height:
            return
        for row in sheet.iter_rows():  # it begins with the first column that has data, but with the first row
            cells = [_value(cell) for cell in row]
            if any(cell is not None for cell in cells):
                yield cells


def open_document(source: OfficePackage | bytes, kind: str) -> SheetFile:
    """Return the workbook; only the old kind is not an archive."""
    if isinstance(source, bytes):
        return SheetFile(kind, BytesIO(source), {})
    return SheetFile(kind, source.pack(), source.about("meta.xml" if kind == "ods" else "docProps/core.xml"))


def _value(cell: Any) -> Any:
    """Return a cell as JSON has it: whole numbers as such, dates as ISO text, nothing for an empty cell."""
    match cell:
        case "":
            return None
        case float() if cell.is_integer() and abs(cell) < EXACT:
            return int(cell)
        case float() if not isfinite(cell):
            return None
        case datetime() if cell.time() == time():
            return cell.date().isoformat()
        case datetime() | date() | time():
            return cell.isoformat()
        case timedelta():
            return str(cell)
        case _:
            return cell

"""A server whose pack ``data`` runs in its real worker, for a whole file of tests; and files for it to read."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from anyio.from_thread import BlockingPortal, start_blocking_portal

from ot.runtime.reply import Reply
from ot.workspace import Workspace
from run_app import error_of, running_app, value_of

TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>'
)
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


@dataclass(frozen=True)
class DataApp:
    """Runs programs, one after the other."""

    portal: BlockingPortal
    app: Workspace
    directory: Path
    """Where the program's files are."""

    def run(self, command: str) -> Reply:
        """Return the reply to a program."""
        return self.portal.call(self.app.run, command)

    def value(self, command: str) -> Any:
        """Return what a program returns."""
        return json.loads(value_of(self.run(command)))

    def error(self, command: str) -> str:
        """Return why a program failed."""
        return error_of(self.run(command))


@contextmanager
def data_app(directory: Path, settings: Mapping[str, Any] | None = None) -> Generator[DataApp]:
    """Yield a server with these ``tools.data``."""
    config = {"tools": {"data": settings}} if settings else {}
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running_app(directory, config=config)) as app,
    ):
        yield DataApp(portal, app, directory / "work")


def write_workbook(
    path: Path, sheets: Mapping[str, list[list[Any]]], cell: Callable[[int, int], str] | None = None, style: int = 0
) -> None:
    """Write a workbook with these rows; *cell* names the cells otherwise than by their places.

    Numbers are shown in *style*: 22 makes moments of them.
    """
    names = list(sheets)
    listed = "".join(f'<sheet name="{escape(name)}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(names, 1))
    related = "".join(
        f'<Relationship Id="r{n}" Type="{RELATION}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(names) + 1)
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("[Content_Types].xml", TYPES)
        root = f'<Relationship Id="r1" Type="{RELATION}/officeDocument" Target="xl/workbook.xml"/>'
        book.writestr("_rels/.rels", f'<Relationships xmlns="{PACKAGE}">{root}</Relationships>')
        book.writestr("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{PACKAGE}">{related}</Relationships>')
        book.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{SHEETS}" xmlns:r="{RELATION}"><sheets>{listed}</sheets></workbook>'
        )
        book.writestr(
            "xl/styles.xml", f'<styleSheet xmlns="{SHEETS}"><cellXfs><xf numFmtId="{style}"/></cellXfs></styleSheet>'
        )
        for number, rows in enumerate(sheets.values(), 1):
            book.writestr(f"xl/worksheets/sheet{number}.xml", _sheet(rows, cell or _place))


def _sheet(rows: list[list[Any]], place: Callable[[int, int], str]) -> str:
    def cell(r: int, c: int, value: Any) -> str:
        if isinstance(value, str):
            return f'<c r="{place(r, c)}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        return f'<c r="{place(r, c)}" s="0"><v>{value}</v></c>'

    lines = [
        f'<row r="{r}">' + "".join(cell(r, c, value) for c, value in enumerate(row) if value is not None) + "</row>"
        for r, row in enumerate(rows, 1)
    ]
    return f'<worksheet xmlns="{SHEETS}"><sheetData>{"".join(lines)}</sheetData></worksheet>'


def _place(row: int, column: int) -> str:
    return f"{chr(65 + column)}{row}"

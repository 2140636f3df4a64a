"""Reads one sheet of a workbook in a process of its own: a hostile one ends that process, and not the worker."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from data_engine import EXACT, TableEngine, apart

MEMORY = 1 << 30
"""Bytes of address space that reading a workbook may take."""
CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); import data_workbook; data_workbook.main(*sys.argv[2:])"
)


def read_sheet(file: BinaryIO, sheet: str | int, engine: TableEngine, *, header: bool) -> Path:
    """Return a file with the rows of *sheet* as JSON, a line each.

    Raises:
        ValueError: It is not a workbook, it has no such sheet, the sheet is empty, or it is too large.
        TimeoutError: It took too long.
    """
    at = engine.scratch / f"sheet-{file.fileno()}"
    wanted = json.dumps([sheet, header, engine.limits.file_bytes])
    argv = [sys.executable, "-I", "-c", CODE, json.dumps(sys.path), wanted]
    try:
        with at.open("wb") as output:
            done = subprocess.run(
                argv, stdin=file, stdout=output, stderr=subprocess.PIPE, timeout=engine.seconds_left, check=False
            )
    except subprocess.TimeoutExpired:
        raise engine.too_slow() from None
    if done.returncode == 3:
        raise ValueError(f"{file.name}: {done.stderr.decode(errors='replace').strip()}")
    if done.returncode:
        raise ValueError(
            f"{file.name} cannot be read: it is damaged, or needs more than {MEMORY >> 20:,} MB of memory: save the "
            "sheet without far-away cells, or as CSV"
        )
    return at


# ---------------------------------------------------------------- in the other process


def main(wanted: str) -> None:
    """Write the rows of the workbook on standard input to standard output; what is wrong with it to standard error."""
    _limit_memory()
    from python_calamine import CalamineError, load_workbook  # noqa: PLC0415 - only here

    sheet, header, most = json.loads(wanted)
    try:
        with open(0, "rb", closefd=False) as file:
            workbook = load_workbook(file)
            names = workbook.sheet_names
            if sheet not in names if isinstance(sheet, str) else not -1 < sheet < len(names):
                raise ValueError(f"it has no sheet {sheet!r}; there are: {', '.join(names)[:1000]}")
            name = sheet if isinstance(sheet, str) else names[sheet]
            _write(workbook.get_sheet_by_name(name).iter_rows(), header=header, most=most)
    except (CalamineError, ValueError) as error:
        sys.stderr.write(str(error))
        raise SystemExit(3) from None


def _write(rows: Iterator[list[Any]], *, header: bool, most: int) -> None:
    filled = ([None if cell == "" else cell for cell in row] for row in rows)
    kept = [row for row in filled if any(cell is not None for cell in row)]
    first = (kept.pop(0) if header else [None] * len(kept[0])) if kept else []
    if not kept:
        raise ValueError("the sheet has no rows")
    names = list(apart(f"column_{n}" if name is None else str(_plain(name)) for n, name in enumerate(first, 1)))
    makers = [_maker(column) for column in zip(*kept, strict=True)]
    for row in kept:
        cells = [None if cell is None else make(cell) for cell, make in zip(row, makers, strict=True)]
        most -= sys.stdout.write(json.dumps(dict(zip(names, cells, strict=True))) + "\n")
        if most < 0:
            raise ValueError("the sheet is too large: raise the setting tools.data.file_mb")


def _maker(cells: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Return what makes the values of one column alike."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {date, datetime}:
        return _moment  # a workbook gives a moment at midnight as a day
    plain_kinds = {type(_plain(cell)) for cell in cells if cell is not None}
    return _text if len(plain_kinds) > 1 and str in plain_kinds else _plain


def _moment(cell: date) -> str:
    return (cell if isinstance(cell, datetime) else datetime.combine(cell, time())).isoformat()


def _text(cell: Any) -> str:
    return str(_plain(cell))


def _plain(cell: Any) -> Any:
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < EXACT:
        return int(cell)  # a workbook knows only one kind of number
    return str(cell) if isinstance(cell, timedelta) else cell


def _limit_memory() -> None:
    try:
        import resource  # noqa: PLC0415 - Windows has none
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

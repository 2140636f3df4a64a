"""The page read-documents: its programs, on documents that real programs made."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from data_app import write_workbook
from docs_blocks import DOCS, blocks_of
from document_makers import SAMPLES, changed, part_of, pdf
from ot.workspace import Workspace
from run_app import paths_in
from uv_outside import uv_cache_dir

pytestmark = pytest.mark.anyio
PAGE = DOCS / "how-to/read-documents.md"
PROGRAMS = [block.text for block in blocks_of(PAGE) if block.language == "python"]
NOTICE = "Either party may terminate with {} days' notice."


@pytest.fixture
async def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Workspace]:
    """A workspace with the documents that the page speaks of."""
    monkeypatch.setenv("UV_CACHE_DIR", uv_cache_dir())
    opened = Workspace.alone(paths_in(tmp_path))
    work = tmp_path / "work"
    for name in ("sales.xlsx", "slides.pptx", "contract.docx"):
        shutil.copy(SAMPLES / name, work)
    text = part_of("contract.docx", "word/document.xml")
    assert "30 days" in text
    newer = changed("contract.docx", {"word/document.xml": text.replace("30 days", "60 days")})
    (work / "contract-2.docx").write_bytes(newer)
    reports = work / "reports"
    reports.mkdir()
    shutil.copy(SAMPLES / "report.pdf", reports / "00.pdf")
    for number in range(1, 11):
        (reports / f"{number:02}.pdf").write_bytes(
            pdf(["nothing", f"the Recall of {number}"] if number == 7 else ["a"])
        )
    (reports / "11.pdf").write_bytes(b"%PDF-1.7")
    yield opened
    await opened.aclose()


async def played(app: Workspace, number: int) -> Any:
    """Return what the program gives."""
    with anyio.fail_after(100):
        reply = await app.run(PROGRAMS[number], format="json")
    assert not reply.is_error, reply.texts
    return json.loads(reply.texts[-1])


async def test_the_programs_of_the_page_do_what_it_says(app: Workspace, tmp_path: Path) -> None:
    found = await played(app, 0)
    assert found["mentioned"] == {"reports/00.pdf": [2], "reports/07.pdf": [2]}
    assert list(found["not read"]) == ["reports/11.pdf"]
    assert [written["path"] for written in await played(app, 1)] == ["csv/sales.csv"]
    lines = (tmp_path / "work/csv/sales.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["Region,Units,Price,Day,Paid", "North,12,2.5,2026-01-05,True"]
    slides = await played(app, 2)
    assert [(slide["slide"], slide["title"]) for slide in slides] == [(1, "Plan for spring"), (2, "Risks")]
    shown = [part_of("slides.pptx", f"ppt/slides/slide{number}.xml") for number in (1, 2)]
    words = [sum(len(text.split()) for text in re.findall("<a:t>(.*?)</a:t>", slide)) for slide in shown]
    notes = len(["Notes:", "Thank", "the", "team"])
    assert [slide["words"] for slide in slides] == [words[0] + notes, words[1]]
    compared = await played(app, 3)
    assert compared == {"removed": ["- " + NOTICE.format(30)], "added": ["- " + NOTICE.format(60)]}
    assert len(PROGRAMS) == 4


async def test_each_table_of_a_workbook_is_a_csv_file_that_reads_as_the_workbook_does(
    app: Workspace, tmp_path: Path
) -> None:
    sheets: dict[str, list[list[Any]]] = {
        "May": [["item", "note"], ["pump", 'red, "large"'], ["hose", "two\nlines"]],
        "June": [["item", "count"], ["nut", 12], ["bolt", 7]],
    }
    write_workbook(tmp_path / "work" / "sales.xlsx", sheets)
    assert [written["path"] for written in await played(app, 1)] == ["csv/May.csv", "csv/June.csv"]
    for name, rows in sheets.items():
        with (tmp_path / "work" / "csv" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            assert [*csv.reader(file)] == [[str(value) for value in row] for row in rows]

"""The pack ``documents``: what it makes of documents that real programs wrote."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from document_makers import SAMPLES, ods, pdf, xlsx
from ot.build import IN_WORKERS
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.workspace import Workspace
from run_app import paths_in

pytestmark = pytest.mark.anyio
TOOLS = IN_WORKERS / "documents/documents_tools.py"
PAGE = """<html><head><title>Prices</title><meta name="author" content="Bo"><style>p {}</style></head><body>
<h1>Prices</h1><p>All in <b>francs</b>, see <a href="https://example.org/">here</a>.</p><script>no()</script>
<table><caption>Parts</caption><tr><th>Part</th><th colspan="2">Price</th></tr>
<tr><td rowspan="2">Bolt | Nut</td><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table></body></html>"""
SPANS = """<table><tr><th>a</th><th>b</th><th>c</th><th>d</th></tr>
<tr><td>1</td><td rowspan="3" colspan="2">2</td><td>3</td></tr>
<tr></tr><tr><td>4</td><td>5</td></tr><tr><td>6</td><td>7</td><td>8</td><td>9</td></tr></table>"""
AWAY = '<row r="3"><c r="C3"><v>1</v></c><c r="D3"><v>2</v></c></row><row r="4"><c r="D4"><v>3</v></c></row>'


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Workspace]:
    """A workspace whose directory holds the samples."""
    directory = tmp_path_factory.mktemp("documents")
    opened = Workspace.alone(paths_in(directory), engine=PortableEngine())
    work = directory / "work"
    for file in SAMPLES.iterdir():
        shutil.copy(file, work)
    shutil.copy(work / "slides.pptx", work / "talk.pptx")
    (work / "prices.html").write_text(PAGE)
    (work / "spans.html").write_text(SPANS)
    (work / "unsaid.html").write_bytes("<p>Müller €5</p>".encode("cp1252"))
    (work / "said.html").write_bytes('<meta charset="iso-8859-2"><p>Łódź</p>'.encode("iso-8859-2"))
    (work / "away.xlsx").write_bytes(xlsx(f"<sheetData>{AWAY}</sheetData>"))
    (work / "scan.pdf").write_bytes(pdf(["", ""]))
    (work / "long.pdf").write_bytes(pdf(f"line {number}" for number in range(1, 13)))
    cell = "<table:table-cell office:value-type={}><text:p>{}</text:p></table:table-cell>"
    row = cell.format('"string"', "x") + cell.format('"float" office:value="2.5"', "2.5")
    (work / "small.ods").write_bytes(ods(f"<table:table-row>{row}</table:table-row>"))
    yield opened
    await opened.aclose()


async def value(app: Workspace, call: str) -> Any:
    """Return what a call gives, through JSON."""
    with anyio.fail_after(100):
        reply = await app.run(f"import json\njson.dumps({call})")
    assert not reply.is_error, reply.texts
    return json.loads(reply.texts[-1])


async def error(app: Workspace, call: str) -> str:
    """Return what a call is refused with."""
    with anyio.fail_after(100):
        reply = await app.run(call)
    assert reply.is_error, reply.texts
    return reply.texts[-1]


async def test_a_word_document_becomes_headings_tables_and_lists(app: Workspace) -> None:
    text = await value(app, 'documents.to_markdown(path="contract.docx")')
    assert text.startswith("# Supply contract\n\n## 1 Term\n\nThe **Term** shall be two years")
    assert re.search(r"\| \**Item\** \| \**Price\** \|\n\| --- \| --- \|\n\| Bolt \| 0\.40 \|", text)
    assert "- Either party may terminate with 30 days' notice." in text


async def test_a_pdf_is_read_page_by_page(app: Workspace) -> None:
    pages = await value(app, 'documents.pages(path="report.pdf")')
    assert [(page["page"], page["title"]) for page in pages] == [(1, "Yearly report"), (2, "Outlook")]
    assert "the recall cost 12,000 francs" in " ".join(pages[1]["text"].split())
    text = await value(app, 'documents.to_markdown(path="report.pdf", pages=2)')
    assert text.startswith("<!-- page 2 -->\n\nOutlook") and "Yearly" not in text


@pytest.mark.parametrize(
    ("pages", "numbers"),
    [
        pytest.param("3", [3], id="a number"),
        pytest.param('"2-4,7"', [2, 3, 4, 7], id="ranges"),
        pytest.param('"11-"', [11, 12], id="an open range"),
        pytest.param('"11-99"', [11, 12], id="a range beyond the end"),
        pytest.param('"4, 1-2, 2"', [4, 1, 2], id="an order of its own and no page twice"),
    ],
)
async def test_pages_are_chosen_by_numbers_and_ranges(app: Workspace, pages: str, numbers: list[int]) -> None:
    found = await value(app, f'documents.pages(path="long.pdf", pages={pages})')
    assert [(page["page"], page["text"]) for page in found] == [(number, f"line {number}") for number in numbers]


@pytest.mark.parametrize(
    "pages",
    ["0", '"3-1"', '"-2"', '"a"', '""', '"1;2"', '"\u0661"', "True"],
    ids=["nothing", "backwards", "below one", "a letter", "empty", "two signs", "a foreign digit", "a boolean"],
)
async def test_pages_that_say_nothing_are_refused(app: Workspace, pages: str) -> None:
    assert "pages must " in await error(app, f'documents.pages(path="long.pdf", pages={pages})')


async def test_a_page_that_is_not_there_is_an_error_that_says_how_many_there_are(app: Workspace) -> None:
    said = await error(app, 'documents.pages(path="long.pdf", pages="13")')
    assert "'long.pdf' has 12 page(s), and no page 13" in said


async def test_slides_have_titles_lists_tables_and_notes(app: Workspace) -> None:
    pages = await value(app, 'documents.pages(path="slides.pptx")')
    assert [page["title"] for page in pages] == ["Plan for spring", "Risks"]
    assert pages[0]["text"] == ("# Plan for spring\n\n- Ship the pump\n- Hire two people\n\nNotes:\n\n> Thank the team")
    (table,) = await value(app, 'documents.tables(path="slides.pptx")')
    assert (table["page"], table["rows"][1]) == (2, {"Risk": "Strike", "Owner": "Ben"})


@pytest.mark.parametrize("kind", ["xlsx", "xls"])
async def test_rows_of_a_workbook_have_types(app: Workspace, kind: str) -> None:
    (table,) = await value(app, f'documents.tables(path="sales.{kind}", limit=2)')
    assert table["columns"] == ["Region", "Units", "Price", "Day", "Paid"]
    assert table["rows"][0] == {"Region": "North", "Units": 12, "Price": 2.5, "Day": "2026-01-05", "Paid": True}
    assert (table["name"], table["page"], len(table["rows"]), table["more"]) == ("sales", 1, 2, True)


async def test_a_workbook_is_also_markdown(app: Workspace) -> None:
    text = await value(app, 'documents.to_markdown(path="sales.xlsx")')
    assert text.startswith(
        "## sales\n\n| Region | Units | Price | Day | Paid |\n| --- | --- | --- | --- | --- |\n| North "
    )


async def test_an_open_document_workbook_without_a_head_has_letters_for_columns(app: Workspace) -> None:
    (table,) = await value(app, 'documents.tables(path="small.ods", header=False)')
    assert table["rows"] == [{"A": "x", "B": 2.5}]


async def test_a_sheet_is_chosen_by_name_and_a_wrong_name_lists_them(app: Workspace) -> None:
    assert len(await value(app, 'documents.tables(path="sales.xlsx", sheet="sales")')) == 1
    assert "has no sheet 'x'; its sheets are 'sales'" in await error(
        app, 'documents.tables(path="sales.xlsx", sheet="x")'
    )


async def test_tables_of_a_word_document_are_rows(app: Workspace) -> None:
    (table,) = await value(app, 'documents.tables(path="contract.docx")')
    assert table["rows"] == [{"Item": "Bolt", "Price": "0.40"}, {"Item": "Nut", "Price": "0.25"}]


async def test_tables_of_html_keep_their_places_where_cells_span_others(app: Workspace) -> None:
    (table,) = await value(app, 'documents.tables(path="prices.html")')
    assert (table["name"], table["columns"]) == ("Parts", ["Part", "Price", "C"])
    assert table["rows"] == [
        {"Part": "Bolt | Nut", "Price": "1", "C": "2"},
        {"Part": None, "Price": "3", "C": "4"},
    ]


async def test_cells_stay_in_their_columns_below_a_cell_that_spans_rows(app: Workspace) -> None:
    (table,) = await value(app, 'documents.tables(path="spans.html")')
    assert [list(row.values()) for row in table["rows"]] == [
        ["1", "2", None, "3"],
        ["4", None, None, "5"],
        ["6", "7", "8", "9"],
    ]
    lines = (await value(app, 'documents.to_markdown(path="spans.html")')).splitlines()
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[-2:]] == [
        ["4", "", "", "5"],
        ["6", "7", "8", "9"],
    ]


async def test_a_sheet_that_begins_away_from_its_corner_has_all_of_its_cells(app: Workspace) -> None:
    (table,) = await value(app, 'documents.tables(path="away.xlsx", header=False)')
    assert table["rows"] == [{"A": 1, "B": 2}, {"A": None, "B": 3}]
    assert "| 1 | 2 |" in await value(app, 'documents.to_markdown(path="away.xlsx")')


@pytest.mark.parametrize(("path", "text"), [("unsaid.html", "Müller €5"), ("said.html", "Łódź")], ids=["not", "so"])
async def test_html_that_is_not_utf_8_is_read_whether_it_says_so(app: Workspace, path: str, text: str) -> None:
    assert await value(app, f"documents.to_markdown(path={path!r})") == text


async def test_html_becomes_markdown_without_scripts_and_styles(app: Workspace) -> None:
    text = await value(app, 'documents.to_markdown(path="prices.html")')
    assert text.startswith("# Prices\n\nAll in **francs**, see [here](https://example.org/).")
    assert "Bolt \\| Nut" in text and "no()" not in text and "p {}" not in text


async def test_tables_of_a_pdf_are_an_error_that_says_what_to_do(app: Workspace) -> None:
    assert "read its text with documents.pages" in await error(app, 'documents.tables(path="report.pdf")')


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("contract.docx", {"kind": "docx", "unit": "document", "count": 1, "title": "Supply contract"}),
        ("report.pdf", {"kind": "pdf", "unit": "page", "count": 2, "title": "Yearly report"}),
        ("slides.pptx", {"kind": "pptx", "unit": "slide", "count": 2}),
        ("sales.xlsx", {"kind": "xlsx", "unit": "sheet", "count": 1, "names": ["sales"]}),
        ("sales.xls", {"kind": "xls", "unit": "sheet", "count": 1, "names": ["sales"]}),
        ("small.ods", {"kind": "ods", "unit": "sheet", "count": 1, "names": ["One"]}),
        ("prices.html", {"kind": "html", "unit": "document", "title": "Prices", "author": "Bo", "created": ""}),
    ],
    ids=["docx", "pdf", "pptx", "xlsx", "xls", "ods", "html"],
)
async def test_info_tells_what_a_document_is(app: Workspace, path: str, known: dict[str, Any]) -> None:
    found = await value(app, f"documents.info(path={path!r})")
    assert known == {name: found[name] for name in known}
    assert found["bytes"] > 0 and (found["created"] == "" or re.match(r"\d{4}-\d\d-\d\dT", found["created"]))


async def test_a_search_finds_a_phrase_across_marks_and_lines_and_names_what_it_could_not_read(app: Workspace) -> None:
    call = 'documents.search(text="the TERM shall", paths=["report.pdf", "contract.docx", "gone.pdf", "README.md"])'
    found = await value(app, call)
    match, *unread = found
    assert (match["path"], match["page"]) == ("contract.docx", 1) and "The Term shall be two years" in match["text"]
    assert [(row["path"], row["page"], row["text"]) for row in unread] == [("gone.pdf", 0, ""), ("README.md", 0, "")]
    assert "not a document of a known kind" in unread[1]["error"]


async def test_a_search_minds_the_case_if_told_and_ends_at_its_limit(app: Workspace) -> None:
    call = 'documents.search(text="{}", paths=["long.pdf"], ignore_case={}, limit=3)'
    assert await value(app, call.format("LINE", False)) == []
    found = await value(app, call.format("LINE", True))
    assert [(row["page"], row.get("error")) for row in found] == [
        (1, None), (2, None), (3, None), (0, "there are more places than 3"),
    ]  # fmt: skip
    assert len(await value(app, 'documents.search(text="line 12", paths=["long.pdf"], limit=1)')) == 1


async def test_a_search_finds_a_bar_in_a_table_and_tells_a_scan_from_a_document_without_the_phrase(
    app: Workspace,
) -> None:
    found = await value(app, 'documents.search(text="bolt | nut", paths=["prices.html", "scan.pdf", "report.pdf"])')
    assert [(row["path"], "error" in row) for row in found] == [("prices.html", False), ("scan.pdf", True)]
    assert "has no text to search" in found[1]["error"]


def examples() -> list[str]:
    """Return the call that each tool's docstring shows."""
    return re.findall(r"Example:\n\s+(documents\..+)\n", TOOLS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("call", examples(), ids=lambda call: call.partition("(")[0])
async def test_the_example_of_a_tool_runs(app: Workspace, call: str) -> None:
    assert await value(app, call)


def test_every_tool_has_an_example() -> None:
    assert len(examples()) == 5

"""Pages about packs: each of their programs, played on real files and services on loopback."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncGenerator, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from chat.answering import answering, input_of
from code_app import CodeApp, code_app
from data_app import write_workbook
from docs_blocks import DOCS, blocks_of
from document_makers import SAMPLES, changed, part_of, pdf
from ot.workspace import Workspace
from run_app import paths_in, running_app, value_of
from uv_outside import uv_cache_dir

pytestmark = pytest.mark.anyio

HISTORY = DOCS / "how-to/work-on-code-history.md"


def commit(directory: Path, message: str, days: int, author: str, **files: str) -> None:
    """Commit *files* (``__`` stands for a slash, ``_`` for a dot) as *author*, some days ago."""
    for name, text in files.items():
        path = directory / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    when = (datetime.now(UTC) - timedelta(days=days)).isoformat()
    names = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER")
             for key, value in (("NAME", author), ("EMAIL", f"{author}@example.org"), ("DATE", when))}  # fmt: skip
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, **names}
    for args in (["add", "."], ["commit", "--quiet", "-m", message]):
        subprocess.run(["git", *args], cwd=directory, env=environ, check=True)


def day(ago: int) -> str:
    return (datetime.now(UTC) - timedelta(days=ago)).date().isoformat()


def make_history(directory: Path) -> None:
    for args in (
        ["init", "--quiet", "--initial-branch=main"],
        ["config", "user.name", "Ada"],
        ["config", "user.email", "a@x"],
    ):
        subprocess.run(["git", *args], cwd=directory, check=True)
    commit(directory, "Begin", 90, "Ada", src__app_py="def main():\n    start()\n", _gitignore="build/\n")
    commit(directory, "Run", 9, "Bob", src__app_py="def main():\n    run()\n", docs__use_md="max_retries: 3\n")
    commit(directory, "Configure", 5, "Ada", src__settings_py="max_retries = 3\n", docs__more_md="# More\n")
    (directory / "build").mkdir()
    (directory / "build" / "settings.py").write_text("max_retries = 3\n")


async def played(app: Workspace, source: str) -> Any:
    value = value_of(await app.run(source))
    try:
        return json.loads(value)
    except ValueError:
        return value


async def test_the_programs_about_history_do_what_the_page_says(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={"policy": {"allow": ["git.*", "file.*"]}}) as app:
        directory = tmp_path / "work"
        make_history(directory)
        programs = [block.text for block in blocks_of(HISTORY) if block.language == "python"]
        by_area, by_author, dry, renamed, patched, committed, undone = [
            await played(app, program) for program in programs
        ]
    assert by_area == [["docs", 2], ["src", 2]]
    assert by_author == [
        {"author": "Ada", "lines": 1, "last": day(90)},
        {"author": "Bob", "lines": 1, "last": day(9)},
    ]
    assert dry.count("+++ b/") == 2
    assert "-max_retries = 3\n+retry_limit = 3\n" in dry
    assert renamed == ["docs/use.md: +1 -1", "src/settings.py: +1 -1"]
    assert [(done["path"], done["created"]) for done in patched] == [("src/app.py", False), ("docs/check.md", True)]
    assert [change["path"] for change in committed] == ["docs/check.md", "src/app.py", "src/settings.py"]
    assert undone == "def main():\n    run()\n"
    assert (directory / "build" / "settings.py").read_text() == "max_retries = 3\n"


REMEMBER = DOCS / "how-to/remember-and-ask-a-model.md"
PAGES = ("api", "cache", "deploy", "login")
FEEDBACK = "customer,text\nann,Far too slow\nbob,Support was great\ncid,Mumble\ndot,So fast now\n"


def feedback(line: str) -> dict[str, Any]:
    """Return what a model makes of a customer's words; of some it makes nothing."""
    if "Mumble" in line:
        return {"area": "who knows", "positive": True}
    return {"area": "support" if "Support" in line else "speed", "positive": "slow" not in line}


async def model(question: str) -> Any:
    """Answer as the page's programs expect it of a model."""
    if "Which decisions" in question:
        assert "Deploys go out" in input_of(question)
        return {"decisions": [{"decision": "We deploy on Tuesdays only.", "topic": "Deploy"}]}
    if question.startswith("When may we deploy?"):
        (note,) = json.loads(input_of(question))
        return f"{note['text']} ({note['id']})"
    if "customer's feedback" in question:
        return feedback(input_of(question))
    return f"It is about {input_of(question).removeprefix('# ')}."


@pytest.mark.anyio
async def test_the_programs_that_remember_and_ask_do_what_the_page_says(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "docs").mkdir(parents=True)
    (work / "meeting.md").write_text("Ann: Deploys go out on Tuesdays, agreed? All: yes.\n")
    (work / "feedback.csv").write_text(FEEDBACK)
    for name in PAGES:
        (work / "docs" / f"{name}.md").write_text(f"# {name}")
    decide, answer, sort, sum_up = (block.text for block in blocks_of(REMEMBER) if block.language == "python")
    async with answering(model) as wire:
        chat = {"provider": "ollama", "ollama_url": wire.url}
        async with running_app(tmp_path, config={"chat": chat}) as app:

            async def play(program: str) -> Any:
                return json.loads(value_of(await app.run(f"__format__ = 'json'\n{program}")))

            assert await play(decide) == [{"tag": "decision", "notes": 1}, {"tag": "deploy", "notes": 1}]
            assert await play(answer) == {"answer": "We deploy on Tuesdays only. (1)", "notes": [1]}
            table = {"speed": {"good": 1, "bad": 1}, "support": {"good": 1, "bad": 0}}
            assert await play(sort) == {"table": table, "failed": ["cid,Mumble"]}
            assert [await play(sum_up) for _ in range(3)] == [
                {"new": 3, "left": 1},
                {"new": 1, "left": 0},
                {"new": 0, "left": 0},
            ]
            kept = await play("[note['start'] for note in memory.list(tags=['summary'])]")
            assert sorted(kept) == [f"docs/{name}.md\nIt is about {name}." for name in PAGES]


DOCUMENTS = DOCS / "how-to/read-documents.md"
DOCUMENT_PROGRAMS = [block.text for block in blocks_of(DOCUMENTS) if block.language == "python"]
NOTICE = "Either party may terminate with {} days' notice."


@pytest.fixture
async def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Workspace]:
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


async def played_on_documents(documents: Workspace, number: int) -> Any:
    """Return what the program gives."""
    with anyio.fail_after(100):
        reply = await documents.run(DOCUMENT_PROGRAMS[number], format="json")
    assert not reply.is_error, reply.texts
    return json.loads(reply.texts[-1])


async def test_the_programs_that_read_documents_do_what_the_page_says(documents: Workspace, tmp_path: Path) -> None:
    found = await played_on_documents(documents, 0)
    assert found["mentioned"] == {"reports/00.pdf": [2], "reports/07.pdf": [2]}
    assert list(found["not read"]) == ["reports/11.pdf"]
    assert [written["path"] for written in await played_on_documents(documents, 1)] == ["csv/sales.csv"]
    lines = (tmp_path / "work/csv/sales.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["Region,Units,Price,Day,Paid", "North,12,2.5,2026-01-05,True"]
    slides = await played_on_documents(documents, 2)
    assert [(slide["slide"], slide["title"]) for slide in slides] == [(1, "Plan for spring"), (2, "Risks")]
    shown = [part_of("slides.pptx", f"ppt/slides/slide{number}.xml") for number in (1, 2)]
    words = [sum(len(text.split()) for text in re.findall("<a:t>(.*?)</a:t>", slide)) for slide in shown]
    notes = len(["Notes:", "Thank", "the", "team"])
    assert [slide["words"] for slide in slides] == [words[0] + notes, words[1]]
    compared = await played_on_documents(documents, 3)
    assert compared == {"removed": ["- " + NOTICE.format(30)], "added": ["- " + NOTICE.format(60)]}
    assert len(DOCUMENT_PROGRAMS) == 4


async def test_each_table_of_a_workbook_is_a_csv_file_that_reads_as_the_workbook_does(
    documents: Workspace, tmp_path: Path
) -> None:
    sheets: dict[str, list[list[Any]]] = {
        "May": [["item", "note"], ["pump", 'red, "large"'], ["hose", "two\nlines"]],
        "June": [["item", "count"], ["nut", 12], ["bolt", 7]],
    }
    write_workbook(tmp_path / "work" / "sales.xlsx", sheets)
    assert [written["path"] for written in await played_on_documents(documents, 1)] == ["csv/May.csv", "csv/June.csv"]
    for name, rows in sheets.items():
        with (tmp_path / "work" / "csv" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            assert [*csv.reader(file)] == [[str(value) for value in row] for row in rows]


SEARCH_CODE = DOCS / "how-to/search-code.md"
FILES = {
    "shop/__init__.py": "",
    "shop/orders.py": (
        "import json\nfrom shop.web import fetch\n\n\n"
        "# TODO(ada): refund twice\ndef order(name):\n    data = fetch(\n        name,  # who\n"
        "        retry=2,\n    )\n"
        "    return json.loads(data)\n\n\n"
        "def refund(name):\n    # FIXME\n    return order(name)\n\n\ndef _unused():\n    pass\n"
    ),
    "shop/web.py": "def fetch(url, retry=1):\n    return '{}'\n\n\ndef close():\n    fetch('bye')\n",
    "tests/test_orders.py": "from shop.orders import refund\n\n\ndef test_it():  # TODO more\n    assert refund('a')\n",
    "app.js": "function fetch(url) { return fetch(url); } // TODO\n",
}
ANSWERS: list[Any] = [
    ["shop/web.py:5 close"],
    [
        {"area": ".", "owner": "nobody", "count": 1},
        {"area": "shop", "owner": "ada", "count": 1},
        {"area": "shop", "owner": "nobody", "count": 1},
        {"area": "tests", "owner": "nobody", "count": 1},
    ],
    {"shop/orders.py": 1, "shop/web.py": 1},
    {
        "written": ["shop/orders.py", "shop/web.py"],
        "left": [
            "shop/orders.py:2 from shop.web import fetch",
            "shop/web.py:1 def fetch(url, retry=1):",
        ],
    },
    [
        {"module": "json", "imported by": "shop/orders.py", "names": ""},
        {"module": "shop.orders", "imported by": "tests/test_orders.py", "names": "refund"},
        {"module": "shop.web", "imported by": "shop/orders.py", "names": "fetch"},
    ],
    [
        {"function": "order", "lines": 4, "called from": ["refund"]},
        {"function": "refund", "lines": 3, "called from": ["test_it"]},
        {"function": "_unused", "lines": 2, "called from": []},
    ],
    ["shop/orders.py:5"],
]


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Generator[CodeApp]:
    with code_app(tmp_path_factory.mktemp("search_code")) as code:
        code.write(FILES)
        yield code


def test_each_program_of_the_page_answers_its_question(code: CodeApp) -> None:
    programs = [block.text for block in blocks_of(SEARCH_CODE) if block.language == "python"]
    assert len(programs) == len(ANSWERS)
    for program, answer in zip(programs, ANSWERS, strict=True):
        assert code.value(program) == answer
    assert "    data = client.get(name,  # who\n        retry=2,)\n" in (code.directory / "shop/orders.py").read_text()


def test_the_page_is_short_enough_to_read() -> None:
    assert len(SEARCH_CODE.read_text(encoding="utf-8").split()) < 1_500

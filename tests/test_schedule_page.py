"""The page about schedules: its cron line is executed, its activity is killed and tried again."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from checkout import ROOT
from console_blocks import Typed
from pace import PATIENCE, patiently
from test_how_to_pages import FILE_BLOCK
from test_how_to_pages import FILES as CI_FILES

PAGE = (ROOT / "docs/how-to/schedule-runs.md").read_text(encoding="utf-8")
FILES = {block["file"]: block["text"] for block in FILE_BLOCK.finditer(PAGE)}
LINE = re.compile(r"^[\d*/,-]+ [\d*/,-]+ [\d*/,-]+ [\d*/,-]+ [\d*/,-]+ (?P<command>.+)$", re.MULTILINE)
LOCKED = 75
BANK = '''
"""A bank that does what it is told and then does not answer, the first time."""

from pathlib import Path
from time import sleep

__ot_destructive__ = ["pay"]


def pay(*, amount: int) -> str:
    """Pay."""
    return entered("pay", amount)


def note(*, amount: int) -> str:
    """Note; nobody has marked it."""
    return entered("note", amount)


def entered(what: str, amount: int) -> str:
    """Write it into the book."""
    book = Path.home() / what
    is_first = not book.exists()
    with book.open("a") as lines:
        lines.write(f"{amount} ")
    if is_first:
        sleep(600)
    return f"{what} {amount}"
'''
BOTH = "import asyncio\nawait asyncio.gather(bank.note(amount=5), bank.pay(amount=5))"
CONFIG = """
policy: {allow: ["bank.*"]}
engines: {use: portable}
servers: {gone: {url: "http://127.0.0.1:9/mcp"}}
"""
PROGRAMS = {
    "both.py": BOTH,
    "again.py": "bank.note(amount=5)\nbank.pay(amount=5)",
    "fault.py": "1 / 0",
    "away.py": "gone.look()",
    "sum.py": "1 + 1",
}


# ---------------------------------------------------------------- cron


@pytest.fixture
def shop(home: Path) -> Path:
    """The project that the crontab line changes to, with the program of the page on CI."""
    program = home / "shop" / "programs" / "todos.py"
    program.parent.mkdir(parents=True)
    program.write_text(CI_FILES["programs/todos.py"])
    (home / "shop" / "src").mkdir()
    (home / "shop" / "src" / "main.py").write_text("# TODO(ada): tidy up\n")
    return home / "shop"


def by_cron(home: Path) -> int:
    """Execute the line's command as cron does, and return its exit code; ours is where the page's PATH says."""
    (line,) = LINE.finditer(FILES["crontab"])
    path = re.search(r"^PATH=(.+)$", FILES["crontab"], re.MULTILINE)
    assert path
    where = path[1].replace("/usr/local/bin", str(Path(sys.executable).parent))
    environment = {"HOME": str(home), "LOGNAME": "ada", "SHELL": "/bin/sh", "PATH": where}
    environment |= {
        name: value for name, value in os.environ.items() if name in ("PYTHONPATH", "COVERAGE_PROCESS_START")
    }
    assert shutil.which("flock", path=where)
    shell = ["/bin/sh", "-c", line["command"]]
    return subprocess.run(
        shell, cwd=home, env=environment, stdin=subprocess.DEVNULL, timeout=60, check=False
    ).returncode


def test_the_line_of_the_crontab_runs_the_program_and_ends_as_it_does(home: Path, shop: Path) -> None:
    assert by_cron(home) == 0
    assert (shop / "todos.log").read_text() == "every TODO has an owner\n"
    (shop / "src" / "late.py").write_text("x = 1  # TODO: name it\n")
    assert by_cron(home) == 1
    assert "ValueError: 1 TODO without an owner" in (shop / "todos.log").read_text()


def test_while_one_run_goes_on_the_line_starts_no_other(home: Path, shop: Path) -> None:
    with (shop / ".todos.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert by_cron(home) == LOCKED
    assert (shop / "todos.log").read_text() == ""


def test_the_schedule_of_the_page_fits_the_job_of_the_page_on_ci() -> None:
    schedule: dict[Any, Any] = yaml.safe_load(FILES[".github/workflows/nightly.yml"])
    job: dict[Any, Any] = yaml.safe_load(CI_FILES[".github/workflows/todos.yml"])
    on = schedule[True]  # YAML takes the word for a truth value
    assert list(on) == ["schedule", "workflow_dispatch"]
    assert LINE.fullmatch(f"{on['schedule'][0]['cron']} command")
    assert True in job and not job.keys() & {"concurrency", "schedule"}


# ---------------------------------------------------------------- Temporal


@pytest.fixture
def worker(home: Path) -> Path:
    """The page's files and a bank; the policy lets programs call it."""
    tools = home / ".onetool" / "tools" / "bank"
    tools.mkdir(parents=True)
    (tools / "bank_tools.py").write_text(BANK)
    (home / ".onetool" / "onetool.yaml").write_text(CONFIG)
    (home / "work").mkdir()
    for name, text in {**FILES, **PROGRAMS}.items():
        if name.endswith(".py"):
            (home / "work" / name).write_text(text)
    return home / "work"


def begun(worker: Path, *programs: str) -> subprocess.Popen[str]:
    """Begin attempts at *programs*, one after the other."""
    command = [sys.executable, str(Path(__file__).with_name("temporal_attempt.py")), str(worker), *programs]
    return subprocess.Popen(command, cwd=worker, stdout=subprocess.PIPE, text=True)


def told(worker: Path, *programs: str) -> dict[str, Any]:
    """Return what Temporal is told of attempts that nobody kills."""
    process = begun(worker, *programs)
    try:
        return json.loads(process.communicate(timeout=2 * PATIENCE)[0])
    finally:
        process.kill()


def test_an_attempt_after_a_killed_one_does_not_silently_repeat_calls(worker: Path) -> None:
    books = worker.parent / "note", worker.parent / "pay"
    first = begun(worker, "both.py")
    assert any(all(book.exists() and book.read_text() for book in books) for _ in patiently())
    first.kill()
    first.communicate()
    found = told(worker, "again.py", "fault.py", "away.py", "sum.py")
    again = found["again.py"]
    assert (again["type"], again["final"]) == ("NotApproved", True)
    noted, _, refused = again["text"].partition("is unknown\n")
    assert noted.startswith("note: bank.note is called again: the same call was sent at")
    assert Typed("", FILES["refused.txt"]).is_kept_by(refused)
    assert ["5 5 ", "5 "] == [book.read_text() for book in books]  # told, and made; refused
    assert ("ZeroDivisionError", True) == (found["fault.py"]["type"], found["fault.py"]["final"])
    assert ("ToolUnavailable", False) == (found["away.py"]["type"], found["away.py"]["final"])
    assert re.fullmatch(r"[0-9a-f]{16}", found["fault.py"]["run"])
    assert "2" == found["sum.py"]["value"]
    assert found["sum.py"]["beats"] > 0
    assert "Nightly" == found["workflow"]

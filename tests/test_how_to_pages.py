"""Pages about using OneTool: their commands, typed as a reader would, print what they say."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from chat.wire_server import ollama_calls, ollama_text, serving_aside
from checkout import ROOT
from console_blocks import SECONDS, STEP, Typed, check, check_printed, typed_commands
from docs_blocks import DOCS, blocks_of
from mcp_wire import HANDSHAKE
from ot.config.clients.known_clients import CLIENTS
from run_app import running_app
from shared_bed import asked_bed
from system_package import require_programs
from test_generated_pages import written
from uv_outside import uv_cache_dir

pytestmark = pytest.mark.anyio

FILE_BLOCK = re.compile(r'^```(?:python|text|yaml) title="(?P<file>[^"]+)"\n(?P<text>.*?)^```', re.M | re.S)

SCRIPT = Path(__file__).with_name("agent_frameworks.py")


def test_the_agents_of_the_page_answer_from_what_their_programs_returned(tmp_path: Path) -> None:
    page, work = tmp_path / "page", tmp_path / "work"
    page.mkdir()
    work.mkdir()
    names = written(page, "use-from-agent-frameworks")
    (work / "a.txt").write_text("one\ntwo\n")
    (work / "b.txt").write_text("three\n")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, SCRIPT, page], cwd=work, env=environment, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert set(answers.values()) == {"3 lines"}
    assert [f"{name}.py" for name in answers] == names


CI = (ROOT / "docs/how-to/run-in-ci.md").read_text(encoding="utf-8")
FILES = {block["file"]: block["text"] for block in FILE_BLOCK.finditer(CI)}
WORKFLOW = ".github/workflows/todos.yml"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the page's program."""
    program = "programs/todos.py"
    for name, text in ((program, FILES[program]), ("src/main.py", "# TODO(ada): tidy up\n")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def typed(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run *command* as a job's shell does."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "GITHUB_TOKEN": "a-token-of-the-job"}
    shell = ["bash", "-eo", "pipefail", "-c", command]
    return subprocess.run(shell, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=60)


def steps() -> tuple[str, str]:
    """Return what the job runs once OneTool is installed: the program, and what shows its words."""
    (job,) = yaml.safe_load(FILES[WORKFLOW])["jobs"].values()
    named: dict[str, Any] = {step["name"]: step for step in job["steps"] if "name" in step}
    assert list(named) == ["install", "run the program", "show what it said"]
    assert named["show what it said"]["if"] == "always()"
    return named["run the program"]["run"], named["show what it said"]["run"]


def test_the_job_passes_where_the_program_does(repository: Path) -> None:
    run, show = steps()
    assert typed(run, repository).returncode == 0
    assert typed(show, repository).stdout == "every TODO has an owner\n"


def test_the_job_fails_with_the_program_and_says_why(repository: Path) -> None:
    (repository / "src" / "late.py").write_text("x = 1  # TODO: name it\n")
    run, show = steps()
    assert typed(run, repository).returncode == 1
    said = typed(show, repository).stdout
    assert "src/late.py:1: x = 1  # TODO: name it" in said
    assert "ValueError: 1 TODO without an owner" in said


def test_what_a_job_allows_and_adds_is_the_user_s(repository: Path, home: Path) -> None:
    for command in typed_commands(CI):
        done = typed(command.command, repository)
        assert command.is_kept_by(done.stdout + done.stderr), done
    written: dict[str, Any] = yaml.safe_load((home / ".onetool" / "onetool.yaml").read_text())
    assert written["policy"]["allow"] == ["github.create_issue"]
    assert written["servers"]["github"]["env"] == {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}


def test_the_page_of_the_command_line_is_current() -> None:
    code = "import sys; sys.path.insert(0, 'docs'); import make_cli_page; sys.stdout.write(make_cli_page.page())"
    # In a process of its own: the width of the help texts is set before the library is imported.
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    page = (ROOT / "docs/reference/cli.md").read_text()
    assert made.stdout == page, "run: python docs/make_cli_page.py"


CONNECT = Path(__file__).parents[1] / "docs/how-to/connect-a-client.md"


def test_the_commands_that_connect_a_client_do_what_the_page_says(home: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    typed = typed_commands(CONNECT.read_text())
    assert len(typed) == 4
    for entry in typed:
        done = subprocess.run(
            ["bash", "-c", entry.command], cwd=home, env=environment, capture_output=True, text=True, timeout=60
        )
        assert entry.is_kept_by(done.stdout), f"$ {entry.command}\n{done.stdout}{done.stderr}"


def test_the_page_names_every_client() -> None:
    page = CONNECT.read_text()
    assert [name for name, client in CLIENTS.items() if f"| {client.title} | `{name}` |" not in page] == []


LIBRARY = (ROOT / "docs/reference/library.md").read_text(encoding="utf-8")
BLOCKS = {block["file"]: block["text"] for block in FILE_BLOCK.finditer(LIBRARY)}
PROGRAMS = [name for name in BLOCKS if name.endswith(".py")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_prints_what_the_page_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(BLOCKS[name], encoding="utf-8")
    runpy.run_path(name, run_name="__main__")
    printed = capsys.readouterr().out
    assert Typed(name, BLOCKS[name.replace(".py", ".txt")]).is_kept_by(printed), printed


def test_every_python_block_of_the_page_is_one_of_these() -> None:
    assert LIBRARY.count("```python") == len(PROGRAMS) == 3


OPENAPI = DOCS / "how-to/openapi.md"
BOOKS = [{"title": "The Dispossessed", "author": "Le Guin", "year": 1974}]
PORT = "8099"


class Library(BaseHTTPRequestHandler):
    """Answers every question with its books."""

    def do_GET(self) -> None:
        body = json.dumps(BOOKS if self.path == "/books?author=Le+Guin" else []).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Be silent."""


@pytest.fixture
def port() -> Generator[int]:
    """A port on which the library answers."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Library)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    serving.join()


def test_the_commands_about_openapi_do_what_the_page_says(tmp_path: Path, home: Path, port: int):
    (document,) = [block for block in blocks_of(OPENAPI) if block.title == "library.yaml"]
    (tmp_path / "library.yaml").write_text(document.text)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in typed_commands(OPENAPI.read_text().replace(PORT, str(port))):
        shell = ["bash", "-c", command.command]
        done = subprocess.run(
            shell, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=SECONDS
        )
        check_printed(command, done.stdout)  # what it says meanwhile goes to standard error


OT_PACK = (ROOT / "docs/reference/ot-pack.md").read_text(encoding="utf-8")


async def test_the_page_about_the_ot_pack_shows_what_it_gives() -> None:
    script: dict[str, Any] = runpy.run_path(str(ROOT / "docs/make_ot_page.py"))
    assert len(script["COMMAND"].findall(OT_PACK)) >= 10
    assert await script["made"](OT_PACK) == OT_PACK, "run: python docs/make_ot_page.py"


async def test_the_page_names_every_function_of_the_pack(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        assert [name for name in app.picture.registry.pack("ot").tools if f"`ot.{name}(" not in OT_PACK] == []


SHARED = Path(__file__).parents[1] / "docs/how-to/share-one-server.md"


def test_the_commands_about_the_shared_server_do_what_the_page_says(tmp_path: Path) -> None:
    typed = typed_commands(SHARED.read_text())
    assert [entry.command for entry in typed] == ["onetool ps", "onetool stop"]
    with asked_bed(tmp_path) as house:
        shop = house.home / "shop"
        shop.mkdir()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        with house.client(cwd=shop, handshake=False) as client:
            client.request("initialize", HANDSHAKE | {"clientInfo": {"name": "claude-code", "version": "1"}})
            for entry in typed:
                check(entry, shop, house.environment(PATH=path))


FOUR_WAYS_PAGE = Path(__file__).parents[1] / "docs/tutorial/one-tool-four-ways.md"
FOUR_WAYS = (
    ollama_calls(("lamp_switch", {"room": "attic"})),
    ollama_text("The light in the attic is on now."),
    ollama_calls(("lamp_switch", {"room": "hall"})),
    ollama_text("The light in the hall is on."),
)


@pytest.mark.timeout(240)
def test_the_tutorial_of_one_tool_in_four_ways_does_what_it_says(tmp_path: Path, home: Path) -> None:
    require_programs("espeak-ng", "sox")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "UV_CACHE_DIR": uv_cache_dir(),
    }
    steps = list(STEP.finditer(FOUR_WAYS_PAGE.read_text(encoding="utf-8")))
    assert [bool(step["file"]) for step in steps] == [False, True, False, False, True, False, False, False, False]
    with serving_aside(*FOUR_WAYS) as wire:
        for step in steps:
            if step["file"]:
                (tmp_path / step["file"]).write_text(step["text"], encoding="utf-8")
            for typed in typed_commands(step[0]):
                check(typed, tmp_path, {**environment, "OLLAMA_HOST": wire.url})
    told = [
        message["content"] for request in wire.requests for message in request["messages"] if message["role"] == "tool"
    ]
    assert told == ["The light in the attic is on.", "The light in the hall is on."]
    assert re.search(r"turn on the light", str(wire.requests[2]["messages"]))


RECORD = Path(__file__).parents[1] / "docs/how-to/record-and-replay.md"


def test_the_commands_of_the_page_about_recordings_do_what_it_says(tmp_path: Path, home: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(home)}
    for step in STEP.finditer(RECORD.read_text(encoding="utf-8")):
        if step["file"]:
            (work / step["file"]).write_text(step["text"], encoding="utf-8")
        for typed in typed_commands(step[0]):
            check(typed, work, environment)


SAVE = Path(__file__).parents[1] / "docs/how-to/save-a-program.md"


def test_the_saved_program_of_the_page_about_them_returns_what_it_says(tmp_path: Path, home: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(home)}
    written, called = list(STEP.finditer(SAVE.read_text(encoding="utf-8")))[:2]
    (saved := Path(written["file"].replace("~", str(home)))).parent.mkdir(parents=True)
    saved.write_text(written["text"], encoding="utf-8")
    saved.chmod(0o600)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("# TODO: one\nx = 1  # TODO: two\n", encoding="utf-8")
    for typed in typed_commands(called[0]):
        check(typed, tmp_path, environment)

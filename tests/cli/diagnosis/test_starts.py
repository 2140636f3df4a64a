"""onetool check and doctor start every pack and server, and say what did not start, why, and what to do."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cli.command import OneTool

BODY = 'def f() -> int:\n    """Return one."""\n    return 1\n'
NEEDY = '# /// script\n# requires-python = ">=3.12"\n# dependencies = ["no-such-package-of-ours"]\n# ///\n' + BODY


class Empty(BaseHTTPRequestHandler):
    """An index that has no package at all."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def empty_index(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Empty) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{server.server_port}/simple")
        yield
        server.shutdown()


def write_pack(directory: Path, name: str, text: str) -> Path:
    file = directory / "tools" / name / f"{name}_tools.py"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def configure(onetool: OneTool, **servers: Any) -> None:
    onetool.user.mkdir(exist_ok=True)
    (onetool.user / "onetool.yaml").write_text(json.dumps({"servers": servers}))


def starts(onetool: OneTool) -> tuple[int, dict[str, dict[str, Any]]]:
    ended = onetool("check", "--json")
    assert ended.err == ""
    return ended.code, {row["name"]: row for row in json.loads(ended.out)["starts"]}


def test_a_pack_whose_import_is_missing_fails_the_check_by_name_and_cause(onetool: OneTool) -> None:
    file = write_pack(onetool.user, "weather", "import requestz\n" + BODY)
    write_pack(onetool.user, "calm", BODY)
    code, found = starts(onetool)
    assert (code, found["calm"]["state"], found["weather"]["state"]) == (1, "started", "cannot start")
    assert found["weather"]["why"] == "ModuleNotFoundError: No module named 'requestz'"
    assert found["weather"]["advice"].endswith(f"then: onetool dev {file}")
    ended = onetool("check")
    error = (
        "error: pack weather cannot start: ModuleNotFoundError: No module named 'requestz' (name the missing package"
    )
    assert (ended.code, ended.out.startswith(error)) == (1, True)
    assert ended.out.endswith("not ok\n")


@pytest.mark.usefixtures("empty_index")
def test_a_dependency_that_does_not_exist_is_found_with_the_words_of_uv(onetool: OneTool) -> None:
    write_pack(onetool.user, "needy", NEEDY)
    ended = onetool("doctor", "--json")
    (problem,) = [row for row in json.loads(ended.out)["findings"] if row["state"] == "problem"]
    assert ended.code == 1
    assert problem["text"].startswith("needy does not load: 'uv lock' failed (exit code 1): Because no-such-package-of")
    assert "correct the dependencies" in problem["advice"]


def test_servers_are_started_or_it_is_said_why_not(onetool: OneTool) -> None:
    ends = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no licence')"]}
    off, here = {"command": "sh", "enabled": False}, {"command": "sh", "cwd": "${workspace}"}
    configure(onetool, ends=ends, off=off, here=here)
    code, found = starts(onetool)
    assert code == 1
    assert {name: found[name]["state"] for name in ("ends", "off", "here")} == {
        "ends": "cannot start", "off": "not started", "here": "not started"
    }  # fmt: skip
    assert found["ends"]["why"].endswith("Its last words: no licence")
    assert found["off"]["why"] == "it is disabled"
    assert "not trusted for this server: look at it, then run 'onetool trust'" in found["here"]["why"]


def test_what_was_not_started_on_purpose_is_no_failure(onetool: OneTool) -> None:
    configure(onetool, off={"command": "sh", "enabled": False})
    write_pack(onetool.project, "theirs", "raise SystemExit('it ran')\n" + BODY)
    ended = onetool("check")
    assert ended.code == 0
    assert "not started: server off: it is disabled\n" in ended.out
    assert (
        f"not started: project {onetool.project}: it is untrusted: none of its packs and servers is used\n" in ended.out
    )


def test_a_terminal_sees_what_is_being_started(onetool: OneTool) -> None:
    write_pack(onetool.user, "calm", BODY)
    ours, theirs = pty.openpty()
    command = [str(Path(sys.executable).with_name("onetool")), "check"]
    ended = subprocess.run(command, cwd=onetool.cwd, stderr=theirs, stdout=subprocess.PIPE, timeout=60, check=False)
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert ended.returncode == 0
    assert "starting pack calm ..." in shown
    assert "pack calm: started (" in shown

"""onetool doctor: what it finds of settings, starts, the ledger and plugins, and what it says to do."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cli.command import OneTool
from ot.cli.diagnosis import Finding, leftovers
from ot.cli.diagnosis.leftovers import Orphan, identify, orphans
from ot.cli.diagnosis.setup import ledger_findings
from ot.config.load import load_config
from ot.config.models import Config
from ot.config.paths import Paths
from ot.config.trust import Trust
from ot.output.file_blobs import FileBlobs
from ot.output.result_files import CONTENT, INDEX, META, file_name
from ot.output.result_store import ResultStore
from ot.processes.guarded_process import GuardedProcess
from ot.runtime.engines.forked.jail_command import jail_commands, trusted_command
from ot.server.declining_clients import DecliningClients

linux = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc elsewhere")
READS = "import sys; sys.stdout.write('.'); sys.stdout.flush(); sys.stdin.read()"


def examined(onetool: OneTool, *options: str) -> tuple[int, dict[str, Any]]:
    ended = onetool("doctor", "--json", *options)
    return ended.code, json.loads(ended.out)


def of(found: dict[str, Any], area: str, state: str) -> list[dict[str, Any]]:
    return [row for row in found["findings"] if (row["area"], row["state"]) == (area, state)]


def test_doctor_says_ok_when_nothing_is_wrong(onetool: OneTool) -> None:
    ended = onetool("doctor")
    assert (ended.code, ended.err) == (0, "")
    assert "a program runs" in ended.out
    assert ended.out.splitlines()[-1] == "all is well"


def test_a_client_that_declines_by_itself_is_named_with_its_version(onetool: OneTool) -> None:
    learned = DecliningClients(onetool.user)
    for client in ("vscode 1.99", "vscode 1.99", "cursor 2"):
        learned.note(client, declined=True)
    (row,) = of(examined(onetool)[1], "clients", "note")
    assert row["text"].startswith("vscode 1.99 declines questions by itself; they then wait for onetool answer")
    assert f"rm {learned.file}" in row["advice"]


def test_the_engine_and_each_of_its_layers_are_named(onetool: OneTool) -> None:
    code, found = examined(onetool)
    texts = [row["text"] for row in found["findings"] if row["area"] == "engine"]
    assert (code, found["ok"]) == (0, True)
    assert any(text.startswith("programs run in the ") for text in texts)
    assert any("layer seccomp: " in text or "exact engine is unavailable" in text for text in texts)


def test_the_portable_engine_is_no_fault_and_the_exact_one_is_looked_at_all_the_same(onetool: OneTool) -> None:
    _write(onetool.user / "onetool.yaml", "engines: {use: portable}\n")
    code, found = examined(onetool)
    texts = [row["text"] for row in found["findings"] if row["area"] == "engine"]
    assert code == 0
    assert texts[0] == "programs run in the portable engine (engines.use: portable)"
    assert any("layer seccomp: " in text or "exact engine is unavailable" in text for text in texts)


def test_a_file_of_secrets_that_others_can_read_is_made_private(onetool: OneTool) -> None:
    file = _write(onetool.user / "secrets.yaml", "TOKEN: abcdefgh\n")
    file.chmod(0o644)
    code, found = examined(onetool)
    assert (code, found["ok"]) == (1, False)
    (problem,) = of(found, "secrets", "problem")
    assert "mode 644" in problem["text"]
    assert problem["advice"] == f"chmod 600 {file}"
    assert file.stat().st_mode & 0o777 == 0o644
    code, found = examined(onetool, "--fix")
    assert (code, of(found, "secrets", "problem")[0]["fixed"]) == (0, f"{file} is private now")
    assert file.stat().st_mode & 0o777 == 0o600
    code, found = examined(onetool)
    assert code == 0, found


@linux
def test_a_process_that_is_being_ended_is_no_orphan(monkeypatch: pytest.MonkeyPatch) -> None:
    ending, staying = Orphan(10, "the guard", 1, "0"), Orphan(20, "the zygote", 1, "0")
    looks = iter([[ending, staying]])
    monkeypatch.setattr(leftovers, "orphans", lambda: next(looks, [staying]))
    monkeypatch.setattr(leftovers, "GRACE_SECONDS", 0.3)
    assert [finding.advice for finding in leftovers.orphan_findings()] == ["kill 20"]


def test_a_configuration_that_cannot_be_used_is_a_finding_and_the_rest_is_looked_at(onetool: OneTool) -> None:
    _write(onetool.user / "onetool.yaml", "limitz: {}\n")
    code, found = examined(onetool)
    assert code == 1
    (problem,) = of(found, "configuration", "problem")
    assert "limitz" in problem["text"]
    assert of(found, "system", "ok")


def test_a_pack_that_does_not_load_and_a_server_that_cannot_start_are_named(onetool: OneTool) -> None:
    _write(onetool.user / "tools" / "bad" / "bad_tools.py", "def broken(:\n")
    _write(onetool.user / "onetool.yaml", "servers: {gone: {command: no-such-program-here}}\n")
    code, found = examined(onetool)
    assert code == 1
    assert of(found, "packs", "problem")[0]["text"].startswith("bad does not load: ")
    assert "no-such-program-here" in of(found, "servers", "problem")[0]["text"]


def test_an_untrusted_project_is_a_note_that_says_what_to_do(onetool: OneTool) -> None:
    _write(onetool.project / "onetool.yaml", "version: 1\n")
    code, found = examined(onetool)
    (note,) = of(found, "trust", "note")
    assert (code, note["advice"]) == (0, "look at it, then run onetool trust")


def _stored(place: Path) -> list[Path]:
    """Return the files of a result that the store itself has written."""
    blobs = FileBlobs(place, ttl=0, max_total_bytes=1000)
    store = ResultStore(lambda _: blobs, ttl=0, max_total_bytes=1000, max_page_bytes=1000)
    handle = store.put(["text"], tool="t", owner="me").handle
    return [place / file_name(handle, suffix) for suffix in (META, INDEX, CONTENT)]


def test_old_copies_of_packs_half_written_files_and_old_results_are_removed(onetool: OneTool) -> None:
    old = [
        _write(onetool.user / "packs" / ("a" * 32) / "x_tools.py", "x = 1\n").parent,
        _write(onetool.user / ".trust.json.0123456789abcdef", "{}"),
        *_stored(onetool.user / "tmp"),
    ]
    kept = [
        _write(onetool.user / "packs" / ("b" * 32) / "x_tools.py", "x = 1\n").parent,
        _write(onetool.user / "tmp" / "notes.txt", "mine"),
        *_stored(onetool.user / "tmp"),
    ]
    long_ago = time.time() - 40 * 24 * 3600
    for path in [*old, old[0] / "x_tools.py", kept[1]]:
        os.utime(path, (long_ago, long_ago))
    code, found = examined(onetool)
    assert (code, len(of(found, "disk", "note"))) == (0, 3)
    assert all(path.exists() for path in old)
    examined(onetool, "--fix")
    assert [path.exists() for path in [*old, *kept]] == [False] * 5 + [True] * 5


@linux
def test_a_process_that_has_outlived_its_server_is_found_and_ended(onetool: OneTool) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with _zygote_of(gone.pid) as left, _zygote_of(os.getpid()) as alive:
        code, found = examined(onetool)
        told = [row["text"] for row in of(found, "processes", "problem")]
        assert code == 1
        assert f"the zygote {left.pid} has outlived its server {gone.pid}" in told
        assert not any(str(alive.pid) in text for text in told)
        _, found = examined(onetool, "--fix")
        assert f"the zygote {left.pid} was ended" in [row.get("fixed") for row in of(found, "processes", "problem")]
        assert left.wait(timeout=10) == -9
        assert alive.poll() is None


@linux
def test_the_processes_that_we_really_start_carry_the_mark() -> None:
    for command in (*jail_commands(3), trusted_command(3)):
        assert identify(list(command.argv)) == ("the zygote", os.getpid())


@linux
@pytest.mark.anyio
async def test_a_guard_whose_server_lives_is_no_orphan(tmp_path: Path) -> None:
    process = await GuardedProcess.start([sys.executable, "-c", READS], env={}, cwd=tmp_path, processes=8)
    try:
        assert await process.stdout.readexactly(1) == b"."
        assert ("the guard", os.getpid()) in map(identify, _commands_of_children(os.getpid()))
        assert not [orphan for orphan in orphans() if orphan.server == os.getpid()]
    finally:
        process.kill()
        await process.wait()


def _commands_of_children(pid: int) -> list[list[str]]:
    found: list[list[str]] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == pid:
                found.append((entry / "cmdline").read_text().split("\0")[:-1])
    return found


@contextmanager
def _zygote_of(server: int) -> Generator[subprocess.Popen[bytes]]:
    mark = f"from ot.runtime.engines.forked.jail.zygote import main; main(3) # of server {server}"
    argv = [sys.executable, "-c", READS, mark]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.read(1) == b"."  # it is that program by now, not its parent's copy
            yield process
        finally:
            process.kill()


def _write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    if file.name == "secrets.yaml":
        file.chmod(0o600)
    return file


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


@pytest.mark.parametrize(("durability", "survives"), [("process", "a crash or a kill"), ("power", "a loss of power")])
def test_the_file_of_one_user_and_what_it_survives(tmp_path: Path, durability: str, survives: str) -> None:
    paths = Paths(tmp_path, None, tmp_path / "user")
    config = Config.model_validate({"ledger": {"durability": durability}})
    (finding,) = ledger_findings(replace(load_config(paths, Trust(paths.global_dir)), config=config), paths)
    assert finding == Finding("ledger", "ok", f"{tmp_path}/user/ledger/ledger.db: entries survive {survives}")
    assert not (tmp_path / "user" / "ledger").exists()

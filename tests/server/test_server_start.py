"""How a server starts, and connections of clients to a shared one."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ot.errors import ConfigError
from ot.server.idle_garbage import THRESHOLDS
from proxied.desk import until
from server.shared_host import SECONDS, shared_host

pytestmark = pytest.mark.anyio

SERVE = """
import atexit, gc, importlib.metadata, json, sys, time
for name in ("beartype", "griffe", "jsonschema", "key_value", "keyring", "opentelemetry.sdk", "typer"):
    sys.modules[name] = None  # so that to import one fails
sys.argv[1:] = ["serve"]
entry_points, groups = importlib.metadata.entry_points, []
importlib.metadata.entry_points = lambda **of: groups.append(of.get("group")) or entry_points(**of)
full, within_replies = [], 0

def note_full(phase, of):
    global within_replies
    idle_garbage = sys.modules.get("ot.server.idle_garbage")
    if of["generation"] < 2 or not idle_garbage:
        return
    if phase == "stop":
        full[-1].append(time.monotonic())
        return
    full.append([time.monotonic()])
    within_replies += idle_garbage.IdleGarbage.is_anybody_waiting()

gc.callbacks.append(note_full)

def models(kind):
    return {kind}.union(*map(models, type.__subclasses__(kind)))

def report():
    from pydantic import BaseModel
    library = ("mcp_types", "mcp", "fastmcp")
    of_library = [kind for kind in models(BaseModel) if kind.__module__.partition(".")[0] in library]
    sys.stderr.write(json.dumps({
        "collects": gc.isenabled(),
        "thresholds": gc.get_threshold(),
        "full": full,
        "within_replies": within_replies,
        "stays": gc.get_freeze_count(),
        "models": len(of_library),
        "built": sum(kind.__pydantic_complete__ for kind in of_library),
        "later": BaseModel.model_config.get("defer_build", False),
        "plugins": "pydantic" in groups,
    }))

atexit.register(report)
from ot.entry import main
main()
"""
RUNS, WARM = 10_000, 500
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def test_a_run_builds_few_models_and_imports_are_not_scanned_for_garbage(
    tmp_path: Path,
) -> None:
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "run", "arguments": {"command": "6*7"}}},
    ]
    with subprocess.Popen(
        [sys.executable, "-c", SERVE], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        assert server.stdin and server.stdout and server.stderr
        server.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
        server.stdin.flush()
        answers = {
            answer["id"]: answer["result"] for answer in (json.loads(server.stdout.readline()) for _ in range(3))
        }
        server.stdin.close()
        told = server.stderr.read()
    assert answers[3]["content"][0]["text"] == "42"
    seen = json.loads(told.splitlines()[-1])
    assert seen["collects"]
    assert seen["thresholds"] == [*THRESHOLDS]
    assert seen["stays"] > 100_000
    assert seen["models"] > 5 * seen["built"] > 0
    assert not seen["later"]  # only of the protocol's library
    assert not seen["plugins"]


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.skipif(sys.platform != "linux", reason="reads the server's memory from /proc")
@pytest.mark.parametrize("pauses", [False, True])
def test_in_ten_thousand_runs_no_reply_waits_for_all_garbage_and_memory_does_not_grow(
    tmp_path: Path, *, pauses: bool
) -> None:
    replies: list[tuple[float, float]] = []
    told = tmp_path / "stderr"
    with told.open("w") as stderr, subprocess.Popen(
        [sys.executable, "-c", SERVE], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=stderr, text=True,
    ) as server:  # fmt: skip
        assert server.stdin and server.stdout
        requests, answers = server.stdin, server.stdout

        def ask(id: int, method: str, params: dict[str, Any]) -> None:
            sent = time.monotonic()
            requests.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n")
            requests.flush()
            assert json.loads(answers.readline())["id"] == id
            replies.append((sent, time.monotonic()))

        def resident_bytes() -> int:
            return int(Path(f"/proc/{server.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        ask(0, "initialize", INITIALIZE)
        requests.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n")
        memory: list[int] = []
        for number in range(1, WARM + RUNS + 1):
            ask(number, "tools/call", {"name": "run", "arguments": {"command": f"{number} + 1"}})
            if number == WARM or number % (RUNS // 10) == 0:
                memory.append(resident_bytes())
            if pauses and number % 50 == 0:
                time.sleep(0.2)  # a client thinks between its programs
        requests.close()
    seen = json.loads(told.read_text().splitlines()[-1])
    assert seen["full"]
    assert seen["within_replies"] == 0
    usual = statistics.median(got - sent for sent, got in replies)
    assert statistics.median(ended - began for began, ended in seen["full"]) < 2 * usual
    assert max(memory) < 1.05 * memory[0]


async def test_a_client_is_served_where_it_works_and_two_do_not_mix(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        for where in ("one", "other"):
            (tmp_path / where).mkdir()
            (tmp_path / where / "note.txt").write_text(f"note of {where}", encoding="utf-8")
        talks = [await shared.client(where) for where in ("one", "other")]
        read = await asyncio.gather(*(talk.run("file.read(path='note.txt')") for talk in talks))
        assert ["note of one" in read[0], "note of other" in read[1]] == [True, True]
        assert ["note of other" in read[0], "note of one" in read[1]] == [False, False]


async def test_a_connection_tells_where_its_client_works_its_name_and_its_open_runs(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        talk = await shared.connect()
        assert "" == talk.connection.state()["client"]
        await talk.initialize()
        await talk.run("1 + 1")
        found = talk.connection.state()
        assert {"cwd": str(tmp_path / "one"), "client": "talk", "runs": 0} == {
            name: found[name] for name in ("cwd", "client", "runs")
        }
        assert 0 < found["since"]


async def test_who_hangs_up_is_let_go_and_the_others_are_served_on(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        gone, stays = await shared.client(), await shared.client()
        await gone.aclose()
        assert "2" == await stays.run("1 + 1")


async def test_a_client_that_is_killed_with_replies_unread_is_let_go(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        killed, stays = await shared.client(), await shared.client()
        killed.hold_reading()
        for _ in range(20):
            killed.start_run("'x' * 40_000")
        await until(lambda: killed.connection.state()["runs"] > 0)
        await until(lambda: killed.connection.state()["runs"] == 0)
        killed.writer.transport.abort()
        await asyncio.wait_for(asyncio.shield(killed.serving), SECONDS)
        assert "2" == await stays.run("1 + 1")


async def test_a_run_ends_with_its_client(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        talk = await shared.client()
        talk.start_run("import time\nwhile True: time.sleep(0.01)")
        await until(lambda: talk.connection.state()["runs"] == 1)
        await talk.aclose()
        assert 0 == talk.connection.state()["runs"]


async def test_what_is_asked_while_a_connection_drains_is_refused_and_what_is_open_is_answered(tmp_path: Path) -> None:
    async with shared_host(tmp_path, {"limits": {"drain_seconds": SECONDS}}) as shared:
        talk = await shared.client()
        gate = tmp_path / "one" / "gate"
        program = "import time\nwhile not file.list(): time.sleep(0.01)\n'done'"
        running = talk.start_run(program)
        await until(lambda: talk.connection.state()["runs"] == 1)
        async with asyncio.timeout(SECONDS):
            draining = asyncio.ensure_future(talk.connection.drain())
            await asyncio.sleep(0)
            assert "ServerEnding" in await talk.run("1 + 1")
            assert not draining.done()
            gate.touch()
            assert "done" in str(await running)
            await draining
        talk.connection.end()
        await asyncio.wait_for(asyncio.shield(talk.serving), SECONDS)


@pytest.mark.parametrize("arguments", [["--http", "8000"], ["--packs"], ["--unknown"]])
async def test_a_command_line_that_is_not_for_a_shared_server_is_refused(tmp_path: Path, arguments: list[str]) -> None:
    async with shared_host(tmp_path) as shared:
        with pytest.raises(ConfigError, match="onetool serve"):
            await shared.connect(arguments=arguments)


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "SSL_CERT_FILE"])
async def test_a_client_behind_another_proxy_or_with_other_certificates_is_refused(tmp_path: Path, name: str) -> None:
    async with shared_host(tmp_path) as shared:
        with pytest.raises(ConfigError, match=f"another value of {name}"):
            await shared.connect(environ={name: "/elsewhere"})


async def test_a_question_that_is_no_longer_asked_is_taken_back_under_its_own_id(tmp_path: Path) -> None:
    async with shared_host(tmp_path, {"policy": {"ask": ["file.write"]}}) as shared:
        talk = await shared.client(elicitation={})
        talk.start_run("file.write(path='f', content='c')")
        question = await talk.question()
        talk.send({"method": "notifications/cancelled", "params": {"requestId": talk.last_id}})
        taken_back = {"requestId": question["id"]}.items()
        await until(lambda: any(taken_back <= told["params"].items() for told in talk.notifications))


async def test_packs_of_the_command_line_are_offered_tool_by_tool(tmp_path: Path) -> None:
    async with shared_host(tmp_path) as shared:
        talk = await shared.connect(arguments=["--shared", "--packs=file"])
        await talk.initialize()
        names = {tool["name"] for tool in (await talk.result("tools/list"))["tools"]}
        assert {"run", "file_read"} <= names

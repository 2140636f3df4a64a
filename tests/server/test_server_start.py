"""What a server of one client does at its start, and what it leaves out."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ot.server.idle_garbage import THRESHOLDS

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


def test_a_run_needs_few_models_and_no_store_of_sessions_and_imports_are_not_looked_through_for_garbage(
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

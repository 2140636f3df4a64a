"""Processes that are no workers at all, where a worker should be."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from ot.errors import OneToolError, ToolUnavailable
from ot.workers import worker
from pace import PATIENCE, within
from processes.process_marks import children_of, zombies_of
from workers.corpus_faults import Fault, fault
from workers.door import Door, extension, open_files, source_of
from workers.process_watch import assert_gone, below_this

pytestmark = pytest.mark.anyio

OTHER_PROTOCOL = """
import json, sys, time
init = json.loads(sys.stdin.readline())
print(json.dumps({"jsonrpc": "2.0", "id": init["id"], "result": {"protocol": 99, "pid": 1, "tools": []}}), flush=True)
time.sleep(60)
"""
SILENT = "import sys, time; sys.stdin.readline(); time.sleep(60)"
FUZZER = '''
"""Answers as a worker does, and sends flipped, cut and random lines between the answers."""
import json, os, random, sys, threading

chance = random.Random(SEED)
writing = threading.Lock()


def send(line):
    with writing:
        os.write(1, line + b"\\n")


def junk(message):
    line = bytearray(json.dumps(message).encode())
    kind = chance.randrange(8)
    if kind == 0:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(200))).replace(b"\\n", b"")
    if kind == 1:
        line[chance.randrange(len(line))] ^= 1 << chance.randrange(7)
        return bytes(line).replace(b"\\n", b"")
    if kind == 2:
        return bytes(line[: chance.randrange(len(line))])
    values = [None, 0, "x", [], {}, {"value": 1}, -1, True, "warn", 1e300]
    methods = ["log", "print", "progress", "call_tool", "ask_model", "cancel", "init", "", None, 5, []]
    found = {"jsonrpc": "2.0", "id": chance.choice([message["id"] + "0", *values]), "method": chance.choice(methods)}
    names = ("id", "level", "message", "text", "done", "tool", "arguments", "schema", "call")
    params = {key: chance.choice(values) for key in names}
    found["params"] = chance.choice([params, *values])
    if kind < 5:
        found["params"] = params | {"id": message["id"], "call": message["id"]}
    if kind == 5:
        del found["method"]
        found[chance.choice(["result", "error"])] = chance.choice(values)
    return json.dumps(found).encode()


for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "init":
        send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"protocol": 1, "tools": []}}).encode())
    elif message.get("method") == "call":
        for _ in range(chance.randrange(6)):
            send(junk(message))
        value = {"value": message["params"]["arguments"]["nonce"]}
        send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": value}).encode())
        for _ in range(chance.randrange(3)):
            send(junk(message))
'''


def stranger(monkeypatch: pytest.MonkeyPatch, directory: Path, source: str) -> None:
    """Let *source* be executed where the worker's own program would be."""
    file = directory / "stranger.py"
    file.write_text(source, encoding="utf-8")
    monkeypatch.setattr(worker, "BOOTSTRAP", file)


@fault("W46")
async def test_a_worker_of_another_protocol_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    stranger(monkeypatch, tmp_path, OTHER_PROTOCOL)
    door = Door(tmp_path / "state")
    before = below_this()
    try:
        with anyio.fail_after(PATIENCE), pytest.raises(ToolUnavailable, match="speaks protocol 99"):
            await door("calm.echo", nonce="x")
        await door.pool._settle()
        assert_gone(below_this() - before)
    finally:
        await door.aclose()


@fault("W47")
async def test_a_worker_that_says_nothing_is_ended_at_the_deadline_of_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    stranger(monkeypatch, tmp_path, SILENT)
    door = Door(tmp_path / "state", start_seconds=0.5)
    before = below_this()
    try:
        with within(0.5 + 1), pytest.raises(ToolUnavailable, match=r"did not start within 0\.5 s"):
            await door("calm.echo", nonce="x")
        await door.pool._settle()
        assert_gone(below_this() - before)
    finally:
        await door.aclose()


@fault("W14")
async def test_an_import_that_hangs_is_ended_with_all_it_started(tmp_path: Path, fault: Fault) -> None:
    source = "import subprocess, time\nsubprocess.Popen(['sleep', '300'], start_new_session=True)\ntime.sleep(3600)\n"
    packs = [extension("hanging", source + "def f(): ...\n"), extension("calm", source_of("calm"))]
    door = Door(tmp_path, packs, start_seconds=1.0)
    door.specs["calm"] = replace(door.specs["calm"], start_seconds=PATIENCE)
    try:
        assert "x" == await door("calm.echo", nonce="x")
        before = below_this()
        call = asyncio.create_task(door("hanging.f"))
        assert "meanwhile" == await door("calm.echo", nonce="meanwhile")
        with pytest.raises(ToolUnavailable, match=r"'hanging'.*did not start within 1 s"):
            await call
        await door.pool._settle()
        assert_gone(below_this() - before)
    finally:
        await door.aclose()


async def fuzz(directory: Path, monkeypatch: pytest.MonkeyPatch, seed: int, wanted: int) -> None:
    """Call a fuzzing worker until it has answered *wanted* calls, each with its own value."""
    stranger(monkeypatch, directory, FUZZER.replace("SEED", str(seed)))
    door = Door(directory / "state")
    answered, children_before = 0, children_of(os.getpid())

    async def caller(name: int) -> None:
        nonlocal answered
        number = 0
        while answered < wanted:
            number += 1
            # A flipped bit may make a reply to this very call: then it fails, but it has no other call's value.
            try:
                value = await door("calm.echo", nonce=f"{name}-{number}")
            except OneToolError:
                continue
            assert f"{name}-{number}" == value or value in (1, None), value
            answered += value == f"{name}-{number}"

    try:
        await door("calm.echo", nonce="first")
        files = open_files()
        await asyncio.gather(*(caller(name) for name in range(8)))
        assert files >= open_files() - 2
        assert {*zombies_of(os.getpid())} <= {*children_before}
    finally:
        await door.aclose()


@fault("W48", repetitions=1)
async def test_a_worker_that_sends_anything_but_messages_confuses_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    await fuzz(tmp_path, monkeypatch, 48, 3000)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(20))
async def test_a_worker_that_sends_anything_but_messages_confuses_none_of_fifty_thousand_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    await fuzz(tmp_path, monkeypatch, seed, 50_000)

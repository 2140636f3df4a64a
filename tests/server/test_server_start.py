"""What a server of one client does at its start, and what it leaves out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SERVE = """
import atexit, gc, sys
sys.modules["beartype"] = sys.modules["key_value"] = None  # so that to import one fails
sys.argv[1:] = ["serve"]
atexit.register(lambda: sys.stderr.write(f"collects: {gc.isenabled()}, objects that stay: {gc.get_freeze_count()}"))
from ot.entry import main
main()
"""
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def test_a_run_needs_no_store_of_sessions_and_what_was_imported_is_not_looked_through_for_garbage(
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
    collects, staying = told.splitlines()[-1].removeprefix("collects: ").split(", objects that stay: ")
    assert collects == "True"
    assert int(staying) > 100_000

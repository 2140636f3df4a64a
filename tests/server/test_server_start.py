"""What a server of one client does at its start, and what it leaves out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SERVE = """
import atexit, gc, importlib.metadata, json, sys
for name in ("beartype", "griffe", "jsonschema", "key_value", "keyring", "opentelemetry.sdk", "typer"):
    sys.modules[name] = None  # so that to import one fails
sys.argv[1:] = ["serve"]
entry_points, groups = importlib.metadata.entry_points, []
importlib.metadata.entry_points = lambda **of: groups.append(of.get("group")) or entry_points(**of)

def models(kind):
    return {kind}.union(*map(models, type.__subclasses__(kind)))

def report():
    from pydantic import BaseModel
    library = ("mcp_types", "mcp", "fastmcp")
    of_library = [kind for kind in models(BaseModel) if kind.__module__.partition(".")[0] in library]
    sys.stderr.write(json.dumps({
        "collects": gc.isenabled(),
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
    assert seen["stays"] > 100_000
    assert seen["models"] > 5 * seen["built"] > 0
    assert not seen["later"]  # only of the protocol's library
    assert not seen["plugins"]

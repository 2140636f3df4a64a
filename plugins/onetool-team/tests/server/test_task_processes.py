"""MCP tasks of real server processes: over stdio and HTTP, over lost connections and killed servers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastmcp.client.transports import StreamableHttpTransport
from mcp_types import HEADER_MISMATCH

from docs_blocks import DOCS, blocks_of
from faults.watched import Place
from faults.wire_eras import MODERN
from http_server import START, HttpServer, reply_of
from mcp_wire import WireReply, WireServer
from pace import PATIENCE, patiently
from server.task_talk import EXTENSION, WISH, task_client, text_of

CONFIG = "engines: {use: portable}\nlogs: {level: WARNING}\npolicy: {read_only: [gate.wait]}\n"
GATE = '''
import time
from pathlib import Path


def wait(path: str) -> str:
    """Wait until there is a file."""
    Path(path + ".came").touch()
    while not Path(path).exists():
        time.sleep(0.02)
    return "went through"


def write(path: str) -> str:
    """Write a file."""
    Path(path).touch()
    return "written"
'''
DECLARED = {"io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}}}
META: Mapping[str, Any] = {**MODERN, **DECLARED}


def add_gate(place: Place) -> Place:
    """Add the pack ``gate``, which runs in a worker."""
    pack = place.home / ".onetool" / "tools" / "gate"
    pack.mkdir(parents=True)
    (pack / "gate_tools.py").write_text(GATE)
    return place


def started(place: Place) -> WireServer:
    """Return a server in *place*, spoken to byte by byte."""
    command = (sys.executable, "-c", START, "serve")
    return WireServer.start(command, cwd=place.cwd, env=place.environment(), handshake=False)


def begun(wire: WireServer, command: str) -> str:
    """Return the id of the task that a call became."""
    params = {"name": "run", "arguments": {"command": command}, "_meta": {**META, **WISH}}
    reply = wire.request("tools/call", params)
    assert reply.result["resultType"] == "task", reply.message
    assert reply.result["status"] == "working"
    assert "content" not in reply.result
    return reply.result["taskId"]


def asked(wire: WireServer, method: str, id: str) -> WireReply:
    """Return the answer to a request about a task."""
    return wire.request(method, {"taskId": id, "_meta": META})


def wait_for(path: Path) -> None:
    """Return once there is a file."""
    assert any(path.exists() for _ in patiently()), f"{path.name} never came"


def test_a_task_over_stdio_is_found_stopped_after_its_server_was_killed(tmp_path: Path) -> None:
    place = add_gate(Place.make(tmp_path, CONFIG))
    written, gate = place.cwd / "written", place.cwd / "gate"
    with started(place) as wire:
        id = begun(wire, f"gate.write(path='{written}')\ngate.wait(path='{gate}')\ngate.write(path='{gate}2')")
        wait_for(Path(f"{gate}.came"))
        assert asked(wire, "tasks/get", id).result["status"] == "working"
        assert wire.stdout_junk == []
        wire.kill()
    with started(place) as wire:
        task = asked(wire, "tasks/get", id).result
        assert task["status"] == "completed"
        assert task["result"]["isError"] is True
        assert task["result"]["_meta"]["onetool"]["state"] == "stopped"
        told = text_of(task["result"])
        assert "the server that carried it out has ended" in told
        assert "done: gate.write, line 1" in told
        assert "not started: gate.write, line 3" in told
        assert asked(wire, "tasks/get", id).result == task
    assert not Path(f"{gate}2").exists()


def check_page(wire: WireServer) -> None:
    """Check that the request of docs/reference/mcp-tasks.md has the answer that the page says."""
    blocks = [block.text for block in blocks_of(DOCS / "reference/mcp-tasks.md") if block.language == "json"]
    request, answer = map(json.loads, blocks)
    result = wire.request(request["method"], request["params"]).result
    times = {"taskId", "createdAt", "lastUpdatedAt"}
    assert result.keys() - {"_meta"} == answer["result"].keys()
    assert {name: result[name] for name in answer["result"].keys() - times} == {
        name: value for name, value in answer["result"].items() if name not in times
    }


def test_the_extension_is_offered_to_the_modern_era_alone(tmp_path: Path) -> None:
    place = Place.make(tmp_path, CONFIG)
    with started(place) as wire:
        offered = wire.request("server/discover", {"_meta": META}).result["capabilities"]["extensions"]
        assert offered[EXTENSION] == {}
        check_page(wire)
    with started(place) as wire:
        assert EXTENSION.encode() not in wire.initialize().raw_line
        assert EXTENSION.encode() not in wire.request("tools/list").raw_line
        assert wire.request("tasks/get", {"taskId": "x"}).error["code"] == -32601


# ---------------------------------------------------------------- over HTTP, for one user


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server over HTTP with the pack ``gate``."""
    root = tmp_path_factory.mktemp("http")
    add_gate(Place.make(root, CONFIG))
    with HttpServer.start(root, CONFIG) as server:
        yield server


def transport(server: HttpServer) -> StreamableHttpTransport:
    return StreamableHttpTransport(server.url, headers={"Authorization": f"Bearer {server.token}"})


@pytest.mark.anyio
async def test_a_task_over_http_outlives_the_connection_that_made_it(http: HttpServer) -> None:
    gate = http.place.cwd / "gate"
    async with task_client(transport(http)) as first:
        id = await first.begin(f"gate.wait(path='{gate}')")
    async with task_client(transport(http)) as second:
        assert (await second.get(id))["status"] == "working"
        gate.touch()
        task = await second.until(id, "completed")
    assert text_of(task["result"]) == "went through"


def test_a_request_that_was_routed_for_another_task_is_refused(http: HttpServer) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": "one", "_meta": META}}
    headers = http.headers() | {"mcp-method": "tasks/get", "mcp-name": "another"}
    response = httpx2.post(http.url, json=body, headers=headers, timeout=PATIENCE, verify=False)
    assert response.status_code == 400
    assert reply_of(response)["error"]["code"] == HEADER_MISMATCH

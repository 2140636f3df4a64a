"""``onetool serve --http``: real clients of both eras, and how it starts."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from cli.command import OneTool
from docs_blocks import DOCS, blocks_of
from http_server import ACCEPT, CLASSIC, CONFIG, ERAS, MODERN, START, HttpServer, call, reply_of, text_of
from pace import PATIENCE, wait_while

pytestmark = pytest.mark.anyio


PACK = '''"""A gate that never opens."""

import time
from pathlib import Path

import ot_sdk


def wait(*, entered: str) -> None:
    """Say that it has begun, and wait."""
    Path(entered).touch()
    time.sleep(1000)


def count() -> str:
    """Tell of each step."""
    for step in range(3):
        ot_sdk.progress(step, 3, f"step {step}")
        time.sleep(0.15)
    return "counted"
'''
NO_EXACT = """
from ot.runtime.engines.forked.exact import ExactEngine
from ot.errors import EngineCrashed
async def fails(self): raise EngineCrashed("this kernel has no filter of system calls")
ExactEngine.open = fails
"""


def write_pack(root: Path) -> None:
    pack = root / "home" / ".onetool" / "tools" / "gate" / "gate_tools.py"
    pack.parent.mkdir(parents=True)
    pack.write_text(PACK)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[HttpServer]:
    root = tmp_path_factory.mktemp("http")
    write_pack(root)
    with HttpServer.start(root, CONFIG + "limits: {run_seconds: 600, call_seconds: 600}\n") as started:
        yield started


def client_of(server: HttpServer, era: str) -> Client[StreamableHttpTransport]:
    headers = {"Authorization": f"Bearer {server.token}"}
    return Client(StreamableHttpTransport(server.url, headers=headers), mode=ERAS[era])  # pyright: ignore[reportArgumentType] - the mode is a literal


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_of_either_era_lists_the_one_tool_and_runs_programs(server: HttpServer, era: str) -> None:
    async with client_of(server, era) as client:
        assert ["run"] == [tool.name for tool in await client.list_tools()]
        result = await client.call_tool("run", {"command": "[n * n for n in range(4)]"})
        assert "[0,1,4,9]" == result.content[0].text  # pyright: ignore[reportAttributeAccessIssue]
        failed = await client.call_tool("run", {"command": "1 / 0"}, raise_on_error=False)
        assert failed.is_error


@pytest.mark.parametrize("era", [MODERN, CLASSIC])
async def test_a_plain_http_client_runs_programs_without_a_handshake(server: HttpServer, era: str) -> None:
    answered = server.run("6 * 7", era)
    assert (200, "42") == (answered.status_code, text_of(answered))


@pytest.mark.parametrize("era", ERAS)
async def test_progress_reaches_a_client_that_asks_for_it(server: HttpServer, era: str) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async with client_of(server, era) as client:
        result = await client.call_tool("run", {"command": "gate.count()"}, progress_handler=hear)
    assert "counted" == result.content[0].text  # pyright: ignore[reportAttributeAccessIssue]
    assert "0/3 step 0" in heard and len(heard) >= 2


@pytest.mark.parametrize("era", [MODERN, CLASSIC])
async def test_a_quick_answer_is_plain_json_without_a_stream(server: HttpServer, era: str) -> None:
    assert "application/json" == server.run("1", era).headers["content-type"]


@pytest.mark.parametrize("era", [MODERN, CLASSIC])
def test_a_run_ends_when_its_client_goes_away(tmp_path: Path, era: str) -> None:
    write_pack(tmp_path)
    limits = "limits: {run_seconds: 600, call_seconds: 600, drain_seconds: 600}\n"
    with HttpServer.start(tmp_path, CONFIG + limits) as server:
        entered = tmp_path / "entered"
        body = json.dumps(call(f"gate.wait(entered={str(entered)!r})", era)).encode()
        headers = {**server.headers(era), "host": "localhost", "content-length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
            wait_while(lambda: None if entered.exists() else "the call has not begun")
        server.signal()
        assert 0 == server.wait(), "it waits for a run that nobody wants"


@pytest.mark.parametrize("era", [MODERN, CLASSIC])
def test_the_first_request_pays_for_no_imports(tmp_path: Path, era: str) -> None:
    with HttpServer.start(tmp_path) as server, httpx2.Client(headers=server.headers(era), timeout=PATIENCE) as client:
        taken = [_processor_ticks(server)]
        for count in (1, 40):
            for _ in range(count):
                assert 200 == client.post(server.url, json=call("1", era)).status_code
            taken.append(_processor_ticks(server))
        assert taken[1] - taken[0] <= taken[2] - taken[1], "the first request takes longer than the next forty"


def _processor_ticks(server: HttpServer) -> int:
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(") ")[2].split()
    return int(fields[11]) + int(fields[12])


async def test_health_is_told_to_everyone_and_under_any_name(server: HttpServer) -> None:
    for path, said in (("/healthz", {"status": "alive"}), ("/readyz", {"status": "ready", "engine": "portable"})):
        answered = server.get(path, host="10.0.0.7:8000")
        assert (200, said) == (answered.status_code, answered.json())


async def test_every_refusal_says_what_is_wrong_in_the_form_that_clients_show(server: HttpServer) -> None:
    refused = httpx2.post(server.url, json=call("1"), headers={"accept": ACCEPT}, timeout=PATIENCE)
    assert (401, "Bearer") == (refused.status_code, refused.headers["www-authenticate"].split()[0])
    assert "Authorization: Bearer" in reply_of(refused)["error"]["message"]
    assert refused.headers["x-request-id"] == reply_of(refused)["error"]["data"]["request_id"]


def test_the_token_is_the_users_alone_and_survives_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "home" / ".onetool" / "http-token"
    with HttpServer.start(tmp_path) as server:
        first = server.token
        assert 0o600 == stat.S_IMODE(file.stat().st_mode)
        assert first not in server.stderr_text()
    with HttpServer.start(tmp_path) as server:
        assert first == server.token


def test_the_request_on_the_page_is_answered(server: HttpServer) -> None:
    page = DOCS / "how-to" / "serve-over-http.md"
    [curl] = [block.text for block in blocks_of(page) if block.text.startswith("curl")]
    done = subprocess.run(
        ["bash", "-c", curl.replace("http://127.0.0.1:8000", server.origin).replace("curl", "curl -sS")],
        env={**os.environ, "HOME": str(server.place.home)},
        capture_output=True,
        text=True,
    )
    assert '"text":"2"' in done.stdout, done.stderr


def told(onetool: OneTool, *arguments: str) -> tuple[int, str]:
    ended = onetool("serve", "--http", *arguments)
    return ended.code, ended.err


def test_a_token_that_others_can_read_is_not_used(onetool: OneTool) -> None:
    onetool.user.mkdir()
    (onetool.user / "http-token").write_text("x" * 40)
    (onetool.user / "http-token").chmod(0o644)
    code, err = told(onetool, "0")
    assert code and "others may read" in err and "rm " in err


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
def test_an_address_that_others_reach_is_refused_without_authentication(onetool: OneTool, address: str) -> None:
    code, err = told(onetool, address)
    assert code and "no one would have to say who they are" in err and "http.tokens" in err


@pytest.mark.parametrize("address", ["x", "", ":80", "99999", "localhost:", "::1:80", "-1", "localhost:eighty"])
def test_what_is_no_address_is_refused_with_the_form_of_one(onetool: OneTool, address: str) -> None:
    code, err = told(onetool, f"--http={address}") if not address else told(onetool, address)
    assert code and ("HOST:PORT" in err or "requires an argument" in err)


def test_an_address_in_use_is_named(onetool: OneTool) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, err = told(onetool, port)
    assert code and f"127.0.0.1:{port}" in err and "choose another port" in err


def test_without_the_extra_the_error_says_how_to_install_it(tmp_path: Path) -> None:
    code = f"import sys; sys.modules['httptools'] = None\n{START}"
    done = subprocess.run(
        [sys.executable, "-c", code, "serve", "--http", "0"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode and "[team]" in done.stderr and "Traceback" not in done.stderr


def test_a_replica_without_the_engine_that_it_was_told_is_not_ready(tmp_path: Path) -> None:
    with HttpServer.start(tmp_path, "engines: {use: exact}\n", before=NO_EXACT, ready=False) as server:
        wait_while(lambda: None if _readiness(server)["status"] == "failed" else "it does not fail")
        assert "no filter of system calls" in _readiness(server)["why"]
        refused = server.run("1")
        assert 503 == refused.status_code and "no filter" in reply_of(refused)["error"]["message"]
        assert 200 == server.get("/healthz").status_code


def test_a_replica_that_fell_back_is_ready_and_says_so(tmp_path: Path) -> None:
    with HttpServer.start(tmp_path, "engines: {use: auto}\n", before=NO_EXACT) as server:
        found = _readiness(server)
        assert ("ready", "portable") == (found["status"], found["engine"])
        assert "no filter of system calls" in found["degraded"]


def _readiness(server: HttpServer) -> dict[str, Any]:
    return server.get("/readyz").json()


@pytest.mark.parametrize("command", ["1 + 1", "1 / 0", "'é' * 3", "print('said')\n{'a': [1, None]}"])
def test_a_call_that_wants_progress_and_one_that_does_not_get_the_same_answer(server: HttpServer, command: str) -> None:
    plain, streamed = server.run(command, CLASSIC), server.run(command, CLASSIC, progressToken=7)
    assert ["application/json", "text/event-stream"] == [
        answer.headers["content-type"].partition(";")[0] for answer in (plain, streamed)
    ]
    for answer in (first := reply_of(plain), second := reply_of(streamed)):
        answer["result"].pop("_meta")
    assert first == second


@pytest.mark.parametrize("params", [{"name": "burn"}, {"name": 7}, {"name": "run", "arguments": {}}, {}])
def test_a_call_that_fails_gets_the_same_error_either_way(server: HttpServer, params: dict[str, Any]) -> None:
    answers: list[dict[str, Any]] = []
    for meta in ({}, {"_meta": {"progressToken": 7}}):
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**params, **meta}}
        sent = httpx2.post(server.url, json=message, headers=server.headers(CLASSIC), timeout=PATIENCE)
        answers.append(reply_of(sent))
        answers[-1].get("result", {}).pop("_meta", None)
    assert answers[0] == answers[1]

"""A server over HTTP that is asked to end: no run is lost, none begins, and nobody gets a bare 500."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio.to_thread
import httpx2
import pytest

from http_server import CLASSIC, META, MODERN, HttpServer, call
from pace import PATIENCE, patiently
from team.gate import begun, told, write_gate

pytestmark = pytest.mark.anyio

ERAS = (MODERN, CLASSIC)
CONFIG = "engines: {use: portable}\nlogs: {level: INFO}\nlimits: {drain_seconds: %s}\n%s"
USERS, ANSWERS = 8, 60
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}


@contextmanager
def serving(root: Path, drain_seconds: float, more: str = "") -> Generator[HttpServer]:
    write_gate(root)
    with HttpServer.start(root, CONFIG % (drain_seconds, more)) as server:
        yield server


def is_unbegun(response: httpx2.Response) -> bool:
    """Return whether the answer is one that balancers may send to another replica."""
    said = response.json()["error"]["data"] if response.status_code == 503 else {}
    return said.get("begun") is False and response.headers["retry-after"] == "1"


@pytest.mark.parametrize("era", ERAS)
async def test_an_open_run_finishes_a_new_one_is_told_and_readiness_goes_first(tmp_path: Path, era: str) -> None:
    with serving(tmp_path, PATIENCE) as server:
        async with server.client(era) as client:
            run, opened = await begun(server, client, era)
            server.signal()
            server.wait_for_stderr("asked to end")
            ready = await client.get(f"{server.origin}/readyz")
            assert (503, "draining") == (ready.status_code, ready.json()["status"])
            late = await client.post(server.url, json=call("1 + 1", era))
            assert is_unbegun(late) and "nothing has run" in late.json()["error"]["message"]
            assert "close" == late.headers["connection"]
            assert 200 == (await client.post(server.url, json=LIST, headers={"mcp-method": "tools/list"})).status_code
            opened.touch()
            assert (200, "through", None) == told(await run)
        assert 0 == server.wait()
        assert "Traceback" not in server.stderr_text()


@pytest.mark.parametrize("era", ERAS)
async def test_a_run_that_takes_too_long_is_told_so_in_a_tool_error(tmp_path: Path, era: str) -> None:
    with serving(tmp_path, 0.2) as server:
        async with server.client(era) as client:
            run, _ = await begun(server, client, era)
            server.signal()
            status, text, error = told(await run)
            assert (200, "ServerEnding") == (status, error)
            assert "calls of tools that had returned by then have taken effect" in text
        assert 0 == server.wait()
        assert "Traceback" not in server.stderr_text()


async def test_an_interrupt_does_not_wait_and_still_answers(tmp_path: Path) -> None:
    with serving(tmp_path, PATIENCE) as server:
        async with server.client() as client:
            run, _ = await begun(server, client, MODERN)
            server.signal(signal.SIGINT)
            assert (200, "ServerEnding") == told(await run)[::2]
        assert 0 == server.wait()


async def test_runs_still_begin_while_balancers_notice(tmp_path: Path) -> None:
    with serving(tmp_path, 5, "http: {notice_seconds: 300}\n") as server:
        server.signal()
        for _ in patiently():
            if server.get("/readyz").status_code == 503:
                break
        assert (200, "2", None) == told(server.run("1 + 1"))
        server.signal()  # asked again, it does not wait
        assert 0 == server.wait()


@pytest.mark.parametrize("era", ERAS)
async def test_under_load_every_request_gets_its_result_or_is_told_that_nothing_began(tmp_path: Path, era: str) -> None:
    with serving(tmp_path, PATIENCE) as server:
        answers: list[httpx2.Response] = []

        async def user() -> None:
            async with server.client(era) as client:
                while True:
                    try:
                        answers.append(await client.post(server.url, json=call("1 + 1", era)))
                    except httpx2.TransportError:  # the connection was closed, or refused
                        return
                    if len(answers) == ANSWERS:
                        server.signal()

        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(user() for _ in range(USERS)))
        assert 0 == await anyio.to_thread.run_sync(server.wait)
        done = [answer for answer in answers if not is_unbegun(answer)]
        assert {(200, "2", None)} == {told(answer) for answer in done}
        assert len(answers) >= ANSWERS
        assert "Traceback" not in server.stderr_text()

"""A server over HTTP that is asked to end: no run is lost, none begins, and nobody gets a bare 500."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2
import pytest

from pace import PATIENCE, patiently, wait_while
from team.http_server import CLASSIC, MODERN, HttpServer, call, reply_of

pytestmark = pytest.mark.anyio

ERAS = (MODERN, CLASSIC)
CONFIG = "engines: {use: portable}\nlogs: {level: INFO}\nlimits: {drain_seconds: %s}\n%s"
PACK = '''"""A gate that a test opens."""

import time
from pathlib import Path


def wait(*, entered: str, opened: str) -> str:
    """Say that it has begun, and wait until the gate is open."""
    Path(entered).touch()
    while not Path(opened).exists():
        time.sleep(0.01)
    return "through"
'''
USERS, ANSWERS = 8, 60


@contextmanager
def serving(root: Path, drain_seconds: float, more: str = "") -> Generator[HttpServer]:
    pack = root / "home" / ".onetool" / "tools" / "gate" / "gate_tools.py"
    pack.parent.mkdir(parents=True)
    pack.write_text(PACK)
    with HttpServer.start(root, CONFIG % (drain_seconds, more)) as server:
        yield server


async def begun(server: HttpServer, client: httpx2.AsyncClient, era: str) -> tuple[asyncio.Task[httpx2.Response], Path]:
    """Return a run that is inside a call, and the file that lets it go on."""
    entered, opened = server.place.cwd / "entered", server.place.cwd / "opened"
    command = f"gate.wait(entered={str(entered)!r}, opened={str(opened)!r})"
    run = asyncio.ensure_future(client.post(server.url, json=call(command, era)))
    await anyio.to_thread.run_sync(lambda: wait_while(lambda: None if entered.exists() else "the call has not begun"))
    return run, opened


def told(response: httpx2.Response) -> tuple[int, str, Any]:
    result = reply_of(response)["result"]
    return response.status_code, result["content"][0]["text"], result["_meta"]["onetool"].get("error")


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
            assert (200, "ServerEnding") == (told(late)[0], told(late)[2])
            assert "close" == late.headers["connection"]
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
            if httpx2.get(f"{server.origin}/readyz").status_code == 503:
                break
        assert (200, "2", None) == told(server.run("1 + 1"))
        server.signal()  # asked again, it does not wait
        assert 0 == server.wait()


@pytest.mark.parametrize("era", ERAS)
async def test_under_load_every_request_gets_a_result_a_tool_error_or_a_closed_connection(
    tmp_path: Path, era: str
) -> None:
    with serving(tmp_path, 5) as server:
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
        assert {200} == {answer.status_code for answer in answers}
        outcomes = {told(answer)[2] or told(answer)[1] for answer in answers}
        assert outcomes <= {"2", "ServerEnding"} and "2" in outcomes
        assert len(answers) >= ANSWERS
        assert "Traceback" not in server.stderr_text()

"""Many calls and several processes on one login: no alarm, no second login, and nobody waits for anybody."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.guarded_app import Person, client_of, guarded_app, parallel
from oauth.resource_server import LoopbackResourceServer
from pace import PATIENCE, times_as_long
from servers.desk import door_to, http_spec

pytestmark = pytest.mark.anyio

PROCESSES, CALLS = 3, 200
WORKER = Path(__file__).with_name("login_worker.py")


@contextmanager
def worker(directory: Path, calls: int) -> Generator[subprocess.Popen[str]]:
    """Yield a process that makes its calls when it is told to."""
    command = [sys.executable, str(WORKER), str(directory), str(calls)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def outcomes(directory: Path) -> list[dict[str, Any]]:
    """Return what came of each process, all begun at the same moment."""
    with ExitStack() as stack:
        processes = [stack.enter_context(worker(directory, CALLS)) for _ in range(PROCESSES)]
        for process in processes:
            assert process.stdout and process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        return [json.loads(process.communicate(timeout=4 * PATIENCE)[0]) for process in processes]


async def test_three_processes_with_tokens_of_a_second_never_meet_an_alarm_and_never_log_in(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    issuer.issuing.lifetime = 1.0
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", Person()) as client:
        await client.run("guarded.echo(text='x')")
    found = await asyncio.to_thread(outcomes, tmp_path)
    assert [one["errors"] for one in found] == [[], [], []]
    assert sum(one["right"] for one in found) == PROCESSES * CALLS
    assert (issuer.counts["alarms"], issuer.counts["logins"]) == (0, 1)
    assert issuer.counts["refreshes"] >= 2, "the calls ended before any token did"


async def test_fifty_calls_at_expiry_make_one_refresh(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", Person()) as client:
        await client.run("guarded.echo(text='x')")
        issuer.book.forget_access()
        assert json.loads((await client.run(parallel(50)))[0]) == list(range(50))
    assert (issuer.counts["refreshes"], issuer.counts["logins"], issuer.counts["alarms"]) == (1, 1, 0)


async def test_six_calls_at_once_take_no_longer_than_with_a_token_in_the_settings(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", Person()) as client:
        await client.run("guarded.echo(text='x')")
        (spec,) = app.picture.servers.values()
        header = {"Authorization": f"Bearer {issuer.book.tokens[-1].access}"}
        async with door_to(spec) as with_login, door_to(http_spec(resource.url, headers=header)) as with_header:
            await asyncio.gather(with_login.call("echo", text="warm"), with_header.call("echo", text="warm"))

            async def six(door: Any) -> None:
                assert await asyncio.gather(*(door.call("slow", text=str(i)) for i in range(6))) == list("012345")

            assert await times_as_long(lambda: six(with_login), lambda: six(with_header)) < 1.2

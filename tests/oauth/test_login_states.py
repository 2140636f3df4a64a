"""What happens to a login between two calls, or when many calls and processes use it at once."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.browserless_user import BrowserlessUser
from oauth.guarded_app import Person, client_of, guarded_app, parallel
from oauth.resource_server import LoopbackResourceServer
from pace import PATIENCE, times_as_long
from proxied.desk import door_to, http_spec

pytestmark = pytest.mark.anyio

LOGIN = "onetool auth login guarded"


async def onetool(directory: Path, *arguments: str) -> tuple[int, str]:
    """Return the exit code and the output of a command of its own process, in the same directories."""
    home = directory / "home"
    home.mkdir(exist_ok=True)
    if not (home / ".onetool").exists():
        (home / ".onetool").symlink_to(directory / "user")
    environ = {**os.environ, "HOME": str(home)}
    command = [sys.executable, "-c", "from ot.entry import main; main()", *arguments]
    done = await asyncio.to_thread(
        subprocess.run,
        command,
        cwd=directory / "work",
        env=environ,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout


async def health_of(client: Any) -> dict[str, Any]:
    """Return what ot.health() says of the servers."""
    said, failed = await client.run("ot.health()['proxy']")
    assert not failed
    return json.loads(said)


async def test_a_server_that_wants_a_login_is_not_broken_and_says_how(tmp_path: Path, resource: LoopbackResourceServer):
    async with guarded_app(tmp_path, resource) as app, client_of(app) as client:
        assert (await client.run("guarded.echo(text='x')"))[1]
        health = await health_of(client)
        listed, _ = await client.run("ot.packs(pattern='guarded')")
    assert health["servers"] == {"guarded": "login needed"}
    assert health["status"] == "ok" and "problems" not in health
    assert health["logins"]["guarded"]["do"] == LOGIN
    assert LOGIN in listed and "broken" not in listed


async def test_a_login_is_shown_with_its_expiry(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", Person()) as client:
        await client.run("guarded.echo(text='x')")
        health = await health_of(client)
    login = health["logins"]["guarded"]
    assert health["servers"] == {"guarded": "connected"}
    assert (login["state"], login["scope"]) == ("logged in", "read offline_access")
    assert login["until"].startswith("token until 20") and "renewed by itself" in login["until"]
    assert "do" not in login


async def test_tools_stay_searchable_when_the_login_is_gone(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", Person()) as client:
        await client.run("guarded.echo(text='x')")
    issuer.book.revoke_all()
    async with guarded_app(tmp_path, resource) as app, client_of(app) as client:
        said, failed = await client.run("guarded.slow()")
        assert failed and LOGIN in said
        found, _ = await client.run("ot.help(query='take half a second')")
        health = await health_of(client)
    assert "guarded.slow" in found
    assert health["servers"] == {"guarded": "login needed"} and health["status"] == "ok"
    assert "revoked" in health["logins"]["guarded"]["why"]


async def test_commands_tell_of_a_login_that_is_needed_and_of_one_that_is_there(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", Person()) as client:
        before = await asyncio.gather(
            onetool(tmp_path, "servers"), onetool(tmp_path, "list"), onetool(tmp_path, "doctor", "--json")
        )
        await client.run("guarded.echo(text='x')")
        after = await asyncio.gather(onetool(tmp_path, "servers", "--json"), onetool(tmp_path, "list"))
    servers, listed, doctor = (text for _, text in before)
    assert f"login needed: {LOGIN}" in servers and f"login needed: {LOGIN}" in listed
    (finding,) = [row for row in json.loads(doctor)["findings"] if "guarded" in row["text"]]
    assert (finding["state"], finding["advice"]) == ("note", LOGIN)
    (row,) = json.loads(after[0][1])
    assert (row["login"]["state"], row["login"]["renews"]) == ("logged in", True)
    assert "logged in, token until 20" in after[1][1]


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


ECHO = "guarded.echo(text='hello')"


async def test_tokens_that_expire_in_the_middle_of_a_run_are_renewed_once_and_no_call_fails(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", Person()) as client:
        await client.run(ECHO)
        issuer.book.forget_access()  # sooner than it said: the server's 401 tells
        assert await client.run(parallel(6)) == ("[0,1,2,3,4,5]", False)
    assert (issuer.counts["refreshes"], issuer.counts["logins"], issuer.counts["alarms"]) == (1, 1, 0)


@pytest.mark.parametrize("outage", ["503", "429", "refused"])
async def test_an_authorization_server_that_is_down_asks_nobody_to_log_in(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, outage: str
):
    person = Person()
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", person) as client:
        await client.run(ECHO)
        issuer.book.forget_access()
        issuer.stop() if outage == "refused" else issuer.outages.update({"*": outage})
        said, failed = await client.run(ECHO)
        assert failed and "authorization server of 'guarded' is down" in said and "try again" in said
        issuer.start() if outage == "refused" else issuer.outages.clear()
        assert await client.run(ECHO) == ("hello", False)
    assert (len(person.questions), issuer.counts["logins"], issuer.counts["alarms"]) == (1, 1, 0)


async def test_after_a_restart_the_refresh_token_goes_to_the_server_that_issued_it(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", Person()) as client:
        await client.run(ECHO)
    issuer.book.forget_access()
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app) as client:
        assert await client.run(ECHO) == ("hello", False)
    assert (issuer.counts["refreshes"], issuer.counts["logins"]) == (1, 1)
    assert resource.asked["/token"] == 0


async def test_a_redirect_that_comes_twice_or_belongs_to_somebody_else_is_refused(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    pages: list[int] = []

    class Meddler(Person):
        """Somebody else's browser comes first, then the right one twice."""

        async def open(self, url: str) -> None:
            back = await BrowserlessUser().redirected_to(url)
            other = httpx2.URL(back).copy_set_param("state", "of-somebody-else")
            for address in (other, back, back):
                async with httpx2.AsyncClient() as browser:
                    pages.append((await browser.get(address)).status_code)

    person = Meddler(opens="before")
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", person) as client:
        assert await client.run(ECHO) == ("hello", False)
    assert pages == [400, 200, 400]
    assert issuer.counts["logins"] == 1


async def test_another_authorization_server_gets_nothing_of_the_old_login(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    person = Person()
    with LoopbackAuthorizationServer() as other:
        async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", person) as client:
            await client.run(ECHO)
            resource.move_to(other)
            assert await client.run(ECHO) == ("hello", False)
    assert (len(person.questions), other.counts["logins"], other.counts["registrations"]) == (2, 1, 1)
    old = {secret.encode() for secret in issuer.book.secrets} | {client.encode() for client in issuer.book.clients}
    assert not [secret for secret in old - {b"resource-server"} if secret in b"\n".join(other.received)]

"""Health, lists and doctor tell how the logins are; a server that wants one is not broken, and stays searchable."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.guarded_app import Person, client_of, guarded_app
from oauth.resource_server import LoopbackResourceServer
from pace import PATIENCE

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

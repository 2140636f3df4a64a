"""onetool auth: a login by a person at a terminal, what is known of it, and its end."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cli.command import OneTool
from free_ports import free_port
from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.browserless_user import BrowserlessUser
from oauth.conftest import issuer, resource
from oauth.resource_server import LoopbackResourceServer
from ot.cli.exit_codes import DENIED, FAILURE, NOT_FOUND, OK
from pace import PATIENCE

__all__ = ["issuer", "resource"]

pytestmark = pytest.mark.anyio

NO_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep records in files: the keyring of a developer's desk is not for tests."""
    for name, value in NO_KEYRING.items():
        monkeypatch.setenv(name, value)


def configured(onetool: OneTool, text: str) -> None:
    onetool.user.mkdir(exist_ok=True)
    (onetool.user / "onetool.yaml").write_text(f"policy: {{allow: ['guarded.*']}}\nservers:\n{text}")


class AtTerminal:
    """The command with a person at its terminal."""

    def __init__(self, process: asyncio.subprocess.Process, terminal: int) -> None:
        self._process = process
        self._terminal = terminal
        self.said = ""

    async def address(self) -> str:
        """Return the address that it asks to open."""
        assert self._process.stderr
        while not (line := (await self._process.stderr.readline()).decode()).startswith("http"):
            assert line, self.said
            self.said += line
        return line.strip()

    def type(self, line: str) -> None:
        os.write(self._terminal, f"{line}\n".encode())

    async def end(self) -> tuple[int, str]:
        """Return its exit code and what it printed as data."""
        out, err = await asyncio.wait_for(self._process.communicate(), PATIENCE)
        self.said += err.decode()
        return self._process.returncode or 0, out.decode()


@asynccontextmanager
async def at_terminal(onetool: OneTool, *arguments: str) -> AsyncGenerator[AtTerminal]:
    terminal, inside = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("onetool"), *arguments, cwd=onetool.cwd, env={**os.environ, **NO_KEYRING},
        stdin=inside, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    os.close(inside)
    try:
        async with asyncio.timeout(PATIENCE):
            yield AtTerminal(process, terminal)
    finally:
        os.close(terminal)
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_login_by_a_pasted_address_can_be_seen_used_and_ended(
    onetool: OneTool, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    configured(onetool, f"  guarded: {{url: '{resource.url}'}}\n")
    async with at_terminal(onetool, "auth", "login", "guarded", "--no-browser", "--json") as person:
        person.type(await BrowserlessUser().redirected_to(await person.address()))
        code, out = await person.end()
    assert code == OK, person.said
    assert "Set 'auth: oauth'" in person.said and json.loads(out)["state"] == "logged in"

    called = await asyncio.to_thread(onetool, "run", "guarded.echo(text='tea')")
    assert "tea" in called.out, called.err
    shown = onetool("auth", "status", "guarded", "--json")
    row = json.loads(shown.out)[0]
    assert (shown.code, row["state"], row["renews"]) == (OK, "logged in", True)
    everything = "".join(file.read_text() for file in onetool.home.rglob("*.log")) + shown.out + called.err + out
    assert not any(token in everything for token in issuer.book.secrets)

    ended = await asyncio.to_thread(onetool, "auth", "logout", "guarded", "--json")
    assert (ended.code, json.loads(ended.out)["revoked"]) == (OK, True)
    assert onetool("auth", "status", "guarded").code == DENIED
    assert (await asyncio.to_thread(onetool, "auth", "logout", "guarded")).code == NOT_FOUND


async def test_the_browser_comes_back_to_the_port_of_the_settings(onetool: OneTool, resource: LoopbackResourceServer):
    port = free_port()
    configured(onetool, f"  guarded: {{url: '{resource.url}', auth: {{port: {port}}}}}\n")
    async with at_terminal(onetool, "auth", "login", "guarded") as person:
        page = await BrowserlessUser().open(await person.address())
        assert "logged in" in page.text and page.url.port == port
        code, out = await person.end()
    assert (code, out.splitlines()[0]) == (OK, "Logged in at guarded."), person.said


async def test_nothing_without_a_terminal_starts_a_login(
    onetool: OneTool, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    configured(onetool, f"  guarded: {{url: '{resource.url}', auth: oauth}}\n")
    refused = onetool("auth", "login", "guarded")
    assert refused.code == DENIED and "terminal" in refused.err
    called = await asyncio.to_thread(onetool, "run", "guarded.echo(text='tea')")
    assert "onetool auth login guarded" in called.out + called.err
    assert issuer.counts["/register"] == issuer.counts["/authorize"] == 0


def test_a_server_without_a_login_and_an_unknown_one_are_told_apart(onetool: OneTool):
    configured(onetool, "  clock: {command: sh}\n  robot: {url: 'http://127.0.0.1:9/mcp'}\n")
    assert "credentials in servers.clock.env" in onetool("auth", "login", "clock").err
    assert onetool("auth", "login", "clock").code == FAILURE
    unknown = onetool("auth", "login", "clok")
    assert unknown.code == NOT_FOUND and "clock" in unknown.err
    assert onetool("auth", "status", "robot").code == NOT_FOUND
    assert json.loads(onetool("auth", "status", "--json").out) == []

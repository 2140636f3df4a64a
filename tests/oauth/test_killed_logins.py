"""Logins that end badly: killed processes leave no lock, and no token leaves the store."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.guarded_app import Person, guarded_config
from oauth.resource_server import LoopbackResourceServer
from oauth.test_login_states import onetool
from ot.errors import LoginNeeded
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.token_auth import renew
from ot.proxied.auth.token_store import TokenStore
from proxied.auth.login_desk import PRINCIPAL, account_at, logged_in, overwritten, stored
from proxied.desk import fake, until
from server_process import process_tree

pytestmark = pytest.mark.anyio

SCRIPT = Path(__file__).with_name("killed_login.py")
TESTS = Path(__file__).parent.parent
STEPS = 8
"""How many of the steps are tried where time is short; all of them in a soak."""


class Killer:
    """Orders a login or a renewal in a process that is killed on the way."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def order(self, what: str, at: int = 0, used: str = "") -> str:
        """Return ``killed``, or how many lines it took."""
        self.begin(what, at, used)
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def begin(self, what: str, at: int = 0, used: str = "") -> None:
        """Order it, and do not wait for its end."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"what": what, "at": at, "used": used}) + "\n")
        self._process.stdin.flush()


@contextmanager
def killer(account: ServerAccount) -> Generator[Killer]:
    """Yield who kills processes that work for *account*."""
    given = {"server": "guarded", "url": account.url, "principal": PRINCIPAL, "port": account.port}
    command = [sys.executable, str(SCRIPT), json.dumps(given | {"directory": str(account.directory)})]
    environ = {"PYTHONPATH": ":".join([str(TESTS), *filter(None, sys.path)]), "HOME": str(account.directory.parent)}
    environ |= {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environ, start_new_session=True, **pipes) as process:
        try:
            yield Killer(process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def steps(count: str, most: int) -> list[int]:
    """Return at which lines to kill: all, or *most* of them, the last ones among them."""
    total = int(count)
    every = max(1, total // most)
    return sorted({*range(1, total + 1, every), *range(max(1, total - 3), total + 1)})


async def recovered(account: ServerAccount) -> bool:
    """Return whether the login can be used as it is; otherwise a person has logged in once more."""
    try:
        await asyncio.to_thread(renew, account, TokenStore(account), stored(account).access_token)
    except LoginNeeded:
        await logged_in(account)
        return False
    return True


async def killed_while_renewing(issuer: LoopbackAuthorizationServer, account: ServerAccount, most: int) -> int:
    """Return after how many of the kills a new login was needed."""
    await logged_in(account)
    lost = 0
    with killer(account) as kill:
        for at in steps(kill.order("renewal", used=stored(account).access_token), most):
            used = overwritten(account, expires_at=0.0).access_token
            assert kill.order("renewal", at, used) == "killed", at
            before = issuer.counts["logins"]
            lost += not await recovered(account)
            assert issuer.counts["logins"] - before <= 1
            known = issuer.book.by_access(stored(account).access_token)
            assert known and known.active, f"no usable login after a kill at line {at}"
    return lost


async def killed_while_logging_in(issuer: LoopbackAuthorizationServer, account: ServerAccount, most: int) -> None:
    """Try the steps of a login with one that is there already, which is kept until the new one takes its place."""
    await logged_in(account)
    with killer(account) as kill:
        for at in steps(kill.order("login"), most):
            before = stored(account)
            assert kill.order("login", at) == "killed", at
            known = issuer.book.by_access(stored(account).access_token)
            assert known and known.active, f"no usable login after a kill at line {at}"
            assert stored(account) == before or stored(account).obtained_at > before.obtained_at


async def test_a_renewal_that_is_killed_costs_at_most_one_login_and_never_the_record(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, tmp_path: Path
):
    lost = await killed_while_renewing(issuer, account_at(resource, tmp_path), STEPS)
    assert lost < STEPS, "only between the answer and the write is a login lost"


async def test_a_login_that_is_killed_leaves_the_one_before_usable(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, tmp_path: Path
):
    await killed_while_logging_in(issuer, account_at(resource, tmp_path), STEPS)


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_each_line_of_a_login_and_of_a_renewal_may_be_the_last(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, tmp_path: Path
):
    account = account_at(resource, tmp_path)
    await killed_while_renewing(issuer, account, 10_000)
    await killed_while_logging_in(issuer, account, 10_000)


@pytest.mark.parametrize(("outage", "logins"), [("hang", 0), ("mute", 1)])
async def test_a_process_killed_while_it_waits_for_new_tokens_costs_a_login_only_if_they_were_issued(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, tmp_path: Path, outage: str, logins: int
):
    account = account_at(resource, tmp_path)
    await logged_in(account)
    used = overwritten(account, expires_at=0.0).access_token
    with killer(account) as kill:
        issuer.outages["/token"] = outage
        before = issuer.counts["/token"]
        kill.begin("renewal", used=used)
        await until(lambda: issuer.counts["/token"] > before and issuer.counts["refreshes"] == logins)
    issuer.outages.clear()
    assert await recovered(account) is (logins == 0)
    assert issuer.counts["logins"] == 1 + logins


PROGRAMS = (
    "guarded.echo(text='hello')",
    "guarded.reflect()",
    "guarded.fail_with_it()",
    "guarded.reflect() * 5000",
    "fake.echo(text='x')",
    "ot.health()",
    "ot.config()",
    "ot.stats()",
    "ot.help(query='guarded')",
    "guarded.store(text='x')",
)
COMMANDS = (
    ("auth", "status", "--json"),
    ("servers", "--json"),
    ("logs",),
)


def made(directory: Path, resource: LoopbackResourceServer) -> Path:
    """Return a home with the guarded server, and beside it one that is a process, which gets an environment."""
    home = directory / "home"
    (home / ".onetool").mkdir(parents=True)
    (directory / "work").mkdir()
    config = guarded_config(resource)
    config["servers"]["fake"] = fake()
    config |= {"policy": {"allow": ["guarded.*", "fake.*"]}, "logs": {"level": "DEBUG"}}
    (home / ".onetool" / "onetool.yaml").write_text(json.dumps(config))
    (directory / "user").symlink_to(home / ".onetool")
    return home


def environments(pid: int) -> Iterable[bytes]:
    """Yield the environments and arguments of a process and of all that it started."""
    for stat in process_tree(pid):
        for name in ("environ", "cmdline"):
            try:
                yield Path(f"/proc/{stat.pid}/{name}").read_bytes()
            except OSError:
                continue


async def said_by_server(directory: Path, home: Path, issuer: LoopbackAuthorizationServer) -> list[bytes]:
    """Return all that a server process said in a session with a login, a renewal, more scope and a revocation."""
    said: list[bytes] = []

    async def hear(message: Any) -> None:
        said.append(repr(message).encode())

    stderr = directory / "stderr.txt"
    transport = StdioTransport(
        sys.executable,
        ["-c", "from ot.entry import main; main()", "serve"],
        env={**os.environ, "HOME": str(home)},
        cwd=str(directory / "work"),
        log_file=stderr,
        keep_alive=False,
    )
    async with Client(transport, elicitation_handler=Person(), message_handler=hear, log_handler=hear) as client:
        for number, program in enumerate(PROGRAMS):
            if number == 4:
                issuer.book.forget_access()
            result = await client.call_tool("run", {"command": program}, raise_on_error=False)
            said.append(repr(result).encode())
        said += environments(os.getpid())
        issuer.book.revoke_all()
        result = await client.call_tool("run", {"command": "guarded.reflect()"}, raise_on_error=False)
        said.append(repr(result).encode())
    return [*said, await asyncio.to_thread(stderr.read_bytes)]


def kept_outside_logins(home: Path) -> Iterable[tuple[str, bytes]]:
    """Yield every file below *home* but the records of logins, which are what keeps tokens."""
    for file in sorted((home / ".onetool").rglob("*")):
        if file.is_file() and "logins" not in file.relative_to(home).parts:
            yield str(file), file.read_bytes()


async def test_no_token_is_in_replies_logs_statistics_files_commands_or_environments(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    home = await asyncio.to_thread(made, tmp_path, resource)
    said = await said_by_server(tmp_path, home, issuer)
    commands = await asyncio.gather(*(onetool(tmp_path, *command) for command in COMMANDS))
    places = [("said", text) for text in said] + [(str(pair), pair[1].encode()) for pair in commands]
    places += [*kept_outside_logins(home)]
    codes = [query.split(b"code=")[1][:48] for query in issuer.received if b"code=" in query]
    secrets = [secret.encode() for secret in issuer.book.secrets] + codes
    assert issuer.counts["refreshes"] >= 1 and issuer.counts["logins"] >= 3 and len(secrets) >= 8
    assert b"[secret:login of guarded]" in b"".join(said), "the careless tools told nothing"
    leaks = [(where, _around(secret, text)) for where, text in places for secret in secrets if secret in text]
    assert not leaks
    assert len([1 for where, _ in places if where.endswith((".log", ".db"))]) >= 2, "logs and statistics were searched"


def _around(secret: bytes, text: bytes) -> bytes:
    at = text.index(secret)
    return text[max(0, at - 60) : at + len(secret)]

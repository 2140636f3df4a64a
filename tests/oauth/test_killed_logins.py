"""kill -9 at the steps of a login and of its renewal: a record is never lost, and one new login is the worst."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.resource_server import LoopbackResourceServer
from ot.errors import LoginNeeded
from ot.servers.auth.account import ServerAccount
from ot.servers.auth.token_auth import renew
from ot.servers.auth.token_store import TokenStore
from servers.auth.login_desk import PRINCIPAL, account_at, logged_in, overwritten, stored
from servers.desk import until

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

"""Killed at any step of a login or a renewal: no record is lost, and a person logs in at most once more."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.resource_server import LoopbackResourceServer
from ot.errors import LoginNeeded
from ot.servers.auth.account import ServerAccount
from ot.servers.auth.renewal import renewed
from ot.servers.auth.token_store import TokenStore
from pace import PATIENCE
from servers.auth import killed_steps
from servers.auth.login_desk import account_at, logged_in, stored

pytestmark = pytest.mark.anyio

TESTS = Path(__file__).parents[2]
ROTATED = ("refresh: answer received", "refresh: half written")
"""The authorization server has taken the old token back, and nobody has the new one: only a person can help."""


async def test_killed_at_each_step_no_record_is_lost_and_at_most_one_login_follows(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, tmp_path: Path
):
    steps = [*killed_steps.REFRESH, *killed_steps.LOGIN]
    accounts = {
        step: replace(account_at(resource, tmp_path), directory=tmp_path / str(n)) for n, step in enumerate(steps)
    }
    for account in accounts.values():
        await logged_in(account)
    await _killed(resource.url, accounts)
    for step, account in accounts.items():
        assert stored(account).refresh_token, step
        logins = issuer.counts["logins"]
        await _working_again(account)
        assert issuer.counts["logins"] - logins == (step in ROTATED), step
    assert not [file for account in accounts.values() for file in account.directory.glob(".*.lock")]


async def _killed(url: str, accounts: dict[str, ServerAccount]) -> None:
    pairs = [text for step, account in accounts.items() for text in (step, str(account.directory))]
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(TESTS / "servers/auth/killed_steps.py"), url, *pairs,
        stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    out, _ = await asyncio.wait_for(child.communicate(), PATIENCE)
    assert out.decode().splitlines() == [f"{step} -9" for step in accounts]


async def _working_again(account: ServerAccount) -> None:
    """Renew the login, with a new login where that needs one."""
    try:
        await asyncio.to_thread(_renewed, account)
    except LoginNeeded:
        await logged_in(account)
        await asyncio.to_thread(_renewed, account)


def _renewed(account: ServerAccount) -> None:
    renewed(account, TokenStore(account), stored(account).access_token)

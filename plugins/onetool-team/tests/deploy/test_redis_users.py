"""The users of Redis that deploy/ has: replicas and workers can do all that they do as these, and nothing else."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from checkout import ROOT
from http_server import HttpServer, text_of
from onetool_team.auth.static_tokens import new_token, token_hash
from pace import PATIENCE
from postgres_server import PostgresServer, postgres_server
from state.redis_process import RedisProcess, running_redis
from team.background.counter_service import CounterService, program
from team.background.worker_process import WorkerProcess

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

USERS = ROOT / "deploy" / "redis-users.acl"
NOBODYS = f"#{'0' * 64}"
PASSWORDS = {"replica": "one", "worker": "other"}
KEY = "0123456789abcdef" * 3
CONFIG = """
engines: {{use: portable}}
policy: {{allow: ["counter.*"], ask: ["ot.version"]}}
servers: {{counter: {{url: "{counter}"}}}}
background: {{at_once: 2}}
state: {{redis: "{redis}", postgres: "{postgres}", keys: ["{key}"]}}
http: {{tokens: {{ann: {{hash: "{token}"}}}}}}
logs: {{level: WARNING}}
"""


@dataclass(frozen=True)
class GuardedRedis:
    """A Redis with the users of deploy/, and one for the test."""

    process: RedisProcess

    def url(self, user: str) -> str:
        """Return the address as *user* has it."""
        return self.process.url.replace("redis://", f"redis://{user}:{PASSWORDS.get(user, 'test')}@")

    def client(self, user: str) -> Any:
        """Return a client of *user*."""
        return cast("Any", Redis).from_url(self.url(user))

    async def refusals(self) -> list[dict[str, Any]]:
        """Return what Redis has refused so far."""
        async with self.client("test") as client:
            return await client.acl_log()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Generator[GuardedRedis]:
    lines = USERS.read_text().splitlines()
    for user, password in PASSWORDS.items():
        secret = f"#{hashlib.sha256(password.encode()).hexdigest()}"
        lines = [line.replace(NOBODYS, secret) if line.startswith(f"user {user} ") else line for line in lines]
    file = tmp_path_factory.mktemp("acl") / "users.acl"
    file.write_text("\n".join([*lines, "user test on >test ~* &* +@all", ""]))
    with running_redis("--aclfile", str(file), tcp=True) as process:
        yield GuardedRedis(process)


@pytest.fixture(scope="module")
def postgres() -> Generator[PostgresServer]:
    with postgres_server() as server:
        yield server


async def test_replicas_and_workers_can_do_all_that_they_do(
    guarded: GuardedRedis, postgres: PostgresServer, tmp_path: Path
) -> None:
    counter, token = CounterService.start(tmp_path), new_token()

    def config(user: str) -> str:
        values = {"counter": counter.url, "key": KEY, "token": token_hash(token), "postgres": postgres.address}
        return CONFIG.format(redis=guarded.url(user), **values)

    try:
        with HttpServer.start(tmp_path / "replica", config("replica")) as replica:
            worker = WorkerProcess.start(tmp_path / "worker", config("worker"))

            def run(command: str) -> str:
                return text_of(replica.run(command, token=token))

            def begin(command: str) -> str:
                return run(f"ot.background(command={command!r})['id']")

            def is_in(id: str, *states: str) -> bool:
                return run(f"ot.run_state(id={id!r})['state']") in states

            first = await asyncio.to_thread(begin, program("first"))
            await until(lambda: not is_in(first, "waiting"))
            worker.close()
            second = await asyncio.to_thread(begin, program("second"))
            worker = WorkerProcess.start(tmp_path / "worker", config("worker"))
            await until(lambda: is_in(first, "done", "stopped"))
            await until(lambda: is_in(second, "done"))
            third = await asyncio.to_thread(begin, program("third", 3000))
            await asyncio.to_thread(run, f"ot.cancel(id={third!r})")
            await until(lambda: is_in(third, "cancelled"))
            assert "Redis" not in worker.stderr_text()
            worker.close()
    finally:
        counter.close()
    assert [(entry["username"], entry["object"]) for entry in await guarded.refusals()] == []


async def until(true: Any) -> None:
    """Return once *true* is."""
    async with asyncio.timeout(2 * PATIENCE):
        while not await asyncio.to_thread(true):  # noqa: ASYNC110 - a server tells nobody
            await asyncio.sleep(0.1)


BOTH = [
    ("SET", "others", "1"),
    ("GET", "others"),
    ("EVAL", "return redis.call('SET', 'others', '1')", "0"),
    ("KEYS", "*"),
    ("SCAN", "0"),
    ("RANDOMKEY",),
    ("FLUSHALL",),
    ("CONFIG", "GET", "*"),
    ("CONFIG", "SET", "dir", "/tmp"),
    ("ACL", "SETUSER", "replica", "+@all"),
    ("SCRIPT", "FLUSH"),
    ("FUNCTION", "LIST"),
    ("CLIENT", "KILL", "ID", "1"),
    ("MONITOR",),
    ("REPLICAOF", "NO", "ONE"),
    ("PUBLISH", "others", "1"),
    ("SUBSCRIBE", "others"),
    ("RENAME", "onetool:login:one", "onetool:login:other"),
    ("XADD", "onetool:revision:one", "*", "a", "b"),
]
OF_WORKERS = [
    ("RPUSH", "onetool:mail:replica", "1"),
    ("BLPOP", "onetool:mail:replica", "1"),
    ("SET", "onetool:session:1", "1"),
    ("GET", "onetool:ticket:1"),
    ("DEL", "onetool:quota:1"),
]


@pytest.mark.parametrize(
    ("user", "command"),
    [
        *(("replica", command) for command in BOTH),
        *(("worker", command) for command in [*BOTH, *OF_WORKERS]),
    ],
    ids=str,
)
async def test_a_user_can_do_nothing_else(guarded: GuardedRedis, user: str, command: tuple[str, ...]) -> None:
    async with guarded.client(user) as client:
        with pytest.raises(Exception) as refused:
            await client.execute_command(*command)
    within_script = "executing the script can't access" in str(refused.value)
    assert isinstance(refused.value, NoPermissionError) or within_script, refused.value


def test_the_page_shows_the_rules_that_are_tested() -> None:
    page = (USERS.parents[1] / "docs" / "how-to" / "background-runs-for-a-team.md").read_text(encoding="utf-8")
    assert f"```text\n{USERS.read_text()}```" in page


async def test_nobody_gets_in_without_a_name(guarded: GuardedRedis) -> None:
    async with cast("Any", Redis).from_url(guarded.process.url) as client:
        with pytest.raises(Exception, match=r"authenticated|Authentication"):
            await client.ping()

"""Replicas without PostgreSQL that do not keep their files in one directory are told so, and do not serve."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import pytest
from redis import Redis

from http_server import HttpServer, text_of
from onetool_team.auth.static_tokens import new_token, token_hash
from onetool_team.state.shared_home import MARK
from pace import patiently
from postgres_server import PostgresServer, postgres_server
from state.redis_process import RedisProcess, running_redis

TOKEN = new_token()
CONFIG = """
engines: {{use: portable}}
state: {{redis: "{redis}", {more}keys: ["a key of 32 characters, or of more than that"]}}
http: {{tokens: {{ann: {{hash: "{token}"}}}}}}
"""
OTHER = "is not the directory that the other replicas of this server have"


@pytest.fixture
def redis() -> Generator[RedisProcess]:
    with running_redis() as process:
        yield process


def client(redis: RedisProcess) -> Any:
    """Return a client that tests have."""
    return cast("Any", Redis).from_url(redis.url)


@pytest.fixture
def postgres() -> Generator[PostgresServer]:
    with postgres_server() as server:
        yield server


def replica(root: Path, redis: RedisProcess, *, ready: bool = True, more: str = "") -> HttpServer:
    """Return a replica whose home has no mark but its own."""
    config = CONFIG.format(redis=redis.url, token=token_hash(TOKEN), more=more)
    return HttpServer.start(root, config, ready=ready, mark="")


def test_replicas_with_one_home_share_notes(tmp_path: Path, redis: RedisProcess) -> None:
    with replica(tmp_path, redis) as first, replica(tmp_path, redis) as second:
        first.run('memory.write(text="remember me", scope="user")', token=TOKEN)
        assert "remember me" in text_of(second.run('memory.list(scope="all")', token=TOKEN))


def test_a_replica_with_a_home_of_its_own_is_refused_and_told_what_to_mount(
    tmp_path: Path, redis: RedisProcess
) -> None:
    with replica(tmp_path / "one", redis) as first:
        with pytest.raises(AssertionError, match="it ended") as refused:
            replica(tmp_path / "other", redis)
        (words,) = refused.value.__notes__
        assert f"{tmp_path}/other/home/.onetool {OTHER}" in words
        assert "set state.postgres, or mount one directory there" in words
        assert "Traceback" not in words
        assert text_of(first.run("1 + 1", token=TOKEN)) == "2"


def test_a_home_that_was_lost_is_refused_until_somebody_says_that_it_is_to_replace_it(
    tmp_path: Path, redis: RedisProcess
) -> None:
    replica(tmp_path / "one", redis).close()
    with pytest.raises(AssertionError, match="it ended"):
        replica(tmp_path / "new", redis)
    assert client(redis).delete("onetool:home") == 1
    replica(tmp_path / "new", redis).close()


def test_with_postgres_replicas_with_homes_of_their_own_share_notes_and_permissions(
    tmp_path: Path, redis: RedisProcess, postgres: PostgresServer
) -> None:
    more = f'postgres: "{postgres.address}", '
    with replica(tmp_path / "one", redis, more=more) as first, replica(tmp_path / "two", redis, more=more) as second:
        kept = first.run('memory.write(text="remember me", tags=["who"], scope="user")["id"]', token=TOKEN)
        assert text_of(kept) == "1"
        assert "remember me" in text_of(second.run('memory.search(query="remembering", scope="all")', token=TOKEN))
        second.run('memory.update(id=1, text="and me", append=True)', token=TOKEN)
        assert text_of(first.run("memory.read(id=1)['text']", token=TOKEN)).splitlines() == ["remember me", "and me"]
        for one in (first, second):
            kept = [file for file in (one.place.home / ".onetool").rglob("*") if "memory" in str(file)]
            assert kept == []


def test_a_replica_that_could_not_ask_at_its_start_stops_being_ready_once_it_can(
    tmp_path: Path, redis: RedisProcess
) -> None:
    redis.kill()
    with replica(tmp_path, redis) as alone:
        redis.start()
        client(redis).set("onetool:home", "of others")
        why = ""
        for _ in patiently():
            if why := alone.get("/readyz").json().get("why", ""):
                break
        assert OTHER in why


def test_a_redis_that_was_restarted_empty_learns_the_mark_again(tmp_path: Path, redis: RedisProcess) -> None:
    with replica(tmp_path, redis) as one:
        mark = (one.place.config.parent / MARK).read_text().strip().encode()
        redis.kill()
        redis.start()
        for _ in patiently():
            if client(redis).get("onetool:home"):
                break
        assert client(redis).get("onetool:home") == mark

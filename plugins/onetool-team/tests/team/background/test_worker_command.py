"""``onetool worker`` at its process border: what it refuses, what it says, and how replicas hand runs to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from faults.watched import Place
from http_server import START, HttpServer, text_of
from onetool_team.auth.static_tokens import new_token, token_hash
from pace import PATIENCE, patiently
from postgres_server import PostgresServer, postgres_server
from state.redis_process import RedisProcess
from team.background.worker_process import WorkerProcess

KEY = "0123456789abcdef" * 3
CONFIG = """
engines: {{use: portable}}
state: {{redis: "{redis}", postgres: "{postgres}", prefix: "{prefix}", keys: ["{key}"]}}
http: {{tokens: {{ann: {{hash: "{token}"}}}}}}
logs: {{level: WARNING}}
"""


def config(redis: RedisProcess, postgres: PostgresServer, token: str, prefix: str = "onetool") -> str:
    """Return the configuration of replicas and workers."""
    return CONFIG.format(redis=redis.url, postgres=postgres.address, prefix=prefix, key=KEY, token=token_hash(token))


def refused(root: Path, settings: str) -> str:
    """Return what a worker says that does not start."""
    place = Place.make(root, settings)
    command = [sys.executable, "-c", START, "worker"]
    ended = subprocess.run(
        command, cwd=place.cwd, env=place.environment(), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout == ""
    return ended.stderr


def test_a_worker_without_postgres_says_what_it_needs(tmp_path: Path) -> None:
    told = refused(tmp_path, "engines: {use: portable}")
    assert "state.postgres names none" in told
    assert "the configuration of the replicas" in told


def test_a_worker_of_nobody_says_what_it_needs(tmp_path: Path) -> None:
    places = 'redis: "redis://127.0.0.1:1/0", postgres: "postgresql://127.0.0.1:1/x"'
    told = refused(tmp_path, f'state: {{{places}, keys: ["{KEY}"]}}')
    assert "http.tokens or http.oauth" in told


def test_a_worker_tells_probes_and_programs_how_it_is(
    tmp_path: Path, redis: RedisProcess, postgres: PostgresServer
) -> None:
    worker = WorkerProcess.start(tmp_path, config(redis, postgres, new_token(), "probed"), "--probes", "0")
    try:
        assert worker.told["at_once"] == 4
        assert worker.told["engine"] == "portable"
        with httpx2.Client(base_url=worker.told["probes"], timeout=PATIENCE, verify=False) as client:
            assert client.get("/healthz").json() == {"status": "alive"}
            ready = client.get("/readyz")
            elsewhere = client.post("/mcp")
        assert (ready.status_code, ready.json()) == (200, {"status": "ready", "engine": "portable"})
        assert elsewhere.status_code == 404
    finally:
        worker.close()


def wait_until_done(replica: HttpServer, token: str, id: str) -> str:
    """Return what the run said, once it is done."""
    for _ in patiently():
        if text_of(replica.run(f"ot.run_state(id={id!r})['state']", token=token)) == "done":
            return text_of(replica.run(f"ot.run_state(id={id!r})['texts'][0]", token=token))
    raise AssertionError(text_of(replica.run(f"ot.run_state(id={id!r})", token=token)))


def test_a_run_that_a_replica_took_is_carried_out_although_the_replica_is_gone(
    tmp_path: Path, redis: RedisProcess, postgres: PostgresServer
) -> None:
    token = new_token()
    settings = config(redis, postgres, token, "gone")
    with HttpServer.start(tmp_path / "one", settings) as replica:
        id = text_of(replica.run("""ot.background(command="21 * 2")['id']""", token=token))
        assert text_of(replica.run(f"ot.run_state(id={id!r})['state']", token=token)) == "waiting"
        replica.kill()
    worker = WorkerProcess.start(tmp_path / "worker", settings)
    try:
        with HttpServer.start(tmp_path / "other", settings) as replica:
            assert wait_until_done(replica, token, id) == "42"
    finally:
        worker.close()


@pytest.mark.timeout(120)
def test_without_postgres_background_runs_are_refused_and_plain_runs_go_on(tmp_path: Path, redis: RedisProcess) -> None:
    token = new_token()
    with postgres_server() as postgres, HttpServer.start(tmp_path, config(redis, postgres, token)) as replica:
        postgres.kill()
        told = text_of(replica.run('ot.background(command="1")', token=token))
        assert "the ledger is unavailable: the ledger's PostgreSQL is unreachable" in told
        assert text_of(replica.run("20 + 22", token=token)) == "42"
        postgres.start()
        for _ in patiently():
            if "waiting" in text_of(replica.run('ot.background(command="1")', token=token)):
                return
        raise AssertionError("background runs are still refused")


def test_replicas_without_postgres_refuse_background_runs_and_record_calls_each_for_itself(
    tmp_path: Path, redis: RedisProcess
) -> None:
    token = new_token()
    settings = CONFIG.format(redis=redis.url, postgres="", prefix="none", key=KEY, token=token_hash(token))
    with HttpServer.start(tmp_path, settings) as replica:
        assert "background" in text_of(replica.run('ot.background(command="1")', token=token))
        assert "[]" == text_of(replica.run("ot.effects()", token=token))

"""A plain run asks nothing of Redis, which may write each command to its disk before it answers."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

from redis import Redis

from http_server import HttpServer, text_of
from onetool_team.auth.static_tokens import new_token, token_hash
from pace import wait_while
from state.redis_process import running_redis

BESIDE = ("presence", "writer", "beat", "revision", "catalogue")
"""What replicas say of themselves, whether there are runs or not."""


def test_no_command_is_sent_for_a_plain_run(tmp_path: Path) -> None:
    token = new_token()
    with running_redis() as redis:
        config = {
            "engines": {"use": "portable"},
            "state": {"redis": redis.url, "keys": [secrets.token_hex(32)]},
            "http": {"tokens": {"ann": {"hash": token_hash(token)}}},
        }
        with HttpServer.start(tmp_path, json.dumps(config)) as server:
            assert text_of(server.run("1 + 1", token=token)) == "2"  # the first one takes a lease
            client: Any = Redis
            with client.from_url(redis.url) as asked, client.from_url(redis.url).monitor() as monitor:
                wait_while(lambda: not asked.keys("*:quota*"))  # which no run waits for
                asked.echo("the beginning")
                for _ in range(10):
                    assert text_of(server.run("1 + 1", token=token)) == "2"
                asked.echo("the end")
                while "the beginning" not in monitor.next_command()["command"]:
                    pass
                seen = list[str]()
                while "the end" not in (command := monitor.next_command()["command"]):
                    seen.append(command)
            assert [command for command in seen if not any(name in command for name in BESIDE)] == []

"""Samples of the ledger, with the same entries in both of its forms: a file, and keys of Redis."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ot.execution.caller import Caller
from ot.execution.ledger import Effect, HowEnded
from ot.ledger.background_run import BackgroundRun, RunEnd
from ot.ledger.kept_ledger import KeptLedger
from ot.ledger.ledger_file import LedgerFile
from ot.ledger.redis_ledger import RedisLedger
from ot.ledger.redis_place import RedisPlace
from ot.ledger.sqlite_ledger import SqliteLedger
from ot.registry.tool import Tool
from ot.state.redis_connection import RedisConnection
from pace import PATIENCE
from state.redis_process import running_redis
from stored_formats.databases import dump, restore
from stored_formats.frozen_world import NOW
from stored_formats.stored_format import StoredFormat
from stored_formats.values_in_redis import KEYS

ENDS: tuple[HowEnded, ...] = ("done", "failed", "unknown")
PAY = Tool("bank", "pay")
FIRST = BackgroundRun("b1", "ada", "bank.pay(amount=9)", NOW, "nightly", "cursor", ("ops",), True, "/srv/shop")
QUESTION = {"number": 1, "text": "Pay 8?"}
ENTRIES = "ledger.json"
BEAT = b":beat:"
"""Keys that say that a start is alive, and are gone a few seconds after it."""


def effect(run: str, call: int, amount: int, start: int = 0) -> Effect:
    """Return a call that pays *amount*."""
    return Effect(Caller("ada"), run, call, 3, PAY, {"amount": amount}, start=start, given_key=f"key-{call}")


async def _write(ledger: KeptLedger) -> None:
    for call, how in enumerate(ENDS):
        await ledger.send(effect("r1", call, call))
        ledger.record_end(effect("r1", call, call), how)
    await ledger.send(effect("r1", 3, 3))  # whoever sent it has died by the time it is read
    await ledger.add(FIRST, 9)
    await ledger.begin("b1")
    await ledger.use_packs("b1", 1, {"bank": "1.0"})
    await ledger.send(effect("b1", 0, 9, 1))
    ledger.record_end(effect("b1", 0, 9, 1), "done", {"paid": 9})
    await ledger.end("b1", 1, RunEnd("done", NOW + 1, ("9 paid",), handle="h" * 22))
    await ledger.add(BackgroundRun("b2", "ada", "bank.pay(amount=8)", NOW + 2), 9)
    await ledger.begin("b2")
    await ledger.use_packs("b2", 1, {"bank": "1.0"})
    await ledger.ask("b2", 1, QUESTION)


async def _looked_up(ledger: KeptLedger) -> Any:
    calls = [await ledger.of_run("ada", run) for run in ("r1", "b1")]
    again = await ledger.send(effect("r9", 0, 2))
    asking, ended = await ledger.runs("ada")
    left = await ledger.list_left_behind()
    start = await ledger.begin("b2")
    assert ended.end and start
    return {
        "states": [entry.state for entry in calls[0]],
        "keys": [entry.given_key for entry in calls[0]],
        "value": [entry.value for entry in calls[1]],
        "the same call": [again.run_id, again.line] if again else None,
        "asking": [asking.state, asking.starts, asking.question],
        "ended": [ended.state, ended.end.state, ended.end.at, list(ended.end.texts), ended.end.handle],
        "run": [getattr(ended.run, name) for name in ("id", "command", "created", "name", "client", "admin")],
        "groups and place": [list(ended.run.groups), ended.run.directory],
        "left behind": left,
        "next start": [start.number, await ledger.use_packs("b2", start.number, {"bank": "2.0"})],
    }


READ = {
    "states": ["done", "failed", "unknown", "unknown"],
    "keys": ["key-0", "key-1", "key-2", "key-3"],
    "value": [{"paid": 9}],
    "the same call": ["r1", 3],
    "asking": ["asks", 1, QUESTION],
    "ended": ["done", "done", NOW + 1, ["9 paid"], "h" * 22],
    "run": ["b1", "bank.pay(amount=9)", NOW, "nightly", "cursor", True],
    "groups and place": [["ops"], "/srv/shop"],
    "left behind": ["b2"],
    "next start": [2, {"bank": "1.0"}],
}


# ---------------------------------------------------------------- a file


def _in_file(directory: Path) -> SqliteLedger:
    return SqliteLedger(LedgerFile(directory / "ledger.db", clock=lambda: NOW))


def _make_file(directory: Path) -> None:
    ledger = _in_file(directory)
    asyncio.run(_write(ledger))
    ledger.close()
    dump(directory / "ledger.db", directory / "ledger.sql")
    (directory / "writers").rmdir()


def _read_file(directory: Path) -> Any:
    restore(directory / "ledger.sql", directory / "ledger.db")
    ledger = _in_file(directory)
    try:
        return asyncio.run(_looked_up(ledger))
    finally:
        ledger.close()


# ---------------------------------------------------------------- keys of Redis


@asynccontextmanager
async def _in_redis(url: str) -> AsyncGenerator[tuple[RedisLedger, Any]]:
    connection = RedisConnection(url, answer_seconds=PATIENCE)
    ledger = RedisLedger(RedisPlace(connection, "sample", KEYS), clock=lambda: NOW)
    try:
        yield ledger, connection.client
        await ledger.aclose()
    finally:
        await connection.aclose()


def _make_keys(directory: Path) -> None:
    async def made(url: str) -> Mapping[bytes, Any]:
        async with _in_redis(url) as (ledger, _):
            await _write(ledger)
        async with _in_redis(url) as (_, client):
            keys = sorted([key async for key in client.scan_iter() if BEAT not in key])
            return {key: await _plain(client, key) for key in keys}

    with running_redis() as redis:
        found = asyncio.run(made(redis.url))
    (directory / ENTRIES).write_text(json.dumps({_text(key): value for key, value in found.items()}, indent=1) + "\n")


async def _plain(client: Any, key: bytes) -> dict[str, Any]:
    """Return what lies under *key*."""
    kind = (await client.type(key)).decode()
    if kind == "hash":
        fields = {_text(name): value for name, value in sorted((await client.hgetall(key)).items())}
        return {"hash": {name: base64.b64encode(value).decode() for name, value in fields.items()}}
    if kind == "zset":
        return {"zset": {_text(name): score for name, score in await client.zrange(key, 0, -1, withscores=True)}}
    return {"set": sorted(_text(name) for name in await client.smembers(key))}


def _text(data: bytes) -> str:
    return data.decode()


async def _restored(client: Any, found: Mapping[str, Any]) -> None:
    for key, value in found.items():
        if "hash" in value:
            fields = {name: base64.b64decode(data) for name, data in value["hash"].items()}
            await client.hset(key, mapping=fields)
        elif "zset" in value:
            await client.zadd(key, value["zset"])
        else:
            await client.sadd(key, *value["set"])


def _read_keys(directory: Path) -> Any:
    async def read(url: str) -> Any:
        async with _in_redis(url) as (ledger, client):
            await _restored(client, json.loads((directory / ENTRIES).read_text()))
            return await _looked_up(ledger)

    with running_redis() as redis:
        return asyncio.run(read(redis.url))


FORMATS = (
    StoredFormat("ledger", _make_file, _read_file, READ),
    StoredFormat("ledger_in_redis", _make_keys, _read_keys, READ),
)

"""RedisRoster: who uses a team's server, in Redis; names are sealed, times and counts are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from onetool_team.roster.roster import FileRoster, Roster, Seen
from onetool_team.state.redis_state import RedisState
from onetool_team.state.shared_state import SharedState
from onetool_team.state.state_keys import NotSealed, StateKeys

ADD = """
local person, people = unpack(KEYS)
local name, sealed, first, last, runs, chars = unpack(ARGV)
redis.call('HSETNX', person, 'principal', sealed)
redis.call('HSETNX', person, 'first', first)
redis.call('HSET', person, 'last', last)
redis.call('HINCRBY', person, 'runs', runs)
redis.call('HINCRBY', person, 'chars', chars)
redis.call('ZADD', people, last, name)
return 1
"""
AT_ONCE = 500


def open_roster(state: SharedState, keys: StateKeys, global_dir: Path) -> Roster:
    """Return the roster in Redis, or that in the directories of one machine."""
    return RedisRoster(state, keys) if isinstance(state, RedisState) else FileRoster(global_dir)


class RedisRoster:
    """A hash for each principal, and a sorted set of all of them by when they were seen."""

    def __init__(self, state: RedisState, keys: StateKeys) -> None:
        """Keep them in *state*, sealed with *keys*."""
        self._connection = state.connection
        self._prefix = state.prefix
        self._keys = keys

    async def add(self, seen: Sequence[Seen]) -> None:
        """Add what was seen."""
        client = cast("Any", self._connection.client)
        for one in seen:
            name = self._keys.hide(one.principal)
            key = self._person(name)
            sealed = self._keys.seal(key, one.principal.encode(errors="surrogatepass"))
            given = [name, sealed, one.first, one.last, one.runs, one.chars]
            await self._connection.answer(client.eval(ADD, 2, key, self._people, *given))

    async def people(self) -> list[Seen]:
        """Return everybody, who was seen last first; what was not sealed with our keys is nobody."""
        client = cast("Any", self._connection.client)
        names = [name.decode() for name in await self._connection.answer(client.zrevrange(self._people, 0, -1))]
        found: list[Seen] = []
        for start in range(0, len(names), AT_ONCE):
            keys = [self._person(name) for name in names[start : start + AT_ONCE]]
            pipe = client.pipeline(transaction=False)
            for key in keys:
                pipe.hgetall(key)
            rows = await self._connection.answer(pipe.execute())
            found += filter(None, map(self._read, keys, rows))
        return found

    async def forget(self, principal: str) -> None:
        """Keep nothing of *principal*."""
        client, name = cast("Any", self._connection.client), self._keys.hide(principal)
        await self._connection.answer(client.delete(self._person(name)))
        await self._connection.answer(client.zrem(self._people, name))

    def _read(self, key: str, row: dict[bytes, bytes]) -> Seen | None:
        try:
            principal = self._keys.unseal(key, row[b"principal"]).decode(errors="surrogatepass")
            return Seen(principal, float(row[b"first"]), float(row[b"last"]), int(row[b"runs"]), int(row[b"chars"]))
        except (NotSealed, KeyError, ValueError):
            return None

    @property
    def _people(self) -> str:
        return f"{self._prefix}:people"

    def _person(self, name: str) -> str:
        return f"{self._prefix}:person:{name}"

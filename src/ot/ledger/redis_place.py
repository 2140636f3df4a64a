"""RedisPlace: where the ledger is in Redis, how its steps are taken there, what seals it, and whether it is kept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import orjson

from ot.errors import LedgerUnavailable
from ot.state.redis_connection import RedisConnection
from ot.state.shared_state import StateUnavailable
from ot.state.state_keys import NotSealed, StateKeys

PLAIN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}\Z")
WAIT_SECONDS = 0.8
"""How long Redis's replicas have for a write that must not be lost."""
NEEDED = "appendonly yes and appendfsync always"
UNREAD = f"whether Redis has {NEEDED} could not be read (CONFIG GET is refused)"
NO_FILE = f"Redis has no append-only file: entries are lost when it ends (needed: {NEEDED})"
LAST_SECOND = "appendfsync is {fsync}: entries of the last moments are lost with a loss of power (needed: always)"


class RedisPlace:
    """Names the ledger's keys under one prefix, and asks Redis."""

    def __init__(self, connection: RedisConnection, prefix: str, keys: StateKeys, *, replicas: int = 0) -> None:
        """Keep everything under *prefix*; what must not be lost waits for *replicas* of Redis."""
        self.prefix = f"{prefix}:ledger:"
        self.connection = connection
        self.fingerprint_keys = keys.derive("ledger/fingerprint")
        self.who = keys.hide
        """Returns what stands for a principal in keys."""
        self._keys = keys
        self._replicas = replicas
        self._scripts: dict[str, Any] = {}

    def key(self, kind: str, id: str = "") -> str:
        """Return the key of something; *id* may come from outside."""
        return self.prefix + kind + (f":{self.name(id)}" if id else "")

    def name(self, id: str) -> str:
        """Return what stands for *id* in keys: itself, if it is as ours are."""
        return id if PLAIN_ID.match(id) else hashlib.sha256(id.encode(errors="surrogatepass")).hexdigest()

    async def step(self, script: str, keys: Sequence[str], arguments: Sequence[Any] = ()) -> Any:
        """Return what *script* returns.

        Raises:
            LedgerUnavailable: Redis does not answer, or refuses.
        """
        if script not in self._scripts:
            self._scripts[script] = self.connection.client.register_script(script)
        return await self._answer(self._scripts[script](keys=keys, args=arguments))

    async def step_durably(self, script: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        """Return what *script* returns, once enough of Redis's replicas have what it wrote.

        Raises:
            LedgerUnavailable: As above, or the replicas do not have it in time.
        """
        if not self._replicas:
            return await self.step(script, keys, arguments)
        waited = self.connection.answer_and_wait(script, keys, arguments, self._replicas, WAIT_SECONDS)
        try:
            answer, acknowledged = await waited
        except StateUnavailable as error:
            raise LedgerUnavailable(str(error)) from None
        if acknowledged < self._replicas:
            wanted = f"{self._replicas} replica{'s' * (self._replicas > 1)} of Redis"
            raise LedgerUnavailable(f"{acknowledged} of {wanted} had it within {WAIT_SECONDS:g} s (ledger.replicas)")
        return answer

    async def _answer(self, asked: Any) -> Any:
        try:
            return await self.connection.answer(asked)
        except StateUnavailable as error:
            raise LedgerUnavailable(str(error)) from None

    def seal(self, place: str, value: Any) -> bytes:
        """Return plain data sealed for *place*: moved elsewhere, it does not open."""
        return self._keys.seal(place, orjson.dumps(value))

    def unseal(self, place: str, sealed: bytes) -> Any:
        """Return what was sealed for *place*.

        Raises:
            NotSealed: It was not: somebody else wrote it, or moved it.
        """
        return orjson.loads(self._keys.unseal(place, sealed))

    def try_unseal(self, place: str, sealed: bytes | None) -> Any:
        """Return what was sealed for *place*, or nothing where nothing of ours is."""
        try:
            return self.unseal(place, sealed) if sealed else None
        except NotSealed:
            return None


async def why_not_durable(connection: RedisConnection) -> str:
    """Return why an entry may be lost although its call was sent; nothing when Redis keeps every one."""
    found = await connection.settings("appendonly", "appendfsync")
    if connection.trouble:
        return connection.trouble
    if len(found) < 2:
        return UNREAD
    if found["appendonly"] != "yes":
        return NO_FILE
    return "" if found["appendfsync"] == "always" else LAST_SECOND.format(fsync=found["appendfsync"])

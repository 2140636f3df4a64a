"""RedisEffects: the calls in a team's ledger, a hash for each run; see redis_scripts.py for the steps."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from ot.errors import LedgerUnavailable, RunFenced
from ot.execution.ledger import SETTLE_SECONDS, Effect, HowEnded, UnknownEffect
from ot.ledger import redis_scripts as scripts
from ot.ledger.entries import LedgerEntry, encode_value, read_value
from ot.ledger.fingerprint import fingerprint
from ot.ledger.redis_place import RedisPlace, why_not_durable
from ot.ledger.redis_writer import RedisWriter
from ot.ledger.run_book import FENCED, SAME_CALL_SECONDS

logger = logging.getLogger(__name__)

DAY = 86_400
TOGETHER = 100
"""How many ends are written in one step."""
MOST_ENDS = 10_000
"""How many ends wait for a Redis that does not take them."""
RETRY_SECONDS = 0.5
WAIT_SECONDS = 30.0
"""How long a background run, which has the time, waits for a Redis that is away or slow."""
LOST = "the end of a call was not written to the ledger: %d wait already"


@dataclass(frozen=True, slots=True)
class _End:
    """How a call ended, as it will be written."""

    keys: Sequence[str]
    arguments: Sequence[Any]


class RedisEffects:
    """Writes down what is sent before it is, and how it ended soon after, or as soon as Redis takes it."""

    def __init__(self, place: RedisPlace, *, days: int = 30, clock: Callable[[], float] = time.time) -> None:
        """Keep entries at *place* for so many days."""
        self.place = place
        self.writer = RedisWriter(place)
        self._keep = days * DAY
        self._clock = clock
        self._ends: deque[_End] = deque()
        self._one_at_a_time = asyncio.Lock()
        self._writing: asyncio.Task[None] | None = None

    async def send(self, effect: Effect, *, again: bool = False) -> UnknownEffect | None:
        """Return when it is written down, or the same call whose effect is unknown; a background run waits for that."""
        keys, arguments = self._sending(effect, again=again)
        waiting_ends, tried = time.monotonic() + (WAIT_SECONDS if effect.start else 0.0), ""
        while True:
            try:
                return _what_was_sent(await self._send(keys, [*arguments, tried]))
            except LedgerUnavailable:
                if time.monotonic() >= waiting_ends:
                    # It may have arrived all the same; whoever refuses the call because of this says that it failed.
                    self.record_end(effect, "unknown")
                    raise
            tried = "1"
            await asyncio.sleep(RETRY_SECONDS)

    async def _send(self, keys: list[str], arguments: list[Any]) -> Any:
        if trouble := self.place.connection.trouble:
            raise LedgerUnavailable(trouble)
        await self._write_ends()
        self.writer.start()
        return await self.place.step_durably(scripts.SEND, keys, arguments)

    def _sending(self, effect: Effect, *, again: bool) -> tuple[list[str], list[Any]]:
        name, field, now = self.place.who(effect.caller.principal), _field(effect), f"{self._clock():.6f}"
        tool = effect.tool.full_name
        found = [fingerprint(tool, effect.arguments, key) for key in self.place.fingerprint_keys]
        entry = {"who": name, "run": effect.run_id, "call": effect.call_id, "tool": tool, "line": effect.line}
        entry |= {"at": float(now), "start": effect.start}
        entry |= {"given_key": effect.given_key} if effect.given_key else {}
        entry |= {"directory": effect.directory} if effect.directory else {}
        effects = self._effects(effect.run_id)
        keys = [effects, self._open(name), self.writer.key, self.place.key("run", effect.run_id)]
        note = f"s|{self.writer.name}|{now}|{effect.line or ''}|{effect.run_id}"
        written = f"{found[0]}|{self.writer.name}|".encode() + orjson.dumps(entry)
        start, writer = effect.start, self.writer.name
        ref, repeated = self._ref(effect), "1" if again else ""
        arguments = [field, written, ref, now, repeated, start, writer, self._keep, int(SAME_CALL_SECONDS), note]
        return [*keys, *(f"{self._same}{name}:{one}" for one in found)], arguments

    def record_end(self, effect: Effect, how: HowEnded, value: Any = None) -> None:
        """Have it written down how it ended; while Redis does not take it, it is tried again."""
        if len(self._ends) >= MOST_ENDS:
            logger.warning(LOST, len(self._ends))
            return
        name, effects, field = self.place.who(effect.caller.principal), self._effects(effect.run_id), _field(effect)
        text = encode_value(value)
        sealed = self.place.seal(f"{effects}/{field}", text) if text else b""
        ending = f"{how}|{self._clock():.6f}|".encode() + sealed
        self._ends.append(_End([effects, self._open(name)], [field, ending, self._ref(effect), how, name]))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write_on())

    async def settle(self) -> None:
        """Return when it is written down how calls ended so far."""
        if self._writing is not None and not self._writing.done():
            await asyncio.wait((self._writing,), timeout=SETTLE_SECONDS)

    async def _write_on(self) -> None:
        """Write ends until there are none."""
        while self._ends:
            try:
                await self._write_ends()
            except LedgerUnavailable as error:
                logger.info("%d ends of calls wait for the ledger: %s", len(self._ends), error.why)
                await asyncio.sleep(RETRY_SECONDS)

    async def _write_ends(self) -> None:
        """Write what waits; whoever reads or sends next must see it.

        Raises:
            LedgerUnavailable: It could not be written.
        """
        if not self._ends:
            return
        async with self._one_at_a_time:
            while together := list(islice(self._ends, TOGETHER)):
                keys = [self._same, *(key for end in together for key in end.keys)]
                await self.place.step(scripts.ENDED, keys, [one for end in together for one in end.arguments])
                for _ in together:
                    self._ends.popleft()

    async def of_run(self, principal: str, run: str, directory: str | None = None) -> list[LedgerEntry]:
        """Return the calls of a run of *principal*, as they were made."""
        await self._write_ends()
        effects = self._effects(run)
        found, living = await self.place.step(scripts.READ, [effects, self.writer.key])
        return _of_directory(directory, self.entries(self.place.who(principal), effects, found, living))

    async def unknown(self, principal: str, most: int = 100, directory: str | None = None) -> list[LedgerEntry]:
        """Return the latest calls of *principal* whose effect is unknown; *directory* is looked for among them."""
        await self._write_ends()
        name = self.place.who(principal)
        keys, arguments = [self._open(name), self.writer.key], [self.place.key("effects") + ":", most]
        rows = await self.place.step(scripts.OPEN, keys, arguments)
        found = [entry for effects, row in rows for entry in self.entries(name, effects.decode(), row, ())]
        return _of_directory(directory, found)

    def entries(self, name: str, effects: str, found: Sequence[bytes], living: Iterable[bytes]) -> list[LedgerEntry]:
        """Return the calls in the fields and values *found* at the key *effects*."""
        fields = dict(zip(found[::2], found[1::2], strict=True))
        calls = {field: value for field, value in fields.items() if not field.endswith(b":end")}
        alive = set(living)
        made: list[LedgerEntry] = []
        for field, call in calls.items():
            try:
                entry = self._entry(name, effects, field, call, fields.get(field + b":end"), alive)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                logger.warning("an entry of the ledger at %s is malformed and skipped: %.200s", effects, error)
            else:
                made += [entry] if entry else []
        return sorted(made, key=lambda entry: (entry.at, entry.start, entry.call))

    def _entry(
        self, name: str, effects: str, field: bytes, call: bytes, ending: bytes | None, alive: set[bytes]
    ) -> LedgerEntry | None:
        _, writer, written = call.split(b"|", 2)
        found = orjson.loads(written)
        if found["who"] != name:
            return None
        known = {name: found[name] for name in LedgerEntry.__slots__ if name in found}  # a later release may add some
        known |= {"at": float(known["at"]), "call": int(known["call"]), "start": int(known.get("start", 0))}
        if not ending:
            return LedgerEntry(**known, state="sent" if writer in alive else "unknown")
        how, at, sealed = ending.split(b"|", 2)
        value = read_value(self.place.try_unseal(f"{effects}/{field.decode()}", sealed))
        state: Any = how.decode()
        return LedgerEntry(**known, state=state, ended=float(at), value=value)

    async def health(self) -> Mapping[str, str]:
        """Return the kind of ledger, its status, and why entries may be lost, if they may."""
        why_not = await why_not_durable(self.place.connection)
        status = "unreachable" if self.place.connection.trouble else "not durable" if why_not else "ok"
        return {"kind": "redis", "status": status} | ({"why": why_not} if why_not else {})

    async def aclose(self) -> None:
        """Write what waits, if Redis takes it, and show that this writer has ended."""
        with contextlib.suppress(LedgerUnavailable):
            await self._write_ends()
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        await self.writer.aclose()

    # ---------------------------------------------------------------- keys

    def _effects(self, run: str) -> str:
        return self.place.key("effects", run)

    def _open(self, name: str) -> str:
        return self.place.key("open", name)

    @property
    def _same(self) -> str:
        """What the keys of the same calls begin with."""
        return self.place.key("same") + ":"

    def _ref(self, effect: Effect) -> str:
        return f"{_field(effect)}:{self.place.name(effect.run_id)}"


def _of_directory(directory: str | None, entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Return the calls made in *directory*: all, on a team's server, where nobody has more than one."""
    return [entry for entry in entries if directory in (None, entry.directory)]


def _field(effect: Effect) -> str:
    return f"{effect.start}:{effect.call_id}"


def _what_was_sent(answer: Any) -> UnknownEffect | None:
    match answer:
        case [b"fenced"]:
            raise RunFenced(FENCED)
        case [b"twice"]:
            raise LedgerUnavailable("a call of this number is there already")
        case [b"unknown", known]:
            _, _, at, line, run = known.decode().split("|", 4)
            return UnknownEffect(run, int(line) if line else None, float(at))
        case _:
            return None

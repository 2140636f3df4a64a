"""MemoryState: what replicas would share, where there is one process."""

from __future__ import annotations

import asyncio
import math
import secrets
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from onetool_team.state.shared_state import StateUnavailable

MOST_VALUES = 100_000
MOST_MESSAGES = 10_000
"""In one mailbox: whoever should read it is gone."""
SMALLEST_WAIT = 0.001


@dataclass(slots=True)
class _Value:
    data: bytes
    until: float


@dataclass(slots=True)
class _Mailbox:
    until: float = math.inf
    messages: deque[bytes] = field(default_factory=deque[bytes])


class MemoryState:
    """Values, locks and mailboxes of this process alone; what is too much is refused, as a full Redis would."""

    replicas = False
    trouble = ""

    def __init__(self, most: int = MOST_VALUES) -> None:
        """Keep at most *most* values, and as many mailboxes."""
        self._most = most
        self._values: dict[str, _Value] = {}
        self._mailboxes: dict[str, _Mailbox] = {}
        self._members: dict[str, dict[str, float]] = {}
        self._news: dict[str, asyncio.Event] = {}
        """Who waits, by key: the event is set when a lock is let go of, or a message has come."""

    async def get(self, key: str) -> bytes | None:
        """Return the value, or nothing."""
        value = self._values.get(key)
        return value.data if value and value.until > _now() else None

    async def set(self, key: str, value: bytes, seconds: float | None = None) -> None:
        """Keep *value*, for *seconds* if given."""
        self._make_room(key, self._values)
        self._values[key] = _Value(value, _until(seconds))

    async def add(self, key: str, value: bytes, seconds: float | None = None) -> bool:
        """Keep *value* if the key has none, and return whether it was kept."""
        if await self.get(key) is not None:
            return False
        await self.set(key, value, seconds)
        return True

    async def pop(self, key: str) -> bytes | None:
        """Return the value and forget it."""
        data = await self.get(key)
        self._values.pop(key, None)
        return data

    async def delete(self, key: str) -> None:
        """Forget the value."""
        self._values.pop(key, None)

    async def count(self, key: str) -> int:
        """Add one to the number of *key*, and return it."""
        number = int(await self.get(key) or 0) + 1
        await self.set(key, b"%d" % number)
        return number

    async def join(self, key: str, member: str, seconds: float) -> None:
        """Count *member* among those of *key*."""
        members = self._members.setdefault(key, {})
        members[member] = _until(seconds)
        for gone in [one for one, until in members.items() if until <= _now()]:
            del members[gone]

    async def members(self, key: str) -> list[str]:
        """Return the members of *key* whose time is not over."""
        return [one for one, until in self._members.get(key, {}).items() if until > _now()]

    @asynccontextmanager
    async def lock(self, key: str, seconds: float) -> AsyncGenerator[None]:
        """Hold the lock of *key* in the block, at most *seconds*."""
        name, token = f"lock:{key}", secrets.token_bytes(16)
        while not await self.add(name, token, seconds):
            held = self._values.get(name)
            await self._news_of(name, held.until - _now() if held else 0.0)
        try:
            yield
        finally:
            if await self.get(name) == token:
                await self.delete(name)
                self._tell(name)

    async def send(self, mailbox: str, message: bytes, seconds: float) -> None:
        """Put *message* into a mailbox, which is forgotten when nobody has read it for *seconds*."""
        self._make_room(mailbox, self._mailboxes)
        box = self._mailboxes[mailbox] = self._mailbox(mailbox) or _Mailbox()
        if len(box.messages) >= MOST_MESSAGES:
            raise StateUnavailable(f"{MOST_MESSAGES:,} messages wait already")
        box.messages.append(message)
        box.until = _until(seconds)
        self._tell(f"mail:{mailbox}")

    async def receive(self, mailbox: str, seconds: float) -> bytes | None:
        """Return the oldest message of a mailbox, or nothing if none comes within *seconds*."""
        until = _now() + seconds
        while not (box := self._mailbox(mailbox)):
            if (left := until - _now()) <= 0:
                return None
            await self._news_of(f"mail:{mailbox}", left)
        message = box.messages.popleft()
        if not box.messages:
            del self._mailboxes[mailbox]
        return message

    async def aclose(self) -> None:
        """Forget everything."""
        self._values.clear()
        self._mailboxes.clear()

    # ---------------------------------------------------------------- how

    def _mailbox(self, name: str) -> _Mailbox | None:
        """Return a mailbox that holds messages, or nothing."""
        box = self._mailboxes.get(name)
        return box if box and box.until > _now() else None

    def _make_room[T: (_Value, _Mailbox)](self, key: str, kept: dict[str, T]) -> None:
        if key in kept or len(kept) < self._most:
            return
        now = _now()
        for expired in [name for name, one in kept.items() if one.until <= now]:
            del kept[expired]
        if len(kept) >= self._most:
            raise StateUnavailable(f"{self._most:,} values are kept already")

    def _tell(self, key: str) -> None:
        if event := self._news.pop(key, None):
            event.set()

    async def _news_of(self, key: str, seconds: float) -> None:
        """Return when there is news of *key*, or after *seconds*."""
        event = self._news.setdefault(key, asyncio.Event())
        try:
            async with asyncio.timeout(max(seconds, SMALLEST_WAIT)):
                await event.wait()
        except TimeoutError:
            if self._news.get(key) is event:
                del self._news[key]
                event.set()  # others that wait on it look again, and wait on a new one


def _now() -> float:
    return asyncio.get_running_loop().time()


def _until(seconds: float | None) -> float:
    return math.inf if seconds is None else _now() + seconds

"""ReplicaMail: one replica asks another to do something, and hears that it goes on until it has the answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from onetool_team.state.presence import Presence
from onetool_team.state.shared_state import SharedState, StateUnavailable
from onetool_team.state.state_keys import NotSealed, StateKeys

logger = logging.getLogger(__name__)

SIGN_SECONDS = 2.0
"""How often whoever asked hears that the work goes on."""
SILENCE_SECONDS = 8.0
"""After so long without a sign, the other replica counts as gone."""
LOOK_SECONDS = 1.0
"""How often whoever waits looks whether the other replica is alive: it may say nothing any more."""
READ_SECONDS = 2.0
RETRY_SECONDS = 0.3
NEWS_PAUSE_SECONDS = 0.2
MAIL_SECONDS = 30.0
"""How long a message waits for its reader."""
OLDEST_SECONDS = 120
"""A message that was sealed longer ago is not believed: clocks differ by less."""

type TellNews = Callable[[Mapping[str, Any]], None]
"""Takes news of the work: the latest is sent with the next sign."""
type HandleRequest = Callable[[str, Mapping[str, Any], TellNews], Awaitable[Mapping[str, Any]]]
"""Does what another replica asks for: what kind of thing, and of what; returns the answer."""

OPERATOR = "operator/"
"""What requests begin with that are from who operates the server."""
type AnswerOperator = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class ReplicaGone(Exception):
    """The replica that was asked is not there any more, or does not answer."""


@dataclass(slots=True)
class _Asked:
    """A request to another replica whose answer is waited for."""

    answer: asyncio.Future[Mapping[str, Any]]
    tell: TellNews | None
    heard: float = field(default_factory=time.monotonic)


class ReplicaMail:
    """The mailbox of this replica, and its letters to others; all of them are sealed with the operator's keys."""

    def __init__(self, state: SharedState, keys: StateKeys, presence: Presence, handle: HandleRequest) -> None:
        """Send as *presence* says who this is; *handle* does what others ask for."""
        self._state = state
        self._keys = keys
        self._presence = presence
        self._handle = handle
        self._asked: dict[str, _Asked] = {}
        self._handling: dict[str, asyncio.Task[None]] = {}
        self._seen: dict[str, float] = {}
        """The ids of requests, so that none that is sent again by somebody else is done again."""
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the mailbox from now on."""
        self._reading = asyncio.ensure_future(self._read())

    async def ask(
        self, replica: str, what: str, body: Mapping[str, Any], tell: TellNews | None = None
    ) -> Mapping[str, Any]:
        """Return what *replica* answers to *what*; *tell* hears news of the work meanwhile.

        Raises:
            ReplicaGone: It does not answer.
            StateUnavailable: It cannot be asked.
        """
        id, asked = secrets.token_hex(16), _Asked(asyncio.get_running_loop().create_future(), tell)
        self._asked[id] = asked
        letter = {"id": id, "from": self._presence.me, "kind": "ask", "what": what, "body": body}
        try:
            alive, _ = await asyncio.gather(self._presence.is_alive(replica), self._post(replica, letter))
            if not alive:
                raise ReplicaGone
            return await self._await_answer(replica, asked)
        except (asyncio.CancelledError, ReplicaGone):
            await asyncio.shield(self._take_back(replica, id))
            raise
        finally:
            del self._asked[id]

    async def _post(self, replica: str, letter: Mapping[str, Any]) -> None:
        # A replica that was frozen, and wakes up when we have given up, must not do it then: it needs the ticket.
        await self._state.set(_ticket(letter["id"]), b"1", MAIL_SECONDS)
        await self._send(replica, letter)

    async def _take_back(self, replica: str, id: str) -> None:
        with contextlib.suppress(StateUnavailable):
            await self._state.delete(_ticket(id))
            await self._send(replica, {"id": id, "kind": "cancel"})

    async def _await_answer(self, replica: str, asked: _Asked) -> Mapping[str, Any]:
        while not asked.answer.done():
            await asyncio.wait((asked.answer,), timeout=LOOK_SECONDS)
            if not asked.answer.done() and await self._is_gone(replica, asked):
                raise ReplicaGone
        return asked.answer.result()

    async def _is_gone(self, replica: str, asked: _Asked) -> bool:
        if time.monotonic() - asked.heard > SILENCE_SECONDS:
            return True
        with contextlib.suppress(StateUnavailable):  # then only silence tells
            return not await self._presence.is_alive(replica)
        return False

    async def aclose(self) -> None:
        """Read no more, and stop what others asked for."""
        tasks = [*self._handling.values(), *([self._reading] if self._reading else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---------------------------------------------------------------- reading

    async def _read(self) -> None:
        while True:
            try:
                sealed = await self._state.receive(self._presence.me, READ_SECONDS)
            except StateUnavailable:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if sealed is not None:
                self._sort(sealed)

    def _sort(self, sealed: bytes) -> None:
        try:
            letter = json.loads(self._keys.unseal(_place(self._presence.me), sealed, OLDEST_SECONDS))
        except NotSealed:
            logger.warning("a message to this replica was not sealed with state.keys, and is not read")
            return
        id, kind = letter["id"], letter["kind"]
        if kind in ("sign", "answer"):
            self._hear(id, kind, letter["body"])
        elif kind == "cancel":
            if task := self._handling.get(id):
                task.cancel()
        elif kind == "ask" and self._is_new(id):
            self._handling[id] = asyncio.ensure_future(self._handle_letter(letter))
            self._handling[id].add_done_callback(lambda _: self._handling.pop(id, None))

    def _hear(self, id: str, kind: str, body: Mapping[str, Any]) -> None:
        asked = self._asked.get(id)
        if asked is None or asked.answer.done():
            return
        asked.heard = time.monotonic()
        if kind == "answer":
            asked.answer.set_result(body)
        elif body and asked.tell:
            asked.tell(body)

    def _is_new(self, id: str) -> bool:
        now = time.monotonic()
        # Twice the age at which it is not believed any more: clocks may go ahead as well.
        for old in [seen for seen, at in self._seen.items() if now - at > 2 * OLDEST_SECONDS]:
            del self._seen[old]
        if id in self._seen:
            logger.warning("a message to this replica came twice, and is not read again")
            return False
        self._seen[id] = now
        return True

    # ---------------------------------------------------------------- doing what others ask for

    async def _handle_letter(self, letter: Mapping[str, Any]) -> None:
        """Do what was asked for, unless it was taken back, and answer; meanwhile give signs."""
        if not await self._is_wanted(letter["id"]):
            return
        signs = _Signs(lambda body: self._send(letter["from"], {"id": letter["id"], "kind": "sign", "body": body}))
        giving = asyncio.ensure_future(signs.give())
        try:
            answer = await self._handle(letter["what"], letter["body"], signs.tell)
        except Exception:
            logger.exception("what another replica asked for failed")
            answer = {"failed": True}
        finally:
            giving.cancel()
            await asyncio.gather(giving, return_exceptions=True)
        await self._answer(letter["from"], {"id": letter["id"], "kind": "answer", "body": answer})

    async def _is_wanted(self, id: str) -> bool:
        try:
            return await self._state.pop(_ticket(id)) is not None
        except StateUnavailable:
            return False  # whoever asked hears nothing, and is told that this replica is gone

    async def _answer(self, replica: str, letter: Mapping[str, Any]) -> None:
        """Send an answer; what keeps it from being sent may be over in a moment."""
        until = time.monotonic() + SILENCE_SECONDS
        while True:
            try:
                return await self._send(replica, letter)
            except StateUnavailable as error:
                if time.monotonic() > until:
                    logger.warning("an answer to another replica was not sent: %s", error)
                    return None
            await asyncio.sleep(RETRY_SECONDS)

    async def _send(self, replica: str, letter: Mapping[str, Any]) -> None:
        sealed = self._keys.seal(_place(replica), json.dumps(letter).encode())
        await self._state.send(replica, sealed, MAIL_SECONDS)


class _Signs:
    """Tells whoever asked that the work goes on, with the latest news of it."""

    def __init__(self, send: Callable[[Mapping[str, Any]], Awaitable[None]]) -> None:
        self._send = send
        self._news: Mapping[str, Any] | None = None
        self._told = asyncio.Event()

    def tell(self, news: Mapping[str, Any]) -> None:
        """Take the latest news."""
        self._news = news
        self._told.set()

    async def give(self) -> None:
        """Send signs until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SIGN_SECONDS):
                    await self._told.wait()
            self._told.clear()
            news, self._news = self._news, None
            with contextlib.suppress(StateUnavailable):
                await self._send(news or {})
            await asyncio.sleep(NEWS_PAUSE_SECONDS)


def _ticket(id: str) -> str:
    return f"ticket:{id}"


def _place(mailbox: str) -> str:
    return f"mail/{mailbox}"

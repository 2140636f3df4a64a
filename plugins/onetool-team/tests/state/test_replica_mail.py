"""One replica asks another: answers, news, silence, and letters that somebody else wrote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

import pytest

from onetool_team.state.presence import Presence
from onetool_team.state.redis_state import RedisState
from onetool_team.state.replica_mail import HandleRequest, ReplicaGone, ReplicaMail, TellNews
from onetool_team.state.session_replicas import SessionReplicas
from onetool_team.state.shared_state import SharedState, StateUnavailable
from onetool_team.state.state_keys import StateKeys
from pace import PATIENCE
from proxied.desk import until
from state.redis_process import RedisProcess, running_redis

pytestmark = pytest.mark.anyio

KEYS = StateKeys.ephemeral()


@dataclass
class Post:
    """The mail of one replica."""

    state: SharedState
    presence: Presence
    mail: ReplicaMail

    @property
    def me(self) -> str:
        return self.presence.me


async def echo(what: str, body: Mapping[str, Any], tell: TellNews) -> Mapping[str, Any]:
    """Answer with what was asked."""
    return {"what": what, **body}


@asynccontextmanager
async def post(redis: RedisProcess, prefix: str, handle: HandleRequest = echo) -> AsyncGenerator[Post]:
    """Yield a replica that answers with *handle*."""
    state = RedisState(redis.url, prefix, answer_seconds=PATIENCE)
    presence = Presence(state)
    mail = ReplicaMail(state, KEYS, presence, handle)
    await mail.start()
    await presence.start()
    async with asyncio.timeout(PATIENCE):
        yield Post(state, presence, mail)
    await presence.aclose()
    await mail.aclose()
    await state.aclose()


@pytest.fixture
def prefix() -> str:
    return token_hex(8)


async def test_many_ask_each_other_at_once(redis: RedisProcess, prefix: str) -> None:
    async with post(redis, prefix) as one, post(redis, prefix) as other:
        asked = [one.mail.ask(other.me, "echo", {"n": n}) for n in range(20)]
        asked += [other.mail.ask(one.me, "echo", {"n": n}) for n in range(20)]
        assert await asyncio.gather(*asked) == [{"what": "echo", "n": n} for n in [*range(20), *range(20)]]


async def test_news_come_before_the_answer(redis: RedisProcess, prefix: str) -> None:
    heard = asyncio.Event()

    async def work(what: str, body: Mapping[str, Any], tell: TellNews) -> Mapping[str, Any]:
        tell({"done": 1})
        await heard.wait()
        return {}

    news: list[Mapping[str, Any]] = []

    def hear(told: Mapping[str, Any]) -> None:
        news.append(told)
        heard.set()

    async with post(redis, prefix) as one, post(redis, prefix, work) as other:
        assert await one.mail.ask(other.me, "work", {}, hear) == {}
    assert news == [{"done": 1}]


async def test_whoever_is_not_there_is_told_of_at_once(redis: RedisProcess, prefix: str) -> None:
    async with post(redis, prefix) as one:
        with pytest.raises(ReplicaGone):
            await one.mail.ask("nobody", "echo", {})


async def test_work_goes_on_as_long_as_there_are_signs_and_silence_is_the_end(
    redis: RedisProcess, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onetool_team.state.replica_mail.SIGN_SECONDS", 0.1)
    monkeypatch.setattr("onetool_team.state.replica_mail.SILENCE_SECONDS", 2.0)
    monkeypatch.setattr("onetool_team.state.replica_mail.LOOK_SECONDS", 0.1)
    enough = asyncio.Event()

    async def work(what: str, body: Mapping[str, Any], tell: TellNews) -> Mapping[str, Any]:
        await enough.wait()
        return {}

    async with post(redis, prefix) as one, post(redis, prefix, work) as other:
        asking = asyncio.ensure_future(one.mail.ask(other.me, "work", {}))
        await asyncio.sleep(2.5)  # longer than the silence that would end it
        assert not asking.done()
        await other.mail.aclose()  # it is announced as alive for seconds to come, but reads and writes nothing
        with pytest.raises(ReplicaGone):
            await asking


async def test_who_gives_up_stops_the_work(redis: RedisProcess, prefix: str) -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    async def work(what: str, body: Mapping[str, Any], tell: TellNews) -> Mapping[str, Any]:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return {}

    async with post(redis, prefix) as one, post(redis, prefix, work) as other:
        asking = asyncio.ensure_future(one.mail.ask(other.me, "work", {}))
        await began.wait()
        asking.cancel()
        await stopped.wait()


async def test_a_letter_that_others_wrote_or_send_again_is_not_read(redis: RedisProcess, prefix: str) -> None:
    done: list[str] = []

    async def work(what: str, body: Mapping[str, Any], tell: TellNews) -> Mapping[str, Any]:
        done.append(body["by"])
        return {}

    def letter(by: str) -> bytes:
        return json.dumps({"id": by, "from": "x", "kind": "ask", "what": "work", "body": {"by": by}}).encode()

    async with post(redis, prefix, work) as one:
        place = f"mail/{one.me}"
        ours = KEYS.seal(place, letter("us"))
        forged = [
            letter("plain"),
            StateKeys.ephemeral().seal(place, letter("key")),
            KEYS.seal("mail/x", letter("moved")),
        ]
        for by in ("plain", "key", "moved", "us", "the end"):
            await one.state.set(f"ticket:{by}", b"1", 60)
        await one.state.send(one.me, KEYS.seal(place, letter("without a ticket")), 60)
        for sealed in (*forged, ours):
            await one.state.send(one.me, sealed, 60)
        await until(lambda: done == ["us"])
        await one.state.set("ticket:us", b"1", 60)
        for sealed in (ours, KEYS.seal(place, letter("the end"))):
            await one.state.send(one.me, sealed, 60)
        await until(lambda: "the end" in done)
    assert done == ["us", "the end"]


async def test_what_was_given_up_is_not_done_by_a_replica_that_wakes_up_later(
    redis: RedisProcess, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onetool_team.state.replica_mail.SILENCE_SECONDS", 0.3)
    monkeypatch.setattr("onetool_team.state.replica_mail.LOOK_SECONDS", 0.1)
    done: list[str] = []

    async def work(what: str, body: Mapping[str, Any], tell: TellNews) -> Mapping[str, Any]:
        done.append(what)
        return {}

    async with post(redis, prefix) as one, post(redis, prefix, work) as other:
        await other.mail.aclose()
        with pytest.raises(ReplicaGone):
            await one.mail.ask(other.me, "late", {})
        # From here on the other answers, and a busy machine may leave it silent for longer.
        monkeypatch.setattr("onetool_team.state.replica_mail.SILENCE_SECONDS", PATIENCE)
        await other.mail.start()
        assert await one.mail.ask(other.me, "in time", {}) == {}
    assert done == ["in time"]


async def found_again(by: Post, whom: Post) -> None:
    """Return when one replica sees the other; it learns that Redis is back by asking."""
    for _ in range(int(PATIENCE / 0.05)):
        with suppress(StateUnavailable):
            if await by.presence.is_alive(whom.me):
                return
        await asyncio.sleep(0.05)
    raise AssertionError("not found again")


async def test_replicas_find_each_other_again_when_redis_was_restarted_empty(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onetool_team.state.presence.BEAT_SECONDS", 0.1)
    with running_redis() as redis:
        async with post(redis, prefix) as one, post(redis, prefix) as other:
            mine = SessionReplicas(one.state, KEYS, one.presence)
            theirs = SessionReplicas(other.state, KEYS, other.presence)
            assert await mine.owner("ann", "notes", 60) == one.me
            redis.kill()
            redis.start()
            await found_again(other, one)
            assert await theirs.owner("ann", "notes", 60) == one.me
            assert await other.mail.ask(one.me, "echo", {}) == {"what": "echo"}

"""A server may do what it likes: calls get their answer or an error in time, and nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from ot.errors import ServerUnavailable, ToolFailed
from ot.proxied.spec import ServerSpec
from pace import PATIENCE, effort
from proxied.desk import Door, answered_later, below_this, counted, door_to, fake_spec, lines_of, until
from server_process import process_stat
from workers.process_watch import assert_gone

pytestmark = pytest.mark.anyio


async def failure_of(door, name: str, **arguments) -> ServerUnavailable:
    with pytest.raises(ServerUnavailable) as caught:
        await door.call(name, **arguments)
    return caught.value


# ---------------------------------------------------------------- starting


async def test_a_slow_start_is_waited_for():
    async with door_to(fake_spec("delay=1")) as door:
        calling = asyncio.ensure_future(door.call("echo", text="late"))
        await until(lambda: bool(door.pool.states()))
        assert door.state["state"] == "starting"
        assert await calling == "late"
        assert door.state["state"] == "connected"


async def test_a_mute_server_is_given_up_at_its_start_deadline():
    async with door_to(fake_spec("mute", start_seconds=0.5)) as door:
        begun = time.monotonic()
        failure = await failure_of(door, "echo")
        assert 0.4 < time.monotonic() - begun
        assert "did not start within 0.5 s" in failure.why
        assert door.state["state"] == "failed"
    assert_gone(below_this(), PATIENCE)


async def test_a_command_that_does_not_exist_is_named():
    async with door_to(ServerSpec("gone", "gone", command="no-such-program-here")) as door:
        failure = await failure_of(door, "echo")
        assert "no-such-program-here" in failure.why
        assert failure.retry_seconds > 0


async def test_a_directory_that_does_not_exist_is_named():
    async with door_to(fake_spec(cwd="/no/such/place")) as door:
        assert "/no/such/place" in (await failure_of(door, "echo")).why


async def test_a_server_that_exits_at_once_is_quoted():
    async with door_to(fake_spec("exit=3")) as door:
        failure = await failure_of(door, "echo")
        assert "exit code 3" in failure.why
        assert "cannot start: no key" in failure.why


async def test_a_server_of_the_older_protocol_that_exits_on_other_first_messages_is_started_again():
    async with door_to(fake_spec("strict")) as door:
        assert await door.call("echo", text="hello") == "hello"


async def test_a_call_during_the_pause_fails_at_once_and_a_later_one_tries_again(tmp_path: Path):
    async with door_to(fake_spec("exit=3")) as door:
        await failure_of(door, "echo")
        before = door.state["since"]
        failure = await failure_of(door, "echo")
        assert door.state["since"] == before  # it was not even tried
        assert failure.retry_seconds > 0
        await asyncio.sleep(failure.retry_seconds)
        await failure_of(door, "echo")
        assert door.state["since"] > before


# ---------------------------------------------------------------- what it writes


@pytest.mark.scenario("004-26")
async def test_junk_between_messages_is_skipped_and_later_messages_are_read(caplog: pytest.LogCaptureFixture):
    async with door_to(fake_spec("junk=2")) as door:
        assert await door.call("junk") == "after the junk"
        assert await door.call("echo", text="still here") == "still here"
        assert "7 lines" in door.state["noise"]


@pytest.mark.scenario("004-25")
async def test_the_error_of_a_polluting_server_quotes_what_it_wrote(caplog: pytest.LogCaptureFixture):
    async with door_to(fake_spec("junk=1", "mute", start_seconds=3)) as door:
        failure = await failure_of(door, "echo")
        assert "Welcome to the fake server, line 0!" in failure.why
        assert "Welcome to the fake server, line 0!" in caplog.text


async def test_text_before_every_answer_does_not_disturb():
    async with door_to(fake_spec("print=1")) as door:
        assert [await door.call("echo", text=str(n)) for n in range(5)] == list("01234")
        assert "DEBUG about to answer" in door.state["noise"]


async def test_half_a_reply_is_waited_for():
    async with door_to(fake_spec()) as door:
        assert await door.call("half") == "whole"


async def test_half_a_reply_and_death_is_a_lost_call():
    async with door_to(fake_spec()) as door:
        failure = await failure_of(door, "half_and_die")
        assert failure.unknown
        assert "its end is missing" in failure.why


async def test_a_reply_with_an_unknown_id_is_dropped():
    async with door_to(fake_spec()) as door:
        assert await door.call("wrong_id") == "yours"


async def test_a_second_reply_is_dropped():
    async with door_to(fake_spec()) as door:
        assert await door.call("twice") == "first"
        assert await door.call("echo", text="next") == "next"


async def test_a_large_reply_arrives_and_a_huge_one_harms_only_its_call(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ot.proxied.messages.OutputLines.__init__.__defaults__", (4 << 20,))
    async with door_to(fake_spec()) as door:
        assert len(await door.call("large", size=3 << 20)) == 3 << 20
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await door.call("large", size=5 << 20)
        assert await door.call("echo", text="fine") == "fine"
        assert "bytes, more than 4,194,304" in door.state["noise"]


async def test_a_flood_on_standard_error_blocks_nobody():
    async with door_to(fake_spec()) as door:
        assert await door.call("flood", size=5_000_000) == "flooded"


async def test_an_answer_that_does_not_follow_the_protocol_fails_its_call_alone():
    async with door_to(fake_spec()) as door:
        with pytest.raises(ToolFailed) as caught:
            await door.call("refuse", code=-32602)
        assert (caught.value.kind, caught.value.message) == ("ValueError", "refused by the server")
        assert door.state["state"] == "connected"


async def test_an_error_that_looks_like_a_lost_session_costs_a_process_nothing():
    async with door_to(fake_spec()) as door:
        first = await door.call("pid")
        with pytest.raises(ToolFailed, match="refused by the server"):
            await door.call("refuse", code=-32001)
        assert await door.call("pid") == first


# ---------------------------------------------------------------- dying


async def test_a_death_fails_the_calls_in_flight_and_the_next_call_finds_a_new_process():
    async with door_to(fake_spec()) as door:
        first = await door.call("pid")
        sleeping = asyncio.ensure_future(door.call("sleep", seconds=20))
        await asyncio.sleep(0)
        failure = await failure_of(door, "die")
        assert failure.unknown
        assert "exit code 7" in failure.why
        assert "these are my last words" in failure.why
        with pytest.raises(ServerUnavailable):
            await sleeping
        assert door.state["state"] == "failed"
        assert await answered_later(door, "pid") != first
        assert door.state["state"] == "connected"


async def test_a_server_that_closes_its_output_is_ended():
    async with door_to(fake_spec()) as door:
        assert (await failure_of(door, "close_output")).unknown
        assert await answered_later(door, "echo", text="new") == "new"


async def test_a_server_restarted_during_a_gather_loses_only_the_calls_that_it_had():
    async with door_to(fake_spec(concurrency=4)) as door:
        calls = [door.call("sleep", seconds=20) for _ in range(3)] + [door.call("die")]
        later = [door.call("echo", text=str(n)) for n in range(6)]
        lost = await asyncio.gather(*calls, *later, return_exceptions=True)
        assert all(isinstance(answer, ServerUnavailable) for answer in lost[:4])
        assert [answer for answer in lost[4:] if isinstance(answer, str)] == [str(n) for n in range(6)]


async def test_a_call_that_may_have_taken_effect_is_never_repeated(tmp_path: Path):
    effects = tmp_path / "effects"
    async with door_to(fake_spec()) as door:
        for word in map(str, range(5)):
            with pytest.raises(ServerUnavailable) as caught:
                await answered_or_lost(door, "effect_and_die", file=str(effects), word=word)
            assert caught.value.unknown
    assert counted(lines_of(effects)) == {str(n): 1 for n in range(5)}


async def answered_or_lost(door, name: str, **arguments):
    """Call, waiting out the pauses in which nothing is sent."""
    while True:
        try:
            return await door.call(name, **arguments)
        except ServerUnavailable as error:
            if error.unknown:
                raise
            await asyncio.sleep(error.retry_seconds)


async def killed_under_calls(directory: Path, kills: int) -> None:
    """Kill the server again and again while calls are made; every call ends, and has its effect at most once."""
    effects, answered, lost, killed = directory / "effects", [], [], set[int]()
    async with door_to(fake_spec()) as door:

        async def caller(name: str) -> None:
            number = 0
            while not done.is_set():
                number += 1
                word = f"{name}-{number}"
                try:
                    async with asyncio.timeout(PATIENCE):
                        assert await door.call("effect", file=str(effects), word=word) == word
                    answered.append(word)
                except ServerUnavailable:
                    lost.append(word)
                    await asyncio.sleep(0.005)

        done = asyncio.Event()
        callers = [asyncio.ensure_future(caller(str(n))) for n in range(3)]
        for _ in range(kills):
            pid = (await answered_later(door, "pid"))["pid"]
            os.kill(pid, 9)
            killed.add(pid)
            await asyncio.sleep(0)
        done.set()
        await asyncio.gather(*callers)
        assert await answered_later(door, "echo", text="alive") == "alive"
    counts = counted(lines_of(effects))
    assert len(killed) == kills
    assert max(counts.values()) == 1
    assert set(answered) <= counts.keys() <= {*answered, *lost}
    assert lost
    assert_gone([*killed, *below_this()], PATIENCE)


async def test_ten_kills_under_calls_lose_calls_and_nothing_else(tmp_path: Path):
    await killed_under_calls(tmp_path, 10)


@pytest.mark.soak
async def test_a_hundred_kills_under_calls_lose_calls_and_nothing_else(tmp_path: Path):
    await killed_under_calls(tmp_path, 100)


async def test_what_a_server_forked_into_another_session_ends_with_it():
    async with door_to(fake_spec()) as door:
        grandchild = int(await door.call("fork"))
        assert grandchild in below_this()
    assert_gone([grandchild, *below_this()], PATIENCE)


# ---------------------------------------------------------------- cancelling, waiting


async def test_a_cancelled_call_is_cancelled_at_the_server_and_the_connection_stays():
    async with door_to(fake_spec()) as door:
        first = await door.call("pid")
        calling = asyncio.ensure_future(door.call("silent"))
        (connection,) = door.pool._all()  # pyright: ignore[reportPrivateUsage] - nothing else tells
        await until(lambda: connection.in_flight == 1)
        calling.cancel()
        await asyncio.wait((calling,), timeout=PATIENCE)
        assert calling.cancelled()
        assert len(eval(await door.call("cancelled"))) == 1
        assert await door.call("pid") == first


async def test_no_more_calls_than_allowed_are_on_a_server_at_once():
    async with door_to(fake_spec(concurrency=2)) as door:
        await door.call("echo")
        begun = time.monotonic()
        await asyncio.gather(*(door.call("sleep", seconds=0.2) for _ in range(4)))
        assert time.monotonic() - begun > 0.39


async def test_an_idle_server_is_let_go_and_comes_back():
    async with door_to(fake_spec(idle_seconds=0.2)) as door:
        first = await door.call("pid")
        await until(lambda: door.state["state"] == "idle")
        await until(lambda: process_stat(first["pid"]) is None)
        assert await door.call("pid") != first


async def test_a_server_with_other_settings_is_another_one_and_the_rest_is_left_alone():
    async with door_to(fake_spec()) as door:
        first = await door.call("pid")
        door.pool.hold("one", [door.spec.key])
        door.pool.hold("another", [door.spec.key])
        door.pool.hold("another", [])
        assert await door.call("pid") == first
        door.pool.hold("one", [])
        await until(lambda: process_stat(first["pid"]) is None)
        assert await door.call("pid") != first


async def test_closing_during_a_start_is_an_error_of_the_call_and_leaves_nothing():
    before = below_this()
    async with door_to(fake_spec("delay=30")) as door:
        calling = asyncio.ensure_future(door.call("echo"))
        await until(lambda: bool(below_this() - before))
        await door.pool.aclose()
        with pytest.raises(ServerUnavailable):
            await calling
    assert_gone(below_this(), PATIENCE)


# ---------------------------------------------------------------- lists


async def test_a_storm_of_new_lists_is_one_new_list(tmp_path: Path):
    names = tmp_path / "names"
    async with door_to(fake_spec(f"list={names}")) as door:
        await door.call("echo")
        names.write_text("fresh")
        with effort() as spent:
            await door.call("storm", count=2000)
        assert spent.loops < 400
        await until(lambda: any(tool["name"] == "fresh" for tool in door.lists[-1].tools))
        assert len(door.lists) <= 3


async def test_only_allowed_variables_and_those_of_its_settings_reach_a_server(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    async with door_to(fake_spec(env={"OWN": "given"})) as door:
        names = await door.call("environ")
        assert "OWN" in names
        assert "PATH" in names
        assert "AWS_SECRET_ACCESS_KEY" not in names


# ---------------------------------------------------------------- moments


async def test_a_call_that_comes_at_the_moment_its_server_would_be_let_go_keeps_it():
    async with door_to(fake_spec()) as door:
        await door.call("echo")
        (connection,) = door.pool._all()  # pyright: ignore[reportPrivateUsage] - its time must be over
        connection.last_used -= 10_000
        calling = asyncio.ensure_future(door.call("sleep", seconds=0.1))
        door.pool.reap_idle()
        assert await calling == "slept"


async def test_a_new_list_that_is_announced_while_the_server_is_listed_is_read():
    async with door_to(fake_spec("late")) as door:
        await door.call("echo")
        await until(lambda: any(tool["name"] == "late" for tool in door.lists[-1].tools))


async def test_other_limits_of_a_server_count_from_the_next_call_on():
    async with door_to(fake_spec("delay=0.6", start_seconds=0.2)) as door:
        assert "within 0.2 s" in (await failure_of(door, "echo")).why
        patient = Door(fake_spec("delay=0.6", start_seconds=20), door.pool)
        assert await patient.call("echo", text="here") == "here"


async def test_a_pool_that_is_closed_while_a_server_starts_has_ended_it_when_it_returns():
    before = below_this()  # what another test has left may end a little later
    async with door_to(fake_spec("mute", "junk=1")) as door:
        starting = asyncio.ensure_future(door.call("echo"))
        await until(lambda: bool(door.pool.states()) and "Welcome" in door.state["noise"])
        await door.pool.aclose()
        assert not below_this() - before
        with pytest.raises(ServerUnavailable, match="ending"):
            await starting

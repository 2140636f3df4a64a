"""Programs begin background runs, ask how they are, and cancel them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from background.run_desk import LONG_SECONDS, ME, Desk, desk
from ot.execution.caller import Caller
from ot.runtime.reply import Reply
from run_app import error_of, running_app

pytestmark = pytest.mark.anyio


async def asked(one: Desk, program: str, caller: Caller | None = None) -> Any:
    """Return the value of *program*."""
    reply = await one.workspace.run(program, caller)
    assert not reply.is_error, reply.texts
    return reply.value


async def begun(one: Desk, command: str, name: str = "") -> str:
    state = await asked(one, f"ot.background(command={command!r}, name={name!r})")
    assert ("waiting", name) == (state["state"], state["name"])
    return state["id"]


async def came(one: Desk) -> None:
    async with asyncio.timeout(LONG_SECONDS):
        await one.counter.came.wait()
    one.counter.came.clear()


async def test_a_program_begins_a_run_and_reads_what_it_came_to(tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        id = await begun(one, "return counter.add(n=21)", "the answer")
        state = await asked(one, f"ot.run_state(id={id!r}, wait=20)")
        assert ("done", ["42"], 1, "the answer") == tuple(state[key] for key in ("state", "texts", "starts", "name"))
        assert [{"id": id, "name": "the answer", "state": "done", "created": state["created"]}] == await asked(
            one, "ot.run_state()"
        )


async def test_a_long_result_is_stored_as_that_of_any_run(tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        id = await begun(one, "return [f'row {n}' for n in range(20_000)]")
        state = await asked(one, f"ot.run_state(id={id!r}, wait=20)")
        assert "row 19999" == await asked(one, f"ot.result(handle={state['handle']!r}, path='[19999]')")


async def test_a_run_has_its_own_time_and_not_that_of_the_one_that_began_it(tmp_path: Path) -> None:
    async with desk(tmp_path, config={"limits": {"run_seconds": 600}, "background": {"run_seconds": 0.3}}) as one:
        id = await begun(one, "counter.look()")
        end = (await one.until(id, "failed")).end
        assert end is not None
        assert "(background.run_seconds)" in end.texts[-1]


async def test_a_run_goes_on_when_the_client_of_the_one_that_began_it_gives_up(tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        command = "ot.background(command='counter.look(n=1)\\nreturn 1')\ncounter.look(n=2)"
        giving_up = asyncio.ensure_future(one.workspace.run(command))
        async with asyncio.timeout(LONG_SECONDS):
            while [1, 2] != sorted(one.counter.looked):
                await came(one)
        giving_up.cancel()
        await asyncio.wait((giving_up,))
        (status,) = await one.book.runs(ME)
        one.counter.gate.set()
        await one.until(status.run.id, "done")


async def test_a_plain_run_reads_nothing_of_background_runs(tmp_path: Path) -> None:
    program = f"""
        import asyncio, sys
        from onetool_run import OneTool

        async def main():
            async with OneTool(cwd={str(tmp_path)!r}, config_dir={str(tmp_path / "user")!r}, engine="portable") as tool:
                assert (await tool.run("ot.version()")).value
            found = [name for name in sys.modules if name.startswith(("ot.background", "psycopg", "redis"))]
            assert not found, found

        asyncio.run(main())
    """
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", dedent(program))
    async with asyncio.timeout(2 * LONG_SECONDS):
        assert 0 == await process.wait()
    assert not (tmp_path / "user" / "ledger").exists()


async def test_a_command_that_cannot_be_read_is_refused_at_once(tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        reply = await one.workspace.run("ot.background(command='return (')")
        assert "no run was begun: SyntaxError" in error_of(reply)
        assert [] == await asked(one, "ot.run_state()")


@pytest.mark.parametrize("call", ["ot.run_state(id='nope')", "ot.cancel(id='nope')"])
async def test_an_unknown_run_says_what_to_do(call: str, tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        assert "no run 'nope' of yours is known: ot.run_state() lists" in error_of(await one.workspace.run(call))


async def test_the_run_of_another_principal_is_unknown(tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        id = await begun(one, "return 1")
        for call in (f"ot.run_state(id={id!r})", f"ot.cancel(id={id!r})"):
            assert "no run" in error_of(await one.workspace.run(call, Caller("somebody else")))
        assert [] == (await one.workspace.run("ot.run_state()", Caller("somebody else"))).value


async def test_a_run_of_another_directory_is_unknown_to_programs(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("a", "b")]
    for place in places:
        place.mkdir()
        (place / "user").symlink_to(tmp_path / "user")
    (tmp_path / "user").mkdir()
    async with desk(places[0]) as here, desk(places[1]) as there, desk(places[1]) as beside:
        (places[1] / "work" / "victim.txt").write_text("only for b")
        done = await begun(there, "return open('victim.txt').read()", "b-job")
        assert ["only for b"] == (await asked(beside, f"ot.run_state(id={done!r}, wait=20)"))["texts"]
        waits = await begun(there, "counter.look()\nreturn 1")
        await came(there)
        mine = await begun(here, "return 1")
        assert [mine] == [state["id"] for state in await asked(here, "ot.run_state()")]
        for id in (done, waits):
            for call in (f"ot.run_state(id={id!r})", f"ot.cancel(id={id!r})"):
                assert f"no run '{id}' of yours is known" in error_of(await here.workspace.run(call))
        there.counter.gate.set()
        await there.until(waits, "done")
        assert {done, waits, mine} == {status.run.id for status in await here.book.runs(ME)}


async def test_what_a_run_of_another_directory_did_is_unknown_to_programs(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("a", "b")]
    for place in places:
        place.mkdir()
        (place / "user").symlink_to(tmp_path / "user")
    (tmp_path / "user").mkdir()
    async with desk(places[0]) as here, desk(places[1]) as there:
        run = (await there.workspace.run("counter.add(n=1)")).meta["run"]
        stopped = asyncio.ensure_future(there.workspace.run("counter.add_slowly(n=2)"))
        await came(there)
        stopped.cancel()
        await asyncio.wait((stopped,))
        for call in ("ot.effects()", f"ot.effects(run={run!r})"):
            assert [] == await asked(here, call)
            assert 1 == len(await asked(there, call))
        assert 1 == len(await here.book.of_run(ME, run))
        assert 1 == len(await here.book.unknown(ME))


async def test_a_directory_that_is_reached_by_a_link_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    async with desk(tmp_path / "real") as one, desk(tmp_path / "link") as other:
        assert one.workspace.paths.cwd != other.workspace.paths.cwd
        id = await begun(one, "return 1")
        assert "done" == (await asked(other, f"ot.run_state(id={id!r}, wait=20)"))["state"]


async def test_as_many_run_at_once_as_the_settings_say_and_the_others_wait(tmp_path: Path) -> None:
    async with desk(tmp_path, config={"background": {"at_once": 1}}) as one:
        first, second = await begun(one, "counter.look(n=1)"), await begun(one, "counter.look(n=2)")
        await came(one)
        assert ("running", "waiting") == ((await one.status(first)).state, (await one.status(second)).state)
        assert "cancelled" == (await asked(one, f"ot.cancel(id={second!r})"))["state"]
        third = await begun(one, "counter.look(n=3)")
        one.counter.gate.set()
        await one.until(third, "done")
        assert [1, 3] == one.counter.looked


async def test_a_run_under_way_is_cancelled(tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        id = await begun(one, "counter.look()\ncounter.add(n=1)")
        await came(one)
        assert await asked(one, f"ot.cancel(id={id!r})['cancelled']")
        state = await asked(one, f"ot.run_state(id={id!r}, wait=20)")
        assert "cancelled" == state["state"]
        assert "- no call that changes something was sent" in state["texts"]


async def test_runs_that_runs_begin_count_against_the_most_that_may_be_open(tmp_path: Path) -> None:
    inner = "ot.background(command='counter.look()')"
    async with desk(tmp_path, config={"background": {"most_open": 2}}) as one:
        id = await begun(one, f"{inner}\n{inner}")
        state = await asked(one, f"ot.run_state(id={id!r}, wait=20)")
        assert "failed" == state["state"]
        assert any("background.most_open" in text for text in state["texts"])


async def test_a_run_that_began_another_is_not_started_again(tmp_path: Path) -> None:
    async with desk(tmp_path) as one, desk(tmp_path) as other:
        id = await one.add("ot.background(command='return 1')\ncounter.look()")
        one.begin(id)
        await came(one)
        (inner,) = [status.run.id for status in await one.book.runs(ME) if status.run.id != id]
        await one.until(inner, "done")
        await one.die()
        end = await other.begin(id)
        assert end is not None
        assert ("stopped", True) == (end.state, any("done: ot.background" in text for text in end.texts))


async def test_where_nothing_goes_on_a_run_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        reply: Reply = await app.run("ot.background(command='return 1')")
        assert "this process ends with what it was started for" in error_of(reply)
        assert [] == (await app.run("ot.run_state()")).value


async def test_runs_that_end_with_their_server_are_reported_to_the_next(tmp_path: Path) -> None:
    async with desk(tmp_path, config={"background": {"at_once": 1}}) as one:
        begun_one = await begun(one, "counter.add(n=5)\ncounter.look()\ncounter.add(n=6)")
        waiting = await begun(one, "counter.add(n=7)")
        await came(one)
    async with desk(tmp_path, one.counter) as next_one:
        state = await asked(next_one, f"ot.run_state(id={begun_one!r})")
        assert "stopped" == state["state"]
        report = await asked(next_one, f"ot.result(handle={state['handle']!r}, path='.')")
        assert [10] == [call["value"] for call in report["done"]]
        assert "stopped" == (await asked(next_one, f"ot.run_state(id={waiting!r})"))["state"]
    assert [5] == one.counter.added


async def test_what_a_dead_server_left_behind_is_stopped_by_one_of_the_same_directory_alone(tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        ids = [await one.add("counter.add(n=1)", directory=str(place)) for place in (tmp_path / "work", "/elsewhere")]
        await one.die()
    async with desk(tmp_path, one.counter) as next_one:
        states = await asked(next_one, "ot.run_state()")
        assert [(ids[0], "stopped")] == [(state["id"], state["state"]) for state in states]
        assert "waiting" == (await next_one.status(ids[1])).state
        state = await asked(next_one, f"ot.run_state(id={ids[0]!r})")
        assert "The run was not brought to its end: the server that carried it out has ended." == state["texts"][0]
    assert [] == one.counter.added


async def test_a_run_of_this_process_is_not_taken_for_one_left_behind_when_the_machine_slept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk(tmp_path) as one:
        id = await begun(one, "counter.look()\nreturn 1")
        await came(one)
        monkeypatch.setattr("ot.ledger.ledger_file.LEASE_SECONDS", 0.0)
        assert "running" == (await asked(one, f"ot.run_state(id={id!r})"))["state"]
        one.counter.gate.set()
        await one.until(id, "done")


async def test_a_run_that_a_living_server_has_waiting_is_left_alone(tmp_path: Path) -> None:
    async with desk(tmp_path) as one, desk(tmp_path) as other:
        id = await one.add("counter.add(n=1)", directory=str(tmp_path / "work"))
        await asked(other, "ot.run_state()")
        assert "waiting" == (await one.status(id)).state

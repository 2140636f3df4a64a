"""Background runs come to their end once, or stop with a report, whatever happens to whoever carries them out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent

import pytest
from fastmcp.exceptions import ToolError

from background.run_desk import BEAT_SECONDS, LONG_SECONDS, ME, Counter, Desk, desk
from ot.background.carrying_out import RunCarrier
from ot.ledger.background_run import RunEnd
from ot.workspace import Workspace

pytestmark = pytest.mark.anyio
ENGINES = pytest.mark.parametrize("engine", ["exact", "portable"])


async def ended(running: asyncio.Task[RunEnd | None]) -> RunEnd:
    async with asyncio.timeout(LONG_SECONDS):
        end = await running
    assert end is not None
    return end


async def came(counter: Counter) -> None:
    async with asyncio.timeout(LONG_SECONDS):
        await counter.came.wait()
    counter.came.clear()


async def report_of(desk: Desk, end: RunEnd) -> dict[str, object]:
    """Return the stored report, as the next program reads it."""
    reply = await desk.workspace.run(f"ot.result(handle={end.handle!r}, path='.')")
    assert not reply.is_error, reply.texts
    return reply.value


@ENGINES
async def test_a_run_comes_to_its_end_and_leaves_what_it_returned(engine: str, tmp_path: Path) -> None:
    async with desk(tmp_path, engine=engine) as one:
        id = await one.add("return [counter.add(n=n) for n in range(3)]")
        end = await ended(one.begin(id))
        assert ("done", ("[0,2,4]",)) == (end.state, tuple(end.texts))
        assert [0, 1, 2] == one.counter.added
        assert end == (await one.status(id)).end


async def test_a_failure_of_the_program_is_its_end(tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        end = await ended(one.begin(await one.add("counter.add(n=1)\n1 / 0")))
        assert ("failed", "ProgramFailed") == (end.state, end.error)
        assert "ZeroDivisionError" in end.texts[-1]


async def test_a_run_that_only_read_is_started_again(tmp_path: Path) -> None:
    counter = Counter()
    async with desk(tmp_path, counter) as one, desk(tmp_path, counter) as other:
        id = await one.add("counter.look()\nreturn counter.add(n=4)")
        one.begin(id)
        await came(counter)
        await one.die()
        counter.gate.set()
        end = await ended(other.begin(id))
        assert ("done", ("8",)) == (end.state, tuple(end.texts))
        assert [4] == counter.added
        assert 2 == (await other.status(id)).starts


async def test_a_run_that_sent_something_is_stopped_and_says_how_far_it_came(tmp_path: Path) -> None:
    counter = Counter()
    command = "counter.add(n=1)\ncounter.add(n=2)\ncounter.add_slowly(n=3)\nfor n in range(4):\n    counter.add(n=n)"
    async with desk(tmp_path, counter) as one, desk(tmp_path, counter) as other:
        id = await one.add(command)
        one.begin(id)
        await came(counter)
        await one.die()
        end = await ended(other.begin(id))
        report = await report_of(other, end)
    assert "stopped" == end.state
    assert [1, 2, 3] == counter.added  # and nothing again
    assert [2, 4] == [call["value"] for call in report["done"]]  # type: ignore[index]
    assert ["counter.add_slowly"] == [call["tool"] for call in report["unknown"]]  # type: ignore[index]
    assert [{"tool": "counter.add", "line": 5, "most": 4}] == report["not_started"]
    told = "\n".join(end.texts)
    assert "unknown: counter.add_slowly" in told
    assert "not started: counter.add, line 5, at most 4 calls" in told


async def test_a_run_whose_workspace_cannot_be_opened_again_still_says_how_far_it_came(tmp_path: Path) -> None:
    @asynccontextmanager
    async def closed(_: str) -> AsyncGenerator[Workspace]:
        raise ToolError("your workspace could not be opened")
        yield

    counter = Counter()
    async with desk(tmp_path, counter) as one, desk(tmp_path, counter) as other:
        id = await one.add("counter.add(n=1)\ncounter.add_slowly(n=3)")
        one.begin(id)
        await came(counter)
        await one.die()
        other.carrier = RunCarrier(other.book, closed, beat_seconds=BEAT_SECONDS)
        end = await ended(other.begin(id))
    assert ("stopped", "ToolError") == (end.state, end.error)
    assert "your workspace could not be opened" in end.texts[0]
    assert "- done: counter.add, line 1" in end.texts
    assert any(text.startswith("- unknown: counter.add_slowly, line 2") for text in end.texts)


@ENGINES
async def test_b2_a_frozen_start_is_fenced_at_its_next_write_and_ends_nothing(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = Counter()
    program = """
        counter.add(n=1)
        counter.look()
        try:
            counter.add(n=2)
        except BaseException:
            counter.look(n=2)
        finally:
            counter.add(n=3)
        return "it went on"
    """
    async with desk(tmp_path, counter, engine=engine, beat_seconds=3600) as frozen, desk(tmp_path, counter) as other:
        id = await frozen.add(dedent(program))
        first = frozen.begin(id)
        await came(counter)
        monkeypatch.setattr("ot.ledger.ledger_file.LEASE_SECONDS", 0.0)  # it was silent for longer
        end = await ended(other.begin(id))
        assert "stopped" == end.state
        frozen.carrier._beat_seconds = 0.01  # pyright: ignore[reportPrivateUsage] - it is thawed
        counter.gate.set()
        assert end == await ended(first)
        assert ([1], [0]) == (counter.added, counter.looked)  # the program could not even catch it
        assert end == (await other.status(id)).end


async def test_b2_a_frozen_start_is_fenced_at_its_next_beat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = Counter()
    async with desk(tmp_path, counter) as frozen, desk(tmp_path, counter) as other:
        id = await frozen.add("counter.add(n=1)\ncounter.look()\ncounter.add(n=2)")
        first = frozen.begin(id)
        await came(counter)
        monkeypatch.setattr("ot.ledger.ledger_file.LEASE_SECONDS", 0.0)
        end = await ended(other.begin(id))
        assert end == await ended(first)  # though nobody has opened the gate
        assert ("stopped", [1]) == (end.state, counter.added)


async def test_b3_of_two_that_are_handed_a_run_at_once_one_goes_on_and_both_learn_its_end(tmp_path: Path) -> None:
    counter = Counter()
    async with desk(tmp_path, counter) as one, desk(tmp_path, counter) as other:
        id = await one.add("counter.look()\nreturn counter.add(n=1)")
        tasks = [one.begin(id), other.begin(id), asyncio.ensure_future(one.carrier.carry_out(id))]
        await came(counter)
        counter.gate.set()
        ends = [await ended(task) for task in tasks]
        assert ["done"] * 3 == [end.state for end in ends]
        assert [1] == counter.added
        assert 1 == (await one.status(id)).starts


async def test_b4_a_run_that_kills_whoever_carries_it_out_is_stopped_after_three_starts(tmp_path: Path) -> None:
    counter = Counter()
    first = desk(tmp_path, counter)
    async with first as one:
        id = await one.add("counter.look()\ncounter.add(n=1)")
        one.begin(id)
        await came(counter)
        await one.die()
    for _ in range(2):
        async with desk(tmp_path, counter) as next_one:
            next_one.begin(id)
            await came(counter)
            await next_one.die()
    async with desk(tmp_path, counter) as last:
        end = await ended(last.begin(id))
        assert "stopped" == end.state
        assert "started 3 times" in end.texts[0]
        assert [{"tool": "counter.add", "line": 2, "most": 1}] == (await report_of(last, end))["not_started"]
    assert [0, 0, 0] == counter.looked
    assert [] == counter.added


PACK = '''
# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Prices."""


def price(*, n: int) -> int:
    """Return a price."""
    return n * {factor}
'''


def write_pack(directory: Path, factor: int) -> None:
    folder = directory / "user" / "tools" / "shop"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shop_tools.py").write_text(PACK.format(factor=factor), encoding="utf-8")


@pytest.mark.parametrize("changes", [True, False])
async def test_b8_a_run_whose_pack_changed_between_starts_is_stopped(changes: bool, tmp_path: Path) -> None:
    counter = Counter()
    write_pack(tmp_path, 2)
    async with desk(tmp_path, counter) as one:
        id = await one.add("counter.look()\nif False:\n    shop.price(n=1)\nreturn counter.add(n=1)")
        one.begin(id)
        await came(counter)
        await one.die()
    if changes:
        write_pack(tmp_path, 3)
    counter.gate.set()
    async with desk(tmp_path, counter) as other:
        end = await ended(other.begin(id))
    assert ("stopped" if changes else "done") == end.state
    assert ([] if changes else [1]) == counter.added
    assert changes == ("not those of its first start: shop" in end.texts[0])


async def test_a_cancelled_run_ends_and_says_what_is_unknown(tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        id = await one.add("counter.add(n=1)\ncounter.add_slowly(n=2)\ncounter.add(n=3)")
        running = one.begin(id)
        await came(one.counter)
        await one.book.cancel(ME, id)
        end = await ended(running)
        report = await report_of(one, end)
    assert "cancelled" == end.state
    assert [1, 2] == one.counter.added
    assert (1, 1, 1) == tuple(len(report[part]) for part in ("done", "unknown", "not_started"))  # type: ignore[arg-type]


async def test_a_run_that_outlives_its_time_says_which_setting_gives_it_more(tmp_path: Path) -> None:
    config = {"background": {"run_seconds": 0.3}}
    async with desk(tmp_path, config=config) as one:
        end = await ended(one.begin(await one.add("counter.look()")))
        assert "failed" == end.state
        assert "0.3 s (background.run_seconds)" in end.texts[-1]


async def test_the_time_of_a_run_in_the_foreground_does_not_end_it(tmp_path: Path) -> None:
    async with desk(tmp_path, config={"limits": {"run_seconds": 0.2}}) as one:
        running = one.begin(await one.add("import asyncio\nawait asyncio.sleep(0.4)\nreturn 1"))
        assert "done" == (await ended(running)).state
        assert (await one.workspace.run("import asyncio\nawait asyncio.sleep(0.4)\nreturn 1")).is_error


async def test_an_unknown_run_has_no_end(tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        assert await one.carrier.carry_out("nobody's") is None

"""Who watches sees what runs do, and can end them; a run that nobody watches takes the same way as ever."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ot.runtime import run_feed
from ot.runtime.run_feed import RunWatcher
from ot.workspace import Workspace
from pace import PATIENCE
from run_app import error_of, running_app, value_of

pytestmark = pytest.mark.anyio


@dataclass
class Gate:
    """A pack whose one call waits until it is let go."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, name: str = "") -> str:
        """Wait."""
        self.reached.set()
        await self.opened.wait()
        return f"let go: {name}"


@asynccontextmanager
async def app_with(directory: Path, gate: Gate, **config: Any) -> AsyncGenerator[Workspace]:
    async with running_app(directory, config=config, functions={"gate": {"wait": gate.wait}}) as app:
        yield app


async def news(watcher: RunWatcher, last: str) -> list[dict[str, Any]]:
    """Return what a watcher is told, up to an event called *last*."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE):
        while not any(event["event"] == last for event in found):
            found += map(json.loads, (await watcher.take()).splitlines())
    return found


def named(events: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the one event called *name*."""
    (event,) = [event for event in events if event["event"] == name]
    return event


async def test_a_watcher_is_told_of_the_program_its_calls_and_its_end(tmp_path: Path) -> None:
    gate = Gate()
    gate.opened.set()
    async with app_with(tmp_path, gate) as app:
        watcher = app.host.feed.watch()
        reply = await app.run("x = 1\ngate.wait(name='milk')")
        events = await news(watcher, "ended")
    assert [event["event"] for event in events] == ["run", "call", "returned", "ended"]
    run, call, returned, ended = events
    assert {event["run"] for event in events} == {reply.run}
    assert (run["program"], run["directory"]) == ("x = 1\ngate.wait(name='milk')", str(app.paths.cwd))
    assert (call["tool"], call["arguments"], call["line"]) == ("gate.wait", "name='milk'", 2)
    assert (call["calls"], call["most_calls"] > 1, call["seconds_left"] > 0) == (1, True, True)
    assert (returned["call"], returned["result"], returned["error"]) == (call["call"], "'let go: milk'", "")
    assert (ended["error"], ended["calls"], ended["result"]) == ("", 1, "let go: milk")


async def test_who_comes_late_sees_the_run_that_goes_on_and_the_end_of_its_call(tmp_path: Path) -> None:
    gate = Gate()
    async with app_with(tmp_path, gate) as app:
        running = asyncio.ensure_future(app.run("gate.wait(name='late')"))
        await gate.reached.wait()
        watcher = app.host.feed.watch()
        gate.opened.set()
        await running
        events = await news(watcher, "ended")
        assert [event["event"] for event in events] == ["run", "call", "returned", "ended"]
        assert (events[1]["arguments"], events[1]["line"]) == ("name='late'", 1)
        assert events[1]["call"] == events[2]["call"]
        # Who comes again is told everything once.
        app.host.feed.leave(watcher)
        again = app.host.feed.watch()
        await app.run("gate.wait()")
        assert len(await news(again, "ended")) == 4


async def test_a_call_that_is_cancelled_fails_and_the_program_goes_on(tmp_path: Path) -> None:
    gate = Gate()
    async with app_with(tmp_path, gate) as app:
        program = "try:\n    gate.wait()\nexcept Exception as error:\n    text = str(error)\ntext"
        running = asyncio.ensure_future(app.run(program))
        await gate.reached.wait()
        (id,) = app.host.feed.open
        assert "" == app.host.feed.cancel(id, 1)
        reply = await running
        assert (reply.is_error, "the user cancelled this call" in reply.texts[0]) == (False, True)
        assert app.host.feed.cancel(id, 1) == app.host.feed.cancel(id) == run_feed.ENDED


async def test_a_run_that_is_cancelled_is_answered(tmp_path: Path) -> None:
    gate = Gate()
    async with app_with(tmp_path, gate) as app:
        running = asyncio.ensure_future(
            app.run("while True:\n    try:\n        gate.wait()\n    except Exception:\n        pass")
        )
        await gate.reached.wait()
        watcher = app.host.feed.watch()
        (id,) = app.host.feed.open
        assert "" == app.host.feed.cancel(id)
        reply = await running
        assert (reply.error, "the user cancelled the run" in error_of(reply)) == ("RunCancelled", True)
        assert named(await news(watcher, "ended"), "ended")["error"] == "RunCancelled"
        assert not running.cancelled()
        assert value_of(await app.run("1 + 1")) == "2"


@pytest.mark.parametrize("call", [None, 1])
async def test_who_cancels_a_run_beside_its_client_does_not_keep_it(tmp_path: Path, call: int | None) -> None:
    gate = Gate()
    async with app_with(tmp_path, gate) as app:
        running = asyncio.ensure_future(app.run("try:\n    gate.wait()\nexcept Exception:\n    pass"))
        await gate.reached.wait()
        (id,) = app.host.feed.open
        assert "" == app.host.feed.cancel(id, call)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_secrets_are_taken_out_of_everything(tmp_path: Path) -> None:
    gate = Gate()
    gate.opened.set()
    async with app_with(tmp_path, gate) as app:
        (tmp_path / "user" / "secrets.yaml").write_text("TOKEN: open-sesame-1234\n")
        (tmp_path / "user" / "secrets.yaml").chmod(0o600)
        await app.reload()
        watcher = app.host.feed.watch()
        await app.run("print('open-sesame-1234')\ngate.wait(name='open-sesame-1234')")
        said = b""
        async with asyncio.timeout(PATIENCE):
            while b'"ended"' not in said:
                said += await watcher.take()
    assert (b"open-sesame-1234" in said, said.count(b"[secret:TOKEN]") >= 4) == (False, True)


async def test_a_watcher_that_does_not_read_holds_nothing_up_and_is_told_what_it_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_feed, "MOST_BYTES", 2000)
    async with app_with(tmp_path, Gate()) as app:
        watcher = app.host.feed.watch()
        for _ in range(20):
            await app.run("1 + 1")
        events = await news(watcher, "lost")
    lost = named(events, "lost")
    assert lost["count"] + len(events) - 1 == 40
    assert lost["open"] == []


async def test_a_text_that_has_no_utf_8_is_told_all_the_same(tmp_path: Path) -> None:
    async with app_with(tmp_path, Gate()) as app:
        watcher = app.host.feed.watch()
        watcher.tell("printed", text="\ud800")
        assert named(await news(watcher, "printed"), "printed")["text"] == "\ud800"


WAY = ("Workspace.", "Runner.", "RunTrail.", "PackProxy.", "ToolExecutor.", "RunBudget.", "RunFeed.", "RunWatcher.")
"""Whose functions are the way of a run and of its calls; an engine makes other children ready meanwhile."""


async def counted_run(app: Workspace, program: str) -> Counter[str]:
    """Return how often each function on the way of a run is called while *program* runs."""
    found: Counter[str] = Counter()

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_qualname.startswith(WAY):
            # A coroutine is entered as often as it waits, which depends on the engine's processes.
            found[frame.f_code.co_qualname] += not frame.f_code.co_flags & inspect.CO_COROUTINE

    sys.setprofile(note)
    try:
        reply = await app.run(program)
    finally:
        sys.setprofile(None)
    assert not reply.is_error
    return found


async def test_a_run_that_nobody_watches_takes_the_same_way_as_before_anybody_did(tmp_path: Path) -> None:
    gate = Gate()
    gate.opened.set()
    async with app_with(tmp_path, gate) as app:
        await app.run("gate.wait()")  # the first loads packs
        before = await counted_run(app, "gate.wait()")
        watcher = app.host.feed.watch()
        watched = await counted_run(app, "gate.wait()")
        app.host.feed.leave(watcher)
        after = await counted_run(app, "gate.wait()")
    assert before == after
    assert not any(name.startswith(("RunFeed.", "RunWatcher.")) for name in before)
    assert any(name.startswith("RunFeed.") for name in watched)

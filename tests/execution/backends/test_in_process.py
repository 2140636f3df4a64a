"""Calls in this process: synchronous tools in threads, whatever a tool raises, packs imported at their first call."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from callers import ME
from ot.config.principal import os_user
from ot.errors import ToolBusy, ToolFailed, ToolUnavailable
from ot.execution.backends import in_process
from ot.execution.backends.in_process import InProcessBackend
from ot.execution.call_context import CallContext
from ot.execution.caller import Caller
from ot.execution.heavy_calls import HERE, HERE_WITH_HELPERS, HeavyCalls
from ot.execution.tool_context import ToolContext, current_tool_context
from ot.files.path_guard import PathGuard
from ot.registry.tool import Tool
from ot.registry.tool_loader import tools_of_functions
from pace import PATIENCE, within
from run_app import importable, write_packs

pytestmark = pytest.mark.anyio

CONTEXT = CallContext(ME, "run", 1, time.monotonic() + 3600)


class Desk:
    """A backend with live functions as tools of the pack ``t``."""

    def __init__(self, directory: Path, *functions: Callable[..., Any]) -> None:
        by_name = {function.__name__: function for function in functions}
        self.tools = {tool.name: tool for tool in tools_of_functions("t", by_name)}
        self.directory = directory
        self.backend = InProcessBackend(self.context, {f"t:{name}": function for name, function in by_name.items()})

    def context(self, pack: str, call: CallContext) -> ToolContext:
        return ToolContext(PathGuard((self.directory,)), self.directory, {"pack": pack}, caller=call.caller)

    async def call(self, name: str, **arguments: Any) -> Any:
        return await self.backend.call(self.tools[name], arguments, CONTEXT)

    @property
    def abandoned(self) -> int:
        return len(self.backend._threads.abandoned)


# ---------------------------------------------------------------- where tools run


async def test_a_synchronous_tool_runs_off_the_event_loop(tmp_path: Path) -> None:
    def where() -> int:
        return threading.get_ident()

    async def here() -> int:
        return threading.get_ident()

    desk = Desk(tmp_path, where, here)
    assert await desk.call("where") != threading.get_ident()
    assert await desk.call("here") == threading.get_ident()


async def test_a_pure_tool_is_done_on_the_event_loop_and_fails_like_any_other(tmp_path: Path) -> None:
    def where() -> tuple[int, Path]:
        return threading.get_ident(), current_tool_context().cwd

    def leave() -> None:
        raise SystemExit("no")

    desk = Desk(tmp_path, where, leave)
    desk.tools = {name: replace(tool, pure=True) for name, tool in desk.tools.items()}
    assert await desk.call("where") == (threading.get_ident(), tmp_path)
    with pytest.raises(ToolFailed, match="no") as caught:
        await desk.call("leave")
    assert caught.value.kind == "SystemExit"


async def test_the_event_loop_goes_on_while_a_synchronous_tool_blocks(tmp_path: Path) -> None:
    release = threading.Event()

    def block() -> bool:
        return release.wait(600)

    desk = Desk(tmp_path, block)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(desk.call("block"))
        await asyncio.sleep(0)
        release.set()
        with anyio.fail_after(PATIENCE):
            assert await task is True


async def test_a_tool_sees_its_context_and_nobody_else_does(tmp_path: Path) -> None:
    def settings() -> Any:
        return current_tool_context().settings["pack"]

    async def settings_async() -> Any:
        return current_tool_context().settings["pack"]

    desk = Desk(tmp_path, settings, settings_async)
    assert [await desk.call("settings"), await desk.call("settings_async")] == ["t", "t"]
    with pytest.raises(LookupError):
        current_tool_context()


async def test_parameters_of_every_kind_can_be_given(tmp_path: Path) -> None:
    def f(a: int, b: int = 2, /, c: int = 3, *, d: int = 4, **rest: int) -> list[Any]:
        return [a, b, c, d, rest]

    desk = Desk(tmp_path, f)
    assert await desk.call("f", a=1) == [1, 2, 3, 4, {}]
    assert await desk.call("f", a=1, b=5, c=6, d=7, e=8) == [1, 5, 6, 7, {"e": 8}]


# ---------------------------------------------------------------- whatever a tool raises


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


ERRORS = [
    (ValueError("x"), "ValueError", "x"),
    (KeyError("key"), "KeyError", "key"),
    (KeyError(), "KeyError", ""),
    (SystemExit(3), "SystemExit", "3"),
    (KeyboardInterrupt(), "KeyboardInterrupt", ""),
    (GeneratorExit(), "GeneratorExit", ""),
    (StopIteration(5), "StopIteration", "5"),
    (Odd(), "Odd", ""),
    (ExceptionGroup("many", [ValueError("x")]), "ExceptionGroup", "many (1 sub-exception)"),
    (MemoryError(), "MemoryError", ""),
    (RecursionError("deep"), "RecursionError", "deep"),
]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(("error", "name", "message"), ERRORS, ids=[name + message for _, name, message in ERRORS])
async def test_whatever_a_tool_raises_is_a_failure_without_its_object(
    tmp_path: Path, kind: str, error: BaseException, name: str, message: str
) -> None:
    def fail() -> None:
        raise error

    async def fail_async() -> None:
        raise error

    desk = Desk(tmp_path, fail, fail_async)
    if kind == "async" and name == "StopIteration":
        name, message = "RuntimeError", "coroutine raised StopIteration"
    with pytest.raises(ToolFailed) as caught:
        await desk.call("fail" if kind == "sync" else "fail_async")
    assert (caught.value.tool.startswith("t.fail"), caught.value.kind, caught.value.message) == (True, name, message)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


# ---------------------------------------------------------------- threads that cannot be stopped


class Stuck:
    """Synchronous calls that stay until they are let go."""

    def __init__(self) -> None:
        self.inside = threading.Semaphore(0)
        self.release = threading.Event()
        self.left = threading.Semaphore(0)

    def hang(self) -> str:
        self.inside.release()
        self.release.wait(600)
        self.left.release()
        return "late"


@pytest.fixture
def stuck() -> Generator[Stuck]:
    tool = Stuck()
    yield tool
    tool.release.set()


async def entered(stuck: Stuck) -> None:
    with anyio.fail_after(PATIENCE):
        await anyio.to_thread.run_sync(stuck.inside.acquire)


async def abandon(desk: Desk, stuck: Stuck) -> None:
    """Cancel a call that hangs, and return though it still does."""
    task = asyncio.create_task(desk.call("hang"))
    await entered(stuck)
    task.cancel()
    with within(0.5), anyio.fail_after(PATIENCE), pytest.raises(asyncio.CancelledError):
        await task


async def none_abandoned(desk: Desk) -> None:
    with anyio.fail_after(PATIENCE):
        while desk.abandoned:  # noqa: ASYNC110 - a thread tells no event that it has ended
            await asyncio.sleep(0.005)


async def test_a_cancelled_call_returns_at_once_and_its_thread_is_counted_until_it_ends(
    tmp_path: Path, stuck: Stuck
) -> None:
    desk = Desk(tmp_path, stuck.hang)
    await abandon(desk, stuck)
    assert desk.abandoned == 1
    stuck.release.set()
    await none_abandoned(desk)


async def test_too_many_abandoned_threads_refuse_further_calls_until_some_end(
    tmp_path: Path, stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    def quick() -> str:
        return "quick"

    async def light() -> str:
        return "light"

    monkeypatch.setattr(in_process, "MAX_ABANDONED", 3)
    desk = Desk(tmp_path, stuck.hang, quick, light)
    for _ in range(3):
        assert await desk.call("quick") == "quick"
        await abandon(desk, stuck)
    with pytest.raises(ToolBusy, match="3 cancelled calls have not ended yet"):
        await desk.call("quick")
    assert await desk.call("light") == "light"
    stuck.release.set()
    await none_abandoned(desk)
    assert await desk.call("quick") == "quick"


async def test_a_call_that_is_cancelled_while_it_waits_for_a_thread_never_starts(
    tmp_path: Path, stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []

    def later() -> None:
        ran.append(1)

    monkeypatch.setattr(in_process, "MAX_THREADS", 1)
    desk = Desk(tmp_path, stuck.hang, later)
    first = asyncio.create_task(desk.call("hang"))
    await entered(stuck)
    second = asyncio.create_task(desk.call("later"))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    stuck.release.set()
    with anyio.fail_after(PATIENCE):
        assert await first == "late"
    assert (ran, desk.abandoned) == ([], 0)


async def test_the_answer_of_an_abandoned_call_is_dropped(tmp_path: Path, stuck: Stuck) -> None:
    def explode() -> None:
        stuck.hang()
        raise ValueError("too late")

    explode.__name__ = "hang"
    desk = Desk(tmp_path, explode)
    await abandon(desk, stuck)
    stuck.release.set()
    await none_abandoned(desk)


# ---------------------------------------------------------------- packs that are imported

PACKS = {
    "fine": "LOADED = []\ndef f(): return 'fine'\n",
    "missing": "import no_such_module_at_all\ndef f(): ...\n",
    "exits": "import sys\nsys.exit(3)\ndef f(): ...\n",
    "fails": "1 / 0\ndef f(): ...\n",
    "interrupts": "raise KeyboardInterrupt\ndef f(): ...\n",
    "lies": "def f(): ...\ndel f\n",
}


@pytest.mark.parametrize(
    ("pack", "why"),
    [
        ("missing", "ModuleNotFoundError: No module named 'no_such_module_at_all'"),
        ("exits", "SystemExit: 3"),
        ("fails", "ZeroDivisionError: division by zero"),
        ("interrupts", "KeyboardInterrupt"),
        ("lies", "AttributeError"),
    ],
)
async def test_a_pack_that_cannot_be_imported_says_why_and_others_work(tmp_path: Path, pack: str, why: str) -> None:
    packs = {found.name: found for found in write_packs(tmp_path, PACKS).packs()}
    backend = Desk(tmp_path).backend
    with importable(tmp_path):
        for _ in range(2):
            with pytest.raises(ToolUnavailable, match=why):
                await backend.call(packs[pack].tools["f"], {}, CONTEXT)
        assert await backend.call(packs["fine"].tools["f"], {}, CONTEXT) == "fine"


async def test_a_pack_is_imported_at_its_first_call_and_off_the_event_loop(tmp_path: Path) -> None:
    source = "import threading\nWHERE = threading.get_ident()\ndef f(): return WHERE\n"
    (pack,) = write_packs(tmp_path, {"lazy": source}).packs()
    backend, tool = Desk(tmp_path).backend, pack.tools["f"]
    with importable(tmp_path):
        module = tool.target.partition(":")[0]
        assert module not in sys.modules
        assert await backend.call(tool, {}, CONTEXT) != threading.get_ident()
        assert module in sys.modules


async def test_calls_at_the_same_time_import_a_pack_once(tmp_path: Path) -> None:
    source = "import time\nCOUNT = []\nCOUNT.append(1)\ntime.sleep(0.05)\ndef f(): return len(COUNT)\n"
    (pack,) = write_packs(tmp_path, {"slow": source}).packs()
    backend = Desk(tmp_path).backend
    with importable(tmp_path):
        found = await asyncio.gather(*(backend.call(pack.tools["f"], {}, CONTEXT) for _ in range(8)))
    assert found == [1] * 8


# ---------------------------------------------------------------- what takes long


HEAVY = '''
    """A pack with heavy tools."""

    pack = "heavy"
    __all__ = ["walk", "light", "change"]
    __ot_heavy__ = ["walk"]
    __ot_planned__ = {"change": "plan_change"}

    from ot.execution.tool_context import current_tool_context


    def walk(*, cost: int) -> str:
        """Do some of it here."""
        current_tool_context().allowance.spend(cost)
        return "here"


    def change(*, cost: int) -> str:
        """Do what was planned, here or away."""
        return f"changed as planned {current_tool_context().plan or plan_change(cost=cost)}"


    def plan_change(*, cost: int, into: str = "") -> str:
        """Find out what to change."""
        return walk(cost=cost)


    def light() -> bool:
        """Tell whether it may do what it likes."""
        return current_tool_context().allowance is None
'''


class Helpers:
    """Hands calls over to nobody, and keeps them waiting when asked to."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.free, self.asked = asyncio.Event(), asyncio.Event()
        self.free.set()

    async def hand_over(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> str:
        self.calls.append(arguments)
        self.asked.set()
        await self.free.wait()
        return "away"


@pytest.fixture
def heavy(tmp_path: Path) -> Generator[tuple[Callable[..., Any], Helpers]]:
    packs = write_packs(tmp_path, {"heavy": HEAVY})
    tools = {tool.name: tool for pack in packs.packs() for tool in pack.tools.values()}
    helpers, places = Helpers(), HeavyCalls()
    context = Desk(tmp_path).context
    backend = InProcessBackend(context, None, lambda: places, helpers.hand_over)

    async def call(name: str, who: str = "bob", **arguments: Any) -> Any:
        caller = Caller(os_user(), connection=who)
        return await backend.call(tools[name], arguments, replace(CONTEXT, caller=caller))

    with importable(tmp_path):
        yield call, helpers


async def test_a_heavy_tool_is_done_here_within_its_allowance_and_else_by_a_helper(
    heavy: tuple[Callable[..., Any], Helpers], tmp_path: Path
) -> None:
    call, helpers = heavy
    assert await call("walk", cost=HERE) == "here"
    assert helpers.calls == []
    assert await call("walk", cost=HERE + 1) == "away"
    (handed,) = helpers.calls
    assert handed["arguments"] == {"cost": HERE + 1}
    assert handed["settings"] == {"pack": "heavy"}
    assert handed["guard"]["roots"] == [[str(tmp_path), str(tmp_path)]]
    assert handed["target"].endswith("heavy:walk")


async def test_while_helpers_run_less_is_done_here(heavy: tuple[Callable[..., Any], Helpers]) -> None:
    call, _ = heavy
    await call("walk", cost=HERE + 1)
    assert await call("walk", cost=HERE_WITH_HELPERS) == "here"
    assert await call("walk", cost=HERE) == "away"


async def test_whose_calls_are_with_helpers_gets_nothing_done_here_and_others_do(
    heavy: tuple[Callable[..., Any], Helpers],
) -> None:
    call, helpers = heavy
    helpers.free.clear()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(call("walk", cost=HERE + 1))]
        await helpers.asked.wait()
        tasks.append(group.create_task(call("walk", cost=0)))
        assert await call("walk", who="ann", cost=0) == "here"
        helpers.free.set()
    assert [task.result() for task in tasks] == ["away", "away"]


async def test_what_a_tool_changes_is_found_out_here_or_by_a_helper_and_changed_here(
    heavy: tuple[Callable[..., Any], Helpers],
) -> None:
    call, helpers = heavy
    assert await call("change", cost=HERE) == "changed as planned here"
    assert helpers.calls == []
    assert await call("change", cost=HERE + 1) == "changed as planned away"
    (handed,) = helpers.calls
    assert handed["target"].endswith("heavy:plan_change")
    assert handed["guard"]["locked"] == []
    place = handed["arguments"].pop("into")
    assert not await anyio.Path(place).exists()  # nor what a helper has left there
    assert handed["arguments"] == {"cost": HERE + 1}


async def test_a_small_change_waits_for_no_turn(heavy: tuple[Callable[..., Any], Helpers]) -> None:
    call, helpers = heavy
    helpers.free.clear()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(call("change", cost=HERE + 1))
        await helpers.asked.wait()
        assert await call("change", cost=HERE_WITH_HELPERS) == "changed as planned here"
        helpers.free.set()
    assert task.result() == "changed as planned away"


async def test_a_tool_that_is_not_heavy_has_no_allowance(heavy: tuple[Callable[..., Any], Helpers]) -> None:
    call, helpers = heavy
    assert await call("light") is True
    assert helpers.calls == []

"""The door: every call is resolved, checked, timed, cancelled and told of in the same way."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import anyio
import pytest

from callers import ME
from ot.config.models import Limits
from ot.errors import (
    InvalidArguments,
    OneToolError,
    ToolBusy,
    ToolDenied,
    ToolError,
    ToolFailed,
    ToolTimeout,
    ToolUnavailable,
    UnknownPack,
    UnknownTool,
)
from ot.execution import tool_executor
from ot.execution.backends.backend import Border
from ot.execution.call_context import CallContext
from ot.execution.ledger import Effect, NoLedger
from ot.execution.policy import ToolPolicy
from ot.execution.tool_executor import ToolExecutor
from ot.log_span import LOG_FILE_ONLY, SpanMessage
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack, ToolRegistry
from ot.values.plain import plain_data
from pace import PATIENCE
from run_app import Calls
from stubs import StubBackend

pytestmark = pytest.mark.anyio

TOOLS = [
    Tool("t", "f", (Parameter("query", "keyword"), Parameter("count", "keyword", default="1"))),
    Tool("t", "quick", timeout=0.05),
    Tool("t", "free"),
    Tool("t", "away", backend="elsewhere"),
]


def door(answers: Mapping[str, Any], **options: Any) -> ToolExecutor:
    backends = {"in_process": StubBackend(answers), "elsewhere": StubBackend({"t.away": "from elsewhere"})}
    return ToolExecutor(ToolRegistry([Pack("t", "local", lambda: TOOLS)]), backends, **options)


def context(seconds: float = 60) -> CallContext:
    return CallContext(ME, "run 1", 1, time.monotonic() + seconds)


async def call(executor: ToolExecutor, name: str, seconds: float = 60, **kwargs: Any) -> Any:
    return (await executor.call("t", name, (), kwargs, context(seconds)))[0]


# ---------------------------------------------------------------- what gets through


async def test_a_call_is_resolved_bound_and_carried_out() -> None:
    backend = StubBackend({"t.f": lambda query, count=1: [query] * count})
    executor = ToolExecutor(ToolRegistry([Pack("t", "local", lambda: TOOLS)]), {"in_process": backend})
    value, chars = await executor.call("t", "f", ("a",), {"c": 2}, context())
    assert value == ["a", "a"]
    assert chars == (await plain_data(value, where="it", max_bytes=100))[1] > 0
    assert backend.calls == [("t.f", {"query": "a", "count": 2})]


@pytest.mark.scenario("004-07")
async def test_a_tool_names_the_backend_that_carries_it_out() -> None:
    assert await call(door({}), "away") == "from elsewhere"


@pytest.mark.parametrize(
    ("pack", "name", "kwargs", "error"),
    [
        ("nope", "f", {}, UnknownPack),
        ("t", "nope", {}, UnknownTool),
        ("t", "f", {}, InvalidArguments),
        ("t", "free", {}, ToolDenied),
    ],
)
async def test_what_is_wrong_before_the_call_never_reaches_a_backend(
    pack: str, name: str, kwargs: dict[str, Any], error: type[OneToolError]
) -> None:
    calls = Calls()
    backend = StubBackend({})
    executor = ToolExecutor(
        ToolRegistry([Pack("t", "local", lambda: TOOLS)]),
        {"in_process": backend},
        policy=ToolPolicy(deny=["t.free"]),
        observers=[calls],
    )
    with pytest.raises(error):
        await executor.call(pack, name, (), kwargs, context())
    assert backend.calls == []
    assert [record.error for record in calls.records] == [error.__name__]


# ---------------------------------------------------------------- what goes wrong in a call


def raising(error: BaseException) -> Callable[..., Any]:
    def function(**_: Any) -> Any:
        raise error

    return function


@pytest.mark.parametrize(
    "error",
    [
        ToolFailed("t.free", "KeyError", "x"),
        ToolUnavailable("t", "no"),
        ToolBusy("t.free", "no"),
        ToolTimeout("t.free", 1),
    ],
)
async def test_an_error_of_ours_passes_as_it_is(error: OneToolError) -> None:
    with pytest.raises(type(error)) as caught:
        await call(door({"t.free": raising(error)}), "free")
    assert caught.value is error


async def test_any_other_error_of_a_backend_is_a_failure_of_the_tool(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(ToolFailed) as caught:
        await call(door({"t.free": raising(ZeroDivisionError("by zero"))}), "free")
    assert (caught.value.tool, caught.value.kind, caught.value.message) == ("t.free", "ZeroDivisionError", "by zero")
    assert caught.value.__cause__ is None
    assert "the backend of t.free failed" in caplog.text


@pytest.mark.parametrize("error", [ToolFailed("t.free", "E", "x" * 9999), ValueError("x" * 9999)])
async def test_a_long_message_of_a_failed_tool_is_cut(error: Exception) -> None:
    with pytest.raises(ToolFailed) as caught:
        await call(door({"t.free": raising(error)}), "free")
    assert len(caught.value.message) == tool_executor.MAX_MESSAGE


# ---------------------------------------------------------------- time


class Waiting:
    """A tool that waits for ever, and knows how it ended."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.cancelled = 0
        self.ended = asyncio.Event()
        self._stubborn = stubborn

    async def __call__(self) -> str:
        self.started.set()
        try:
            while True:
                try:
                    await self.release.wait()
                    return "released"
                except asyncio.CancelledError:
                    self.cancelled += 1
                    if not self._stubborn:
                        raise
        finally:
            self.ended.set()


@pytest.mark.parametrize(
    ("name", "options", "left", "seconds"),
    [
        ("quick", {}, 60, 0.05),
        ("free", {"call_seconds": 0.05}, 60, 0.05),
        ("free", {}, 0.05, 0.05),
        ("quick", {}, 0, 0),
    ],
)
async def test_the_shortest_of_three_clocks_ends_a_call(
    name: str, options: dict[str, Any], left: float, seconds: float
) -> None:
    tool = Waiting()
    with anyio.fail_after(PATIENCE), pytest.raises(ToolTimeout) as caught:
        await call(door({f"t.{name}": tool}, **options), name, left)
    assert caught.value.seconds == pytest.approx(seconds, abs=0.05)
    assert f"t.{name} did not answer within" in str(caught.value)
    assert tool.ended.is_set() or not tool.started.is_set()


async def test_a_tool_may_have_more_time_than_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def patient() -> str:
        await asyncio.sleep(0.02)
        return "done"

    tools = [Tool("t", "free", timeout=5)]
    executor = ToolExecutor(
        ToolRegistry([Pack("t", "local", lambda: tools)]),
        {"in_process": StubBackend({"t.free": patient})},
        call_seconds=0.001,
    )
    assert await call(executor, "free") == "done"


async def test_a_backend_is_told_when_its_call_must_be_over() -> None:
    class Hearing(StubBackend):
        async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
            return context.deadline - time.monotonic()

    executor = ToolExecutor(
        ToolRegistry([Pack("t", "local", lambda: TOOLS)]), {"in_process": Hearing({})}, call_seconds=20
    )
    assert 10 < await call(executor, "free", 60) <= 20
    assert 1 < await call(executor, "free", 8) <= 8


async def test_cancelling_a_call_cancels_the_tool() -> None:
    tool, calls = Waiting(), Calls()
    task = asyncio.create_task(call(door({"t.free": tool}, observers=[calls]), "free"))
    with anyio.fail_after(PATIENCE):
        await tool.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (tool.cancelled, tool.ended.is_set()) == (1, True)
    assert [record.error for record in calls.records] == ["Cancelled"]


async def test_a_call_that_fails_in_the_moment_in_which_it_is_cancelled_is_no_fault_of_the_loop() -> None:
    faults: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, fault: faults.append(fault))
    await cancelled_as_it_fails()
    gc.collect()
    loop.set_exception_handler(None)
    assert faults == []


async def cancelled_as_it_fails() -> None:
    entered, proceed = asyncio.Event(), asyncio.Event()

    async def fail() -> None:
        entered.set()
        await proceed.wait()
        task.cancel()
        raise ValueError("too late")

    task = asyncio.create_task(call(door({"t.free": fail}), "free"))
    await entered.wait()
    proceed.set()
    await asyncio.wait([task])
    assert task.cancelled()


@pytest.mark.parametrize("how", ["cancelled", "timed out"])
async def test_a_tool_that_ignores_its_cancellation_is_left_behind(how: str, caplog: pytest.LogCaptureFixture) -> None:
    tool = Waiting(stubborn=True)
    task = asyncio.create_task(call(door({"t.free": tool}, call_seconds=0.05 if how == "timed out" else 60), "free"))
    with anyio.fail_after(PATIENCE), caplog.at_level(logging.WARNING):
        await tool.started.wait()
        if how == "cancelled":
            task.cancel()
        with pytest.raises((asyncio.CancelledError, ToolTimeout)):
            await task
    assert "t.free ignored its cancellation and was abandoned" in caplog.text
    assert (tool.cancelled, tool.ended.is_set()) == (1, False)
    tool.release.set()
    with anyio.fail_after(PATIENCE):
        await tool.ended.wait()


async def test_a_tool_that_cancels_itself_has_failed_and_the_run_goes_on() -> None:
    with pytest.raises(ToolFailed) as caught:
        await call(door({"t.free": raising(asyncio.CancelledError())}), "free")
    assert caught.value.kind == "CancelledError"


async def test_what_a_cancelled_tool_still_raises_is_dropped() -> None:
    async def angry() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("too late") from None

    with anyio.fail_after(PATIENCE), pytest.raises(ToolTimeout):
        await call(door({"t.free": angry}, call_seconds=0.02), "free")


# ---------------------------------------------------------------- who is told


async def test_observers_learn_of_every_call_but_never_its_content() -> None:
    one, two = Calls(), Calls()
    executor = door({"t.f": "secret value", "t.free": raising(KeyError("k"))}, observers=[one, two])
    await call(executor, "f", query="secret argument")
    with pytest.raises(ToolFailed):
        await call(executor, "free")
    assert one.records == two.records
    good, bad = one.records
    assert (good.tool, good.caller, good.run_id, good.error) == ("t.f", ME, "run 1", "")
    assert (bad.tool, bad.error) == ("t.free", "KeyError")
    assert good.seconds >= 0
    assert "secret" not in repr(one.records)


async def test_a_backend_that_breaks_while_it_prepares_is_told_as_a_failure() -> None:
    class Breaking(StubBackend):
        async def prepare(self, tool: Tool, context: CallContext) -> None:
            raise RuntimeError("broken")

    calls = Calls()
    registry = ToolRegistry([Pack("t", "local", lambda: TOOLS)])
    with pytest.raises(RuntimeError, match="broken"):
        await call(ToolExecutor(registry, {"in_process": Breaking({})}, observers=[calls]), "free")
    assert [(record.tool, record.error) for record in calls.records] == [("t.free", "RuntimeError")]


async def test_an_absurd_name_is_cut_before_it_is_told() -> None:
    calls = Calls()
    with pytest.raises(UnknownTool):
        await call(door({}, observers=[calls]), "x" * 10_000)
    assert len(calls.tools[0]) == 200


def logged(caplog: pytest.LogCaptureFixture, redact: Callable[[str], str] = str) -> list[dict[str, Any]]:
    messages: list[Any] = [record.msg for record in caplog.records]
    return [message.fields(redact) for message in messages if isinstance(message, SpanMessage)]


@pytest.mark.scenario("004-02", "004-13")
async def test_the_time_that_is_logged_is_the_time_that_the_call_took(caplog: pytest.LogCaptureFixture) -> None:
    spent: list[float] = []

    def works() -> None:
        began = time.monotonic()
        while time.monotonic() - began < 0.02:
            pass
        spent.append(time.monotonic() - began)

    executor = door({"t.free": works, "t.quick": 1})
    with caplog.at_level(logging.INFO):
        began = time.monotonic()
        await call(executor, "free")
        outside = time.monotonic() - began
        await call(executor, "quick")
    slow, quick = [span["duration"] for span in logged(caplog)]
    assert spent[0] <= slow + 1e-6 <= outside + 1e-6
    assert quick < slow


@pytest.mark.scenario("004-02")
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"a": [1, None]}, "{'a': [1, None]}"),
        (None, "None"),
        ("two\nlines", r"two\nlines"),
        ("x" * 10**6, "x" * 119 + "…"),
        (["x"] * 10**6, "<list of 1000000>"),
        ([10**5000], "<list of 1>"),
        (10**5000, "<a whole number of about 5,000 digits>"),
    ],
    ids=["small", "none", "lines", "long", "large", "digits", "number"],
)
async def test_a_result_is_logged_a_large_one_by_its_kind_and_size(
    value: Any, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await call(door({"t.free": value}, border=Border(Limits(value_parts=10_000_000))), "free")
    assert [span["result"] for span in logged(caplog)] == [shown]


@pytest.mark.scenario("004-02")
async def test_no_part_of_a_secret_is_logged_however_long_it_is(caplog: pytest.LogCaptureFixture) -> None:
    secret = "".join(f"k{number:03}" for number in range(100))
    with caplog.at_level(logging.INFO):
        await call(door({"t.f": lambda query, count: [".", query]}), "f", query=secret, count=1)
        await call(door({"t.f": lambda query, count: query * 50}), "f", query=secret * 50, count=1)
    short, long = logged(caplog, redact=lambda text: text.replace(secret, "***"))
    assert (short["arguments"], short["result"]) == ("query='***', count=1", "['.', '***']")
    assert "k0" not in long["result"] + long["arguments"]


@pytest.mark.scenario("004-14")
async def test_a_slow_call_is_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def slow() -> None:
        await asyncio.sleep(0.5)

    assert tool_executor.SLOW_SECONDS == 1.0
    executor = door({"t.free": slow, "t.quick": 1})
    monkeypatch.setattr(tool_executor, "SLOW_SECONDS", 0.4)
    with caplog.at_level(logging.WARNING):
        await call(executor, "quick")
        assert caplog.records == []
        await call(executor, "free")
    (record,) = caplog.records
    assert re.fullmatch(r"slow call: t\.free took \d+\.\d s", record.getMessage())
    assert LOG_FILE_ONLY.items() <= vars(record).items()


# ---------------------------------------------------------------- what is written down


def refused() -> None:
    raise ToolFailed("t.free", "ValueError", "no")


class Written(NoLedger):
    """A ledger that keeps what it is told, and how many calls the backend had got by then."""

    def __init__(self, backend: StubBackend) -> None:
        self.lines: list[tuple[str, str, int]] = []
        self._backend = backend

    async def send(self, effect: Effect, *, again: bool = False) -> None:
        self.lines.append(("sent", effect.tool.full_name, len(self._backend.calls)))

    def record_end(self, effect: Effect, how: str, value: Any = None) -> None:
        self.lines.append((how, effect.tool.full_name, len(self._backend.calls)))


@pytest.mark.parametrize(
    ("name", "answer", "how"),
    [("free", lambda: "x", "done"), ("free", refused, "failed"), ("quick", lambda: asyncio.Event().wait(), "unknown")],
)
async def test_a_call_is_written_down_before_it_is_sent_and_how_it_ended(name: str, answer: Any, how: str) -> None:
    backend = StubBackend({f"t.{name}": answer})
    ledger = Written(backend)
    executor = ToolExecutor(ToolRegistry([Pack("t", "local", lambda: TOOLS)]), {"in_process": backend}, ledger=ledger)
    with suppress(ToolError):
        await call(executor, name)
    assert ledger.lines == [("sent", f"t.{name}", 0), (how, f"t.{name}", 1)]


async def test_what_is_refused_before_the_call_is_not_written_down() -> None:
    backend = StubBackend({})
    ledger = Written(backend)
    executor = ToolExecutor(
        ToolRegistry([Pack("t", "local", lambda: TOOLS)]),
        {"in_process": backend},
        policy=ToolPolicy(deny=["t.free"]),
        ledger=ledger,
    )
    with pytest.raises(ToolDenied):
        await call(executor, "free")
    assert ledger.lines == []


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        ("key=[secret:OPENAI_KEY]", True),
        ({"a": [{"x [secret:OPENAI_KEY]": 1}]}, True),
        ((b"raw [secret:OPENAI_KEY]",), True),
        ("see [secrets] and secret: x and [Secret:", False),
    ],
)
async def test_a_call_that_may_change_something_is_not_sent_what_stands_for_a_secret(value: Any, refused: bool) -> None:
    sent = list[Any]()
    executor = door({"t.f": lambda **given: sent.append(given) or "done"})
    if refused:
        with pytest.raises(InvalidArguments, match=r"t\.f was not called: an argument holds '\[secret:'"):
            await executor.call("t", "f", (), {"query": value}, context())
    else:
        await executor.call("t", "f", (), {"query": value}, context())
    assert len(sent) == (not refused)


async def test_a_call_that_only_reads_may_speak_of_a_secret() -> None:
    executor = door({"t.f": "found"}, policy=ToolPolicy(read_only=("t.f",)))
    assert (await executor.call("t", "f", (), {"query": "[secret:OPENAI_KEY]"}, context()))[0] == "found"

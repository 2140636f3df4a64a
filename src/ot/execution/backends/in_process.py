"""Carries calls out in this process: bundled packs, imported at their first call, and the ``ot`` pack."""

from __future__ import annotations

import asyncio
import importlib
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from inspect import iscoroutinefunction
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from ot.errors import InvalidArguments, ToolBusy, ToolError, ToolFailed, ToolUnavailable
from ot.execution import tool_context
from ot.execution.arguments import invalid
from ot.execution.call_context import CallContext
from ot.execution.tool_context import ToolContext, TooMuchHere, WorkAllowance
from ot.files.run_writes import AsksFirst
from ot.registry.tool import Tool

if TYPE_CHECKING:
    from ot.execution.heavy_calls import HandOver, HeavyCalls

logger = logging.getLogger(__name__)

NOTHING = nullcontext()
MAX_THREADS = 64
MAX_ABANDONED = 32
"""Threads of cancelled calls cannot be stopped; above this many, calls are refused until some have ended."""


class InProcessBackend:
    """Calls Python functions; a synchronous one that is not marked as pure in a thread, so it cannot block the loop."""

    def __init__(
        self,
        contexts: Callable[[str, CallContext], ToolContext],
        bound: Mapping[str, Callable[..., Any]] | None = None,
        heavy: Callable[[], HeavyCalls] | None = None,
        hand_over: HandOver | None = None,
    ) -> None:
        """Run tools under ``contexts(pack, call)``; *bound* holds live functions by target, others are imported.

        Those that their module lists in ``__ot_heavy__`` change nothing, and have places of *heavy*: what takes
        long is left to *hand_over*. Of those in ``__ot_planned__`` that is the function which finds out what to
        change; they themselves change it.
        """
        self._contexts = contexts
        self._functions: dict[str, Callable[..., Any]] = dict(bound or {})
        self._heavy = heavy
        self._hand_over = hand_over
        self._away: dict[str, str] = {}
        """What helpers carry out, by the tool whose work it is."""
        self._threads: anyio.CapacityLimiter | None = None
        self._abandoned: set[_ThreadedCall] = set()

    async def prepare(self, tool: Tool, context: CallContext) -> None:
        """Import the pack of *tool*, at its first call.

        Raises:
            ToolUnavailable: It cannot be imported.
        """
        if tool.target not in self._functions:
            function, away = await anyio.to_thread.run_sync(_import_function, tool, abandon_on_cancel=True)
            if away is not None and self._hand_over:
                self._away[tool.target] = away
            self._functions[tool.target] = function

    async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the tool's value.

        Raises:
            ToolFailed: The tool raised, whatever kind of exception.
            InvalidArguments: A typed tool refuses its arguments.
            ToolBusy: Too many cancelled calls are still running.
        """
        await self.prepare(tool, context)
        work = _prepared(tool, self._functions[tool.target], arguments)
        noting = NOTHING if tool.input_schema is None else _collect_notes()
        with tool_context.use(self._contexts(tool.pack, context), asyncio.current_task()), noting as notes:
            if tool.target in self._away:
                value = await self._where_it_fits(tool, work, arguments, context)
            elif tool.pure:
                value = _done_here(tool, work)
            elif iscoroutinefunction(work.func):
                value = await _guarded(tool, work)
            else:
                value = await self._in_thread(tool, work)
        for text in notes or ():
            if context.told:
                context.told("note", tool.full_name, {"text": text})
        return value

    async def _where_it_fits(
        self, tool: Tool, work: Callable[[], Any], arguments: dict[str, Any], context: CallContext
    ) -> Any:
        assert self._heavy and self._hand_over
        around, hand_over, target = tool_context.current_tool_context(), self._hand_over, self._away[tool.target]

        async def run(**changes: Any) -> Any:
            with tool_context.use(replace(around, **changes), asyncio.current_task()):
                return await self._in_thread(tool, work)

        async def here(allowance: WorkAllowance) -> Any:
            return await run(allowance=allowance)

        async def away(guard: Mapping[str, Any] = around.guard.plain, **more: str) -> Any:
            needed = {"settings": dict(around.settings), "guard": guard}
            return await hand_over(tool, {"target": target, "arguments": {**arguments, **more}, **needed}, context)

        async def plan_away() -> Any:
            if not target:
                return await run()
            from tempfile import TemporaryDirectory  # noqa: PLC0415 - only large changes need it

            with TemporaryDirectory(prefix="onetool-plan-") as place:
                return await run(plan=await away(around.guard.plain_with_locks, into=place))

        if target == tool.target:
            return await self._heavy().call(context.caller, here, away)
        try:  # nearly all of them are small, and wait for nobody
            return await here(self._heavy().little())
        except TooMuchHere:
            return await self._heavy().call(context.caller, here, plan_away)

    async def _in_thread(self, tool: Tool, work: Callable[[], Any]) -> Any:
        if len(self._abandoned) >= MAX_ABANDONED:
            raise ToolBusy(tool.full_name, f"{len(self._abandoned)} cancelled calls have not ended yet")
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(MAX_THREADS)
        call = _ThreadedCall(tool, work, self._abandoned)
        try:
            outcome = await anyio.to_thread.run_sync(call.run, abandon_on_cancel=True, limiter=self._threads)
        except BaseException:
            call.abandon()
            raise
        if isinstance(outcome, ToolError | AsksFirst | TooMuchHere):
            raise outcome
        return outcome


class _ThreadedCall:
    """One synchronous call in a thread; given up while it runs, it is among *abandoned* until it ends."""

    def __init__(self, tool: Tool, work: Callable[[], Any], abandoned: set[_ThreadedCall]) -> None:
        self._tool = tool
        self._work = work
        self._abandoned = abandoned
        # The thread and the event loop both look at the three states and must not miss each other.
        self._lock = threading.Lock()
        self._given_up = False
        self._started = False
        self._ended = False

    def run(self) -> Any:
        """Return the value, or the failure as a value: SystemExit must not reach the thread pool."""
        with self._lock:
            if self._given_up:
                return None
            self._started = True
        try:
            return self._work()
        except TooMuchHere as error:
            return error
        except BaseException as error:  # noqa: BLE001 - other people's code runs here
            return failure(self._tool, error)
        finally:
            with self._lock:
                self._ended = True
                self._abandoned.discard(self)

    def abandon(self) -> None:
        """Drop the answer; a call that has not started never will."""
        with self._lock:
            self._given_up = True
            if self._started and not self._ended:
                self._abandoned.add(self)


def _collect_notes() -> AbstractContextManager[list[str]]:
    from mcp_core.program_function import collect_notes  # noqa: PLC0415 - typed tools alone need it

    return collect_notes()


def _prepared(tool: Tool, function: Callable[..., Any], arguments: dict[str, Any]) -> partial[Any]:
    names = [parameter.name for parameter in tool.parameters if parameter.kind == "positional"]
    placed = [arguments[name] for name in takewhile(arguments.__contains__, names)]
    named = {name: value for name, value in arguments.items() if name not in names[: len(placed)]}
    return partial(function, *placed, **named)


def _done_here(tool: Tool, work: Callable[[], Any]) -> Any:
    try:
        return work()
    except BaseException as error:  # noqa: BLE001 - other people's code runs here
        raise failure(tool, error) from None


async def _guarded(tool: Tool, work: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await work()
    except asyncio.CancelledError as error:
        # A tool may raise it though nobody cancelled the call: passed on, the run would end without a reply.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise failure(tool, error) from None
    except BaseException as error:  # noqa: BLE001 - other people's code runs here
        raise failure(tool, error) from None


def failure(tool: Tool, error: BaseException) -> ToolFailed | InvalidArguments | AsksFirst:
    """Return the error as name and text, without its object, cause, context or frames.

    What the user has to agree to is for the door to ask.
    """
    if isinstance(error, AsksFirst):
        return AsksFirst(error.places)
    if tool.input_schema is not None and getattr(error, "refuses_arguments", False) is True:
        return invalid(tool, str(error))
    try:
        # A KeyError's text is its key in quotes, and the program's own would put it in quotes again.
        message = str(error.args[0]) if type(error) is KeyError and len(error.args) == 1 else str(error)
    except Exception:  # noqa: BLE001 - an exception's own __str__ is other people's code
        message = ""
    return ToolFailed(tool.full_name, type(error).__name__, message)


def _import_function(tool: Tool) -> tuple[Callable[..., Any], str | None]:
    """Return the function, and of one that may take long the target of what helpers carry out; empty: nothing."""
    path, _, name = tool.target.partition(":")
    try:
        module = importlib.import_module(path)
        heavy = {one: one for one in getattr(module, "__ot_heavy__", ())} | getattr(module, "__ot_planned__", {})
        away = heavy.get(name)
        return attrgetter(name)(module), f"{path}:{away}" if away else away
    except BaseException as error:
        logger.exception("pack %s cannot be imported", tool.pack)
        raise ToolUnavailable(tool.pack, f"{type(error).__name__}: {error}") from None

"""Carries calls out in this process: bundled packs, imported at their first call, and the ``ot`` pack."""

from __future__ import annotations

import asyncio
import importlib
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from inspect import iscoroutinefunction
from itertools import takewhile
from operator import attrgetter
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, ClassVar

import anyio.to_thread

from ot.errors import InvalidArguments, ToolBusy, ToolFailed, ToolUnavailable
from ot.execution import tool_context
from ot.execution.arguments import invalid
from ot.execution.backends.backend import Begun, eager_task
from ot.execution.call_context import CallContext
from ot.execution.tool_context import ToolContext, TooMuchHere, WorkAllowance
from ot.files.run_writes import AsksFirst
from ot.registry.tool import Tool

if TYPE_CHECKING:
    from ot.execution.heavy_calls import HandOver, HeavyCalls

logger = logging.getLogger(__name__)

MAX_THREADS = 64
THREADS_OF_ONE = 4
"""Of one person on a server of several: threads of one interpreter hold each other up, and the event loop with them."""
MAX_ABANDONED = 32
"""Threads of cancelled calls cannot be stopped; above this many, calls are refused until some have ended."""
IDLE_SECONDS = 10.0
"""How long a thread waits for another call before it ends."""


class InProcessBackend:
    """Calls Python functions; a synchronous one that is not marked as pure in a thread, so it cannot block the loop."""

    def __init__(
        self,
        contexts: Callable[[str, CallContext], ToolContext],
        bound: Mapping[str, Callable[..., Any]] | None = None,
        heavy: Callable[[], HeavyCalls] | None = None,
        hand_over: HandOver | None = None,
        threads: int | None = None,
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
        self._in_threads: dict[str, Callable[..., Any]] = {}
        """The functions that run in a thread, with nothing to be done around them."""
        self._threads = _Threads(MAX_THREADS if threads is None else threads)

    async def prepare(self, tool: Tool, context: CallContext) -> None:
        """Import the pack of *tool*, at its first call; raise ToolUnavailable if that fails."""
        if tool.target not in self._functions:
            function, away = await anyio.to_thread.run_sync(_import_function, tool, abandon_on_cancel=True)
            if away is not None and self._hand_over:
                self._away[tool.target] = away
            self._functions[tool.target] = function

    def begin(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Begun:
        """Return the call, which may end without a task of its own; it ends as ``call`` does.

        Raises:
            ToolBusy: As below.
        """
        function = self._in_threads.get(tool.target)
        if function is None:
            return eager_task(self.call(tool, arguments, context))
        work = _prepare(tool, function, arguments)
        return self._threads.begin(tool, work, self._contexts(tool.pack, context))

    async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the tool's value.

        Raises:
            ToolFailed: The tool raised, whatever kind of exception.
            InvalidArguments: A typed tool refuses its arguments.
            ToolBusy: Too many cancelled calls are still running.
        """
        await self.prepare(tool, context)
        work = _prepare(tool, self._functions[tool.target], arguments)
        around = self._contexts(tool.pack, context)
        if tool.input_schema is not None:
            return await self._with_notes(tool, work, around, context)
        if tool.target in self._away:
            return await self._where_it_fits(tool, work, arguments, around, context)
        if not tool.pure and not iscoroutinefunction(work.func):
            self._in_threads[tool.target] = work.func
        return await self._carry_out(tool, work, around)

    async def _carry_out(self, tool: Tool, work: partial[Any], around: ToolContext) -> Any:
        if not tool.pure and not iscoroutinefunction(work.func):
            return await self._threads.call(tool, work, around)
        with tool_context.use(around, asyncio.current_task()):
            return _run_here(tool, work) if tool.pure else await _run_guarded(tool, work)

    async def _with_notes(self, tool: Tool, work: partial[Any], around: ToolContext, context: CallContext) -> Any:
        from mcp_core.program_function import collect_notes  # noqa: PLC0415 - typed tools alone need it

        with collect_notes() as notes:
            value = await self._carry_out(tool, work, around)
        for text in notes:
            if context.told:
                context.told("note", tool.full_name, {"text": text})
        return value

    async def _where_it_fits(
        self,
        tool: Tool,
        work: Callable[[], Any],
        arguments: dict[str, Any],
        around: ToolContext,
        context: CallContext,
    ) -> Any:
        assert self._heavy and self._hand_over
        hand_over, target = self._hand_over, self._away[tool.target]

        async def run(**changes: Any) -> Any:
            return await self._threads.call(tool, work, replace(around, **changes))

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


class _Threads:
    """Has the calls of one backend carried out in threads: one wake-up there, and one back for all that have ended."""

    def __init__(self, threads: int) -> None:
        self.abandoned: set[_ThreadedCall] = set()
        self._free = threads
        self._waiting: deque[_ThreadedCall] = deque()
        self._ended: deque[_ThreadedCall] = deque()
        self._is_told = False

    def begin(self, tool: Tool, work: Callable[[], Any], around: ToolContext) -> _ThreadedCall:
        """Return a call that is given to a thread as soon as it may have one; raise ToolBusy."""
        if len(self.abandoned) >= MAX_ABANDONED:
            raise ToolBusy(tool.full_name, f"{len(self.abandoned)} cancelled calls have not ended yet")
        call = _ThreadedCall(tool, work, around, self)
        if self._free > 0:
            self._free -= 1
            _hand_to_thread(call)
        else:
            self._waiting.append(call)
        return call

    async def call(self, tool: Tool, work: Callable[[], Any], around: ToolContext) -> Any:
        """Return the result of *work* in a thread."""
        call, ended = self.begin(tool, work, around), asyncio.get_running_loop().create_future()
        call.add_done_callback(lambda _: None if ended.done() else ended.set_result(None))
        try:
            await ended
        finally:
            call.cancel()
        return call.result()

    def give_up(self, call: _ThreadedCall) -> None:
        """Let the next one have the place of *call*, whose thread may go on."""
        if call in self._waiting:
            self._waiting.remove(call)
        else:
            self.abandoned.add(call)
            self._let_next_begin()

    def tell(self, call: _ThreadedCall) -> None:
        """Take *call* from its thread, which has ended it."""
        self._ended.append(call)
        if not self._is_told:
            self._is_told = True
            try:
                call.get_loop().call_soon_threadsafe(self._take_ended)
            except RuntimeError:  # nobody waits for this one: its event loop is closed
                self._is_told = False

    def _take_ended(self) -> None:
        """Take one call: what else the event loop has to do waits for one, and not for all that have ended."""
        self._is_told = False  # before looking: who comes now tells again
        if not self._ended:
            return
        call = self._ended.popleft()
        if call in self.abandoned:
            self.abandoned.remove(call)
        else:
            self._let_next_begin()
            call.end()
        if self._ended and not self._is_told:
            self._is_told = True
            call.get_loop().call_soon(self._take_ended)

    def _let_next_begin(self) -> None:
        if self._waiting:
            _hand_to_thread(self._waiting.popleft())
        else:
            self._free += 1


class _ThreadedCall:
    """One synchronous call in a thread; given up while it runs, its answer is dropped."""

    __slots__ = (
        "_around", "_done", "_error", "_given_up", "_loop", "_told", "_tool", "_value", "_work", "context", "threads",
    )  # fmt: skip

    def __init__(self, tool: Tool, work: Callable[[], Any], around: ToolContext, threads: _Threads) -> None:
        self._tool, self._work, self._around, self.threads = tool, work, around, threads
        self._loop = asyncio.get_running_loop()
        self.context = copy_context()
        self._told: list[Callable[[Any], object]] = []
        self._value: Any = None
        self._error: BaseException | None = None
        self._done = self._given_up = False

    def run(self) -> None:
        """Do the work, in the thread, and keep whatever it raises: SystemExit must not end the thread."""
        if self._given_up:
            return
        tool_context.enter(self._around, self)
        try:
            self._value = self._work()
        except TooMuchHere as error:
            self._error = error
        except BaseException as error:  # noqa: BLE001 - other people's code runs here
            self._error = failure(self._tool, error)

    def fail(self, error: Exception) -> None:
        """End without a thread."""
        self._error = failure(self._tool, error)
        self.threads.tell(self)

    def end(self) -> None:
        """Tell that it has ended, on the event loop."""
        self._done = True
        for told in self._told:
            told(self)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def add_done_callback(self, told: Callable[[Any], object], /) -> None:
        if self._done:
            self._loop.call_soon(told, self)
        else:
            self._told.append(told)

    def done(self) -> bool:
        return self._done

    def cancelled(self) -> bool:
        return self._given_up

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value

    def cancel(self) -> bool:
        """Drop the answer; a call that has not started never will."""
        if not self._done:
            self._given_up = True
            self.threads.give_up(self)
            self.end()
        return self._given_up


class _CallThread(threading.Thread):
    """Carries out one call after another; it ends when none comes for a while, and never holds up the process's end."""

    idle: ClassVar[deque[_CallThread]] = deque()
    """Those that wait for a call, of all backends: the latest is taken, whose memory is the warmest."""

    def __init__(self) -> None:
        super().__init__(name="ot-tool", daemon=True)
        self.calls: SimpleQueue[_ThreadedCall] = SimpleQueue()

    def run(self) -> None:
        while True:
            try:
                call = self.calls.get(timeout=IDLE_SECONDS)
            except Empty:
                try:
                    self.idle.remove(self)
                except ValueError:  # somebody has just taken it
                    continue
                return
            call.context.run(call.run)
            self.idle.append(self)
            call.threads.tell(call)
            del call  # what it holds


def _hand_to_thread(call: _ThreadedCall) -> None:
    try:
        thread = _CallThread.idle.pop()
    except IndexError:
        thread = _CallThread()
        try:
            thread.start()
        except RuntimeError as error:  # the system has no more threads
            return call.fail(error)
    return thread.calls.put(call)


def _prepare(tool: Tool, function: Callable[..., Any], arguments: dict[str, Any]) -> partial[Any]:
    if tool.parameters and tool.parameters[0].kind != "positional":  # those that are come first
        return partial(function, **arguments)
    names = [parameter.name for parameter in tool.parameters if parameter.kind == "positional"]
    placed = [arguments[name] for name in takewhile(arguments.__contains__, names)]
    named = {name: value for name, value in arguments.items() if name not in names[: len(placed)]}
    return partial(function, *placed, **named)


def _run_here(tool: Tool, work: Callable[[], Any]) -> Any:
    try:
        return work()
    except BaseException as error:  # noqa: BLE001 - other people's code runs here
        raise failure(tool, error) from None


async def _run_guarded(tool: Tool, work: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await work()
    except asyncio.CancelledError as error:
        # A tool may raise it without a cancellation: passed on, it would end the run without a reply.
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

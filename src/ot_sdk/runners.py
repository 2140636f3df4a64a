"""Runners: carry calls out, those of plain ``def`` tools in threads, those of ``async def`` tools on one loop."""

from __future__ import annotations

import contextvars
import itertools
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

from ot_sdk.call import Call, current_call
from ot_sdk.errors import Cancelled
from ot_sdk.replies import Replies, is_little

if TYPE_CHECKING:
    import asyncio

Answer = Callable[[Call, bytes], None]


class Turns:
    """Starts calls as soon as fewer than *limit* run, in the order in which they came."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._waiting: deque[Callable[[], object]] = deque()
        self._lock = threading.Lock()

    def take(self, start: Callable[[], object]) -> None:
        """Start now, or when it is this call's turn; whoever was started calls ``give_back()`` once."""
        with self._lock:
            if self._free <= 0:
                self._waiting.append(start)
                return
            self._free -= 1
        start()

    def give_back(self) -> None:
        """Let the next one start."""
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            start = self._waiting.popleft()
        start()


class CallRunner:
    """Carries calls out, each when it is its turn."""

    def __init__(self, turns: Turns, replies: Replies, answer: Answer) -> None:
        self._turns = turns
        self._replies = replies
        self._answer = answer

    def start(self, call: Call) -> None:
        """Carry *call* out when it is its turn."""
        self._turns.take(partial(self._begin, call))

    def cancel(self, call: Call) -> None:
        """Stop *call* as far as that is possible; a thread that waits inside C code goes on waiting."""
        call.interrupts.interrupt()  # remembered for a call whose turn has not come

    def _begin(self, call: Call) -> None:
        raise NotImplementedError


# ---------------------------------------------------------------- threads


class ThreadRunner(CallRunner):
    """Runs calls in threads that are used again and never keep the process alive."""

    def __init__(self, turns: Turns, replies: Replies, answer: Answer) -> None:
        super().__init__(turns, replies, answer)
        self._calls: SimpleQueue[Call] = SimpleQueue()
        self._numbers = itertools.count(1)
        self._idle = 0
        self._lock = threading.Lock()

    def _begin(self, call: Call) -> None:
        with self._lock:
            idle = self._idle
            self._idle = max(0, idle - 1)
        try:
            if not idle:
                threading.Thread(target=self._run, name=f"tool-{next(self._numbers)}", daemon=True).start()
        except RuntimeError as error:  # the system gives no more threads
            self._finish(call, self._replies.failure(call.id, error))
        else:
            self._calls.put(call)

    def _run(self) -> None:
        while True:
            call = self._calls.get()
            try:
                # A copy, so that what one call leaves in its context is not there for the next one in this thread.
                self._finish(call, contextvars.copy_context().run(self._reply, call))
            except BaseException as error:  # noqa: BLE001 - a lost thread would be a call that never ends
                sys.__excepthook__(type(error), error, error.__traceback__)
            with self._lock:
                self._idle += 1

    def _finish(self, call: Call, frame: bytes) -> None:
        try:
            self._answer(call, frame)
        finally:
            self._turns.give_back()

    def _reply(self, call: Call) -> bytes:
        current_call.set(call)
        try:
            with call.interrupts:
                try:
                    return self._replies.value(call.id, _whole(call.begin()))
                except BaseException as error:  # noqa: BLE001 - other people's code runs here
                    return self._replies.failure(call.id, error)
        except Cancelled as error:
            return self._replies.failure(call.id, error)


def _whole(value: Any) -> Any:
    """Return *value*, or what comes of it when a plain function returned a coroutine."""
    if not isinstance(value, Coroutine):
        return value
    import asyncio  # noqa: PLC0415 - costs half of a worker's start; whoever made a coroutine has mostly loaded it

    return asyncio.run(cast("Coroutine[Any, Any, Any]", value))


# ---------------------------------------------------------------- the event loop


class LoopRunner(CallRunner):
    """Runs calls as tasks of the loop that the worker's main thread runs."""

    def __init__(self, turns: Turns, replies: Replies, answer: Answer) -> None:
        import asyncio  # noqa: PLC0415 - would double the start of packs without async tools

        super().__init__(turns, replies, answer)
        self._loop = asyncio.new_event_loop()
        self._running: dict[Call, _Running] = {}

    def run_forever(self) -> None:
        """Run the loop; a tool that stops it does not stop other calls."""
        while True:
            self._loop.run_forever()

    def cancel(self, call: Call) -> None:
        """Cancel the call's task."""
        super().cancel(call)
        self._loop.call_soon_threadsafe(self._stop, call, Cancelled())

    def _begin(self, call: Call) -> None:
        self._loop.call_soon_threadsafe(self._create_task, call)

    def _create_task(self, call: Call) -> None:
        running = self._running[call] = _Running()
        if call.interrupts.wanted:
            running.stopped_by = Cancelled()
        running.timer = self._loop.call_later(call.seconds_left, self._stop, call, call.timeout())
        running.task = self._loop.create_task(self._run(call, running))

    def _stop(self, call: Call, reason: BaseException) -> None:
        running = self._running.get(call)
        if running is not None:
            running.stop(reason)

    async def _run(self, call: Call, running: _Running) -> None:
        current_call.set(call)
        try:
            self._answer(call, await self._reply(call, running))
        finally:
            self._turns.give_back()

    async def _reply(self, call: Call, running: _Running) -> bytes:
        try:
            running.begin()
            value = await call.begin()
        except BaseException as error:  # noqa: BLE001 - other people's code runs here
            self._end(call)
            return self._replies.failure(call.id, running.stopped_by or error)
        self._end(call)
        if is_little(value):
            return self._make(call, value)
        try:
            return await self._make_in_thread(call, value)
        except BaseException as error:  # noqa: BLE001 - a task that the tool left behind may cancel this one
            return self._replies.failure(call.id, error)

    def _end(self, call: Call) -> None:
        """Let no cancel and no deadline reach the call any more."""
        self._running.pop(call).timer.cancel()

    def _make(self, call: Call, value: Any) -> bytes:
        try:
            return self._replies.value(call.id, value)
        except BaseException as error:  # noqa: BLE001 - other people's code runs in values too
            return self._replies.failure(call.id, error)

    async def _make_in_thread(self, call: Call, value: Any) -> bytes:
        """Return the reply, made elsewhere: a large value would hold up the other calls."""
        made: asyncio.Future[bytes] = self._loop.create_future()

        def make() -> None:
            self._loop.call_soon_threadsafe(_settle, made, self._make(call, value))

        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(make,), name="reply", daemon=True).start()
        return await made


class _Running:
    """A call's task, its timer, and why it was stopped."""

    task: asyncio.Task[None]
    timer: asyncio.TimerHandle

    def __init__(self) -> None:
        self.stopped_by: BaseException | None = None
        self._begun = False

    def begin(self) -> None:
        """Go on, unless the call was stopped before its task came to run."""
        self._begun = True
        if self.stopped_by is not None:
            raise self.stopped_by

    def stop(self, reason: BaseException) -> None:
        """Cancel the task, but never before it began: it would end without a reply."""
        self.stopped_by = self.stopped_by or reason
        if self._begun:
            self.task.cancel()


def _settle(made: asyncio.Future[bytes], frame: bytes) -> None:
    if not made.done():
        made.set_result(frame)

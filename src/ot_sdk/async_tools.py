"""AsyncTools: carries out ``async def`` tools, all on one event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

from ot_sdk.call import Call, current_call
from ot_sdk.errors import Cancelled
from ot_sdk.replies import Replies, is_little
from ot_sdk.thread_tools import Answer
from ot_sdk.turns import Turns


class AsyncTools:
    """Runs calls as tasks of the loop that the worker's main thread runs."""

    def __init__(self, turns: Turns, replies: Replies, answer: Answer) -> None:
        self._turns = turns
        self._replies = replies
        self._answer = answer
        self._loop = asyncio.new_event_loop()
        self._running: dict[Call, _Running] = {}

    def run_forever(self) -> None:
        """Run the loop; a tool that stops it does not stop other calls."""
        while True:
            self._loop.run_forever()

    def start(self, call: Call) -> None:
        """Carry *call* out when it is its turn."""
        self._turns.take(lambda: self._loop.call_soon_threadsafe(self._begin, call))

    def cancel(self, call: Call) -> None:
        """Cancel the call's task."""
        call.interrupts.interrupt()  # remembered for a call whose turn has not come
        self._loop.call_soon_threadsafe(self._stop, call, Cancelled())

    def _begin(self, call: Call) -> None:
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
            return self._made(call, value)
        try:
            return await self._made_in_thread(call, value)
        except BaseException as error:  # noqa: BLE001 - a task that the tool left behind may cancel this one
            return self._replies.failure(call.id, error)

    def _end(self, call: Call) -> None:
        """Let no cancel and no deadline reach the call any more."""
        self._running.pop(call).timer.cancel()

    def _made(self, call: Call, value: Any) -> bytes:
        try:
            return self._replies.value(call.id, value)
        except BaseException as error:  # noqa: BLE001 - other people's code runs in values too
            return self._replies.failure(call.id, error)

    async def _made_in_thread(self, call: Call, value: Any) -> bytes:
        """Return the reply, made elsewhere: a large value would hold up the other calls."""
        made: asyncio.Future[bytes] = self._loop.create_future()

        def make() -> None:
            self._loop.call_soon_threadsafe(_settle, made, self._made(call, value))

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

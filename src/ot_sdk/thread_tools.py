"""ThreadTools: carries out plain ``def`` tools, each call in a thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import copy_context
from functools import partial
from typing import Any, cast

from ot_sdk.call import Call, current_call
from ot_sdk.daemon_threads import DaemonThreads
from ot_sdk.errors import Cancelled
from ot_sdk.replies import Replies
from ot_sdk.turns import Turns

Answer = Callable[[Call, bytes], None]


class ThreadTools:
    """Runs calls in threads that nothing waits for at the end."""

    def __init__(self, turns: Turns, replies: Replies, answer: Answer) -> None:
        self._turns = turns
        self._replies = replies
        self._answer = answer
        self._threads = DaemonThreads("tool")

    def start(self, call: Call) -> None:
        """Carry *call* out when it is its turn."""
        self._turns.take(partial(self._submit, call))

    def cancel(self, call: Call) -> None:
        """Interrupt the call's thread; what waits inside C code goes on waiting."""
        call.interrupts.interrupt()

    def _submit(self, call: Call) -> None:
        try:
            self._threads.submit(partial(self._run, call))
        except RuntimeError as error:  # the system gives no more threads
            self._finish(call, self._replies.failure(call.id, error))

    def _run(self, call: Call) -> None:
        # A copy, so that what one call leaves in its context is not there for the next one in this thread.
        self._finish(call, copy_context().run(self._reply, call))

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
    coroutine = cast("Coroutine[Any, Any, Any]", value)
    import asyncio  # noqa: PLC0415 - costs half of a worker's start; whoever made a coroutine has mostly loaded it

    async def awaited() -> Any:
        return await coroutine

    return asyncio.run(awaited())

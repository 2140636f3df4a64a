"""WorkerWire: the frames that a worker's process is sent, and the messages that come back until it ends.

WorkerRequests answers those by which its tools ask something of the server while they run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import anyio.to_thread

from ot.errors import NotApproved, ToolBusy, ToolFailed, ToolUnavailable
from ot.execution.call_context import CallContext
from ot.execution.consent import agree_to_write
from ot.files.path_guard import PathGuard
from ot.files.run_writes import AsksFirst, writes_of_run
from ot.processes.guarded_process import Ending, GuardedProcess
from ot.registry.tool import Tool
from ot_sdk import tagged, wire
from ot_sdk.errors import FrameTooLarge

logger = logging.getLogger(__name__)

UNSENT_BYTES = 1 << 16
"""What may wait in the pipe before another call is written out."""
STALL_SECONDS = 1.0


class WorkerWire:
    """Both directions of one process; nothing that it writes stops the reading."""

    def __init__(self, pack: str) -> None:
        """Speak to the process of *pack*, once that is started."""
        self.written = 0
        """Bytes that it was sent so far."""
        self.take: Callable[[wire.Message], None] = lambda message: None
        self._pack = pack
        self._splitter = wire.FrameSplitter()
        self._hung_up = False

    async def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, memory_mb: int) -> None:
        """Start the process at the other end; every message of it goes to ``take``.

        Raises:
            OSError: It cannot be started.
        """
        self.process = await GuardedProcess.start(
            argv, env=env, cwd=cwd, memory_mb=memory_mb or None, on_output=self._hear, keep_unread=True
        )

    @property
    def is_over(self) -> bool:
        """Whether nothing comes back any more."""
        return self._hung_up or not self.process.running

    @property
    def read_bytes(self) -> int:
        """How much it has read of what it was sent, once it has ended."""
        return self.written - self.process.unread_bytes

    def write(self, frame: bytes) -> None:
        """Send one frame, whether or not there is room for it."""
        self.written += len(frame)
        self.process.stdin.write(frame)

    async def send(self, message: wire.Message) -> None:
        """Send *message*, and return once it was sent or can no longer be."""
        try:
            self.write(wire.to_frame(message))
            await self.process.stdin.drain()
        except (ConnectionError, OSError) as error:
            logger.debug("the worker of %s takes nothing any more: %s", self._pack, error)

    async def room(self, tool: str) -> None:
        """Wait until the worker has read what it was sent; large arguments are written one after the other.

        Raises:
            ToolBusy: It reads nothing.
        """
        stdin = self.process.stdin
        while (unsent := stdin.transport.get_write_buffer_size()) > UNSENT_BYTES:
            # When the pipe breaks, the end of the worker's output tells the rest.
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(STALL_SECONDS):
                    await stdin.drain()
            if self.is_over:
                return
            if stdin.transport.get_write_buffer_size() == unsent:
                raise ToolBusy(tool, "its worker does not read its input")

    def _hear(self, data: bytes) -> None:
        for message in self._splitter.feed(data):
            try:
                self.take(message)
            except Exception:
                # What a worker says is other people's doing, and the wire must outlive all of it.
                logger.warning("a message from the worker of %s was not understood", self._pack, exc_info=True)

    async def wait_for_end(self) -> Ending:
        """Return how the process ended."""
        await self.process.output_ended()
        self._hung_up = True
        # A tool may have closed the wire without ending: the process can no longer answer.
        ending = await self.process.wait_at_most()
        if self._splitter.skipped:
            logger.warning("%d lines from the worker of %s were malformed", self._splitter.skipped, self._pack)
        return ending


def is_reply(message: wire.Message) -> bool:
    """Return whether *message* has the parts of a result or of an error."""
    problem = message.get("error")
    if problem is None:
        return isinstance(message.get("result"), dict)
    return (
        isinstance(problem, dict)
        and {"code", "message", "data"} <= problem.keys()
        and isinstance(problem["data"], dict)
    )  # pyright: ignore[reportUnknownMemberType] - checked here


MAX_MESSAGE = 2000


@dataclass
class PendingCall:
    """A call that has not been answered yet, and how many bytes the worker must have read to know of it."""

    tool: Tool
    context: CallContext
    answer: asyncio.Future[dict[str, Any]]
    known_after: int
    variables: Context = field(default_factory=copy_context)
    """Those of its task, for what its tool asks of the server meanwhile."""


class WorkerRequests:
    """Answers each request in the name of the call that it belongs to, and no longer than that call takes."""

    def __init__(self, pack: str, write: Callable[[bytes], None]) -> None:
        """Answer the worker of *pack* by *write*."""
        self._pack = pack
        self._write = write
        self._running: dict[asyncio.Task[None], str] = {}

    def take(self, message: wire.Message, find: Callable[[str], PendingCall | None]) -> bool:
        """Return whether *message* is a request, which is answered when it is done, for the call that *find* finds."""
        answer = ANSWERS.get(str(message.get("method")))
        if answer is None:
            return False
        given: Any = message.get("params")
        params = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        id = str(params.get("call"))
        call = find(id)
        work = self._reply(message.get("id"), answer, params, call)
        # The log tells the run by its variables, and those here are of the run that started the worker.
        task = asyncio.get_running_loop().create_task(work, context=call.variables.copy() if call else None)
        self._running[task] = id
        task.add_done_callback(lambda done: self._running.pop(done, None))
        return True

    def cancel(self, call: str | None = None) -> None:
        """Give up what the call with this id still asks for, or all calls: nobody waits for it any more."""
        for task, owner in list(self._running.items()):
            if call in (None, owner):
                task.cancel()

    async def _reply(self, id: Any, answer: Answer, params: Mapping[str, Any], call: PendingCall | None) -> None:
        try:
            if call is None:
                raise ToolUnavailable(self._pack, "a tool may make requests only during a call")
            reply = wire.result(id, {"value": tagged.encode(await answer(params, call))})
        except asyncio.CancelledError:
            # A thread that outlives its call may still wait.
            self._write(wire.to_frame(wire.error(id, wire.CANCELLED, "the call has ended", kind="Cancelled")))
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the worker waits for an answer
            kind = error.kind if isinstance(error, ToolFailed) else type(error).__name__
            reply = wire.error(id, wire.TOOL_FAILED, str(error)[:MAX_MESSAGE], kind=kind)
        try:
            frame = wire.to_frame(reply)
        except FrameTooLarge:
            frame = wire.to_frame(wire.error(id, wire.RESULT_REFUSED, "the value is too large", kind="ResultTooLarge"))
        self._write(frame)


async def _call_tool(params: Mapping[str, Any], asking: PendingCall) -> Any:
    """Return the value of another tool, called through the door of the same run, and no other."""
    pack, _, name = str(params.get("tool")).partition(".")
    if asking.context.call is None:
        raise ToolUnavailable(pack, "there is no run to call it in")
    return await asking.context.call(pack, name, (), tagged.decode(params.get("arguments") or {}))


async def _ask_model(params: Mapping[str, Any], asking: PendingCall) -> Any:
    """Ask the run's model and return its answer: a text, or an object that fits the schema."""
    # The first one imports the clients, which takes longer than an event loop may wait.
    llm = await anyio.to_thread.run_sync(asking.context.open_llm)
    text, schema = str(params.get("text")), tagged.decode(params.get("schema"))
    return await (llm.aask(text) if schema is None else llm.aextract(text, dict(schema)))


async def _find_path(params: Mapping[str, Any], asking: PendingCall) -> Any:
    """Return the file or directory of the program's path, as the guard finds it, for the worker to open."""
    guard = _guard_of(asking)
    path, directory = str(params.get("path")), params.get("directory") is True
    find = guard.find_directory if directory else guard.find_file
    found = await anyio.to_thread.run_sync(find, path)
    return {"at": found.path, "identity": list(found.identity), "hidden": list(found.hidden)}


async def _require_writable(params: Mapping[str, Any], asking: PendingCall) -> None:
    """Check that the tool may write all of these files by other tools, asking once, before the first."""
    context, guard, paths = asking.context, _guard_of(asking), [*map(str, params.get("paths") or ())]
    # Another thread looks, with this call's own variables.
    writes_of_run.set(context.writes)
    try:
        await anyio.to_thread.run_sync(guard.require_agreed, paths)
    except AsksFirst as asked:
        try:
            await agree_to_write(asked, asking.tool, {"paths": paths}, context)
        except NotApproved as error:
            raise PermissionError(str(error)) from None


def _guard_of(asking: PendingCall) -> PathGuard:
    if asking.context.guard is None:
        raise PermissionError("no files can be opened here")
    return asking.context.guard


type Answer = Callable[[Mapping[str, Any], PendingCall], Awaitable[Any]]

ANSWERS: Mapping[str, Answer] = {
    "call_tool": _call_tool,
    "ask_model": _ask_model,
    "find_path": _find_path,
    "require_writable": _require_writable,
}
"""What is done for each method."""

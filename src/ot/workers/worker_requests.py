"""WorkerRequests: what the tools of one worker ask of the server while they run."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, cast

import anyio.to_thread

from ot.errors import NotApproved, ToolFailed, ToolUnavailable
from ot.execution.call_context import CallContext
from ot.execution.consent import agree_to_write
from ot.files.path_guard import PathGuard
from ot.files.run_writes import AsksFirst, writes_of_run
from ot.registry.tool import Tool
from ot_sdk import tagged, wire
from ot_sdk.errors import FrameTooLarge

MAX_MESSAGE = 2000


class AskingCall(Protocol):
    """The call in whose name a tool asks: its tool, what it may ask for, and the variables of its task."""

    tool: Tool
    context: CallContext
    variables: contextvars.Context


class WorkerRequests:
    """Answers each request in the name of the call that it belongs to, and no longer than that call takes."""

    def __init__(self, pack: str, write: Callable[[bytes], None]) -> None:
        """Answer the worker of *pack* by *write*."""
        self._pack = pack
        self._write = write
        self._running: dict[asyncio.Task[None], str] = {}

    def take(self, message: wire.Message, find: Callable[[str], AskingCall | None]) -> bool:
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

    async def _reply(self, id: Any, answer: Answer, params: Mapping[str, Any], call: AskingCall | None) -> None:
        try:
            if call is None:
                raise ToolUnavailable(self._pack, "a tool may ask for something only while it is called itself")
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


async def _call_tool(params: Mapping[str, Any], asking: AskingCall) -> Any:
    """Return the value of another tool, called through the door of the same run, and no other."""
    pack, _, name = str(params.get("tool")).partition(".")
    if asking.context.call is None:
        raise ToolUnavailable(pack, "there is no run to call it in")
    return await asking.context.call(pack, name, (), tagged.decode(params.get("arguments") or {}))


async def _ask_model(params: Mapping[str, Any], asking: AskingCall) -> Any:
    """Return what the run's model says: a text, or an object that fits the schema."""
    # The first one imports the clients, which takes longer than an event loop may wait.
    llm = await anyio.to_thread.run_sync(asking.context.open_llm)
    text, schema = str(params.get("text")), tagged.decode(params.get("schema"))
    return await (llm.aask(text) if schema is None else llm.aextract(text, dict(schema)))


async def _find_path(params: Mapping[str, Any], asking: AskingCall) -> Any:
    """Return which file or directory the program's path names, as the guard finds it, for the worker to open."""
    guard = _guard_of(asking)
    path, directory = str(params.get("path")), params.get("directory") is True
    find = guard.find_directory if directory else guard.find_file
    found = await anyio.to_thread.run_sync(find, path)
    return {"at": found.path, "identity": list(found.identity), "hidden": list(found.hidden)}


async def _require_writable(params: Mapping[str, Any], asking: AskingCall) -> None:
    """Return when the tool may write all of these files by other tools; it is asked about once, before the first."""
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


def _guard_of(asking: AskingCall) -> PathGuard:
    if asking.context.guard is None:
        raise PermissionError("no files can be opened here")
    return asking.context.guard


type Answer = Callable[[Mapping[str, Any], AskingCall], Awaitable[Any]]

ANSWERS: Mapping[str, Answer] = {
    "call_tool": _call_tool,
    "ask_model": _ask_model,
    "find_path": _find_path,
    "require_writable": _require_writable,
}
"""What is done for each method."""

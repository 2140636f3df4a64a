"""Worker: one process of a pack, and the calls that are in flight on it."""

from __future__ import annotations

import asyncio
import errno
import itertools
import logging
import secrets
import shutil
import time
from collections.abc import Callable
from contextvars import Context
from pathlib import Path
from typing import Any, cast

import anyio

from ot.errors import DataTooLarge, NotPlainData, ToolFailed, ToolTimeout, ToolUnavailable, WorkerDied
from ot.execution.call_context import CallContext
from ot.processes.guarded_process import Ending
from ot.processes.pool import MAX_WAITING, Leased
from ot.registry.tool import Tool
from ot.workers.pack_environment import PackEnvironment
from ot.workers.spec import WorkerSpec
from ot.workers.worker_wire import PendingCall, WorkerRequests, WorkerWire, is_reply
from ot_sdk import bootstrap, tagged, wire
from ot_sdk.errors import FrameTooLarge, NotPlain
from ot_sdk.images import KINDS

logger = logging.getLogger(__name__)

BOOTSTRAP = Path(bootstrap.__file__)
MAX_IN_FLIGHT = 32
ASKING_SECONDS = 24 * 3600.0
CANCEL_GRACE_SECONDS = 0.2
"""How long a cancelled call may take to end before its worker is killed."""
ENDING_SECONDS = 2.0
LEVELS = {name: getattr(logging, name.upper()) for name in ("debug", "info", "warning", "error", "critical")}
NO_FILES = f"[Errno {errno.EMFILE}]"
SPOOL_ABOVE = 8 << 20


class NotReceived(WorkerDied):
    """The process ended before it had read the call: another can carry it out."""


class Worker(Leased):
    """Speaks to one process; every answer finds its call by id, and none is taken for another's."""

    def __init__(self, spec: WorkerSpec, connection: WorkerWire, environment: PackEnvironment, spool: Path) -> None:
        """Use ``launch`` instead."""
        places = 1 if spec.serial else MAX_IN_FLIGHT
        super().__init__(spec.key, spec.idle_seconds, places, MAX_IN_FLIGHT + MAX_WAITING)
        self.spec = spec
        self.ended: Ending | None = None
        self.worn = False
        """Whether it should be replaced when its calls have ended."""
        self._process = connection.process
        self._wire = connection
        self._wire.take = self._take
        self._environment = environment
        self._spool = spool
        self._prefix = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._pending: dict[str, PendingCall] = {}
        self._starting: asyncio.Future[dict[str, Any]] | None = None
        self._pack_logger = logging.getLogger(f"ot_tools.{spec.pack}")
        self._requests = WorkerRequests(spec.pack, connection.write)
        self._living = asyncio.ensure_future(self._live())
        self.on_death: Callable[[Worker], None] = lambda worker: None

    # ---------------------------------------------------------------- life

    @classmethod
    async def launch(cls, spec: WorkerSpec, environment: PackEnvironment, spool: Path) -> Worker:
        """Return a worker whose process runs; it does not know its pack yet.

        Raises:
            OSError: The process cannot be started.
        """
        connection = WorkerWire(spec.pack)
        argv = [str(environment.python), *environment.arguments, "-B", str(BOOTSTRAP)]
        await connection.start(argv, spec.environ, environment.directory, spec.memory_mb)
        return cls(spec, connection, environment, spool)

    async def start(self) -> None:
        """Introduce the pack to the process and wait until it is ready.

        Raises:
            ToolUnavailable: The pack cannot be imported, its settings do not fit, or it took too long.
        """
        spec = self.spec
        self._starting = asyncio.get_running_loop().create_future()
        params = {
            "protocol": wire.PROTOCOL,
            "pack": spec.pack,
            "file": str(self._environment.main),
            "directory": str(self._environment.directory),
            "settings": dict(spec.settings),
            "secrets": dict(spec.secrets),
            "spool": str(self._spool),
            "spool_above": SPOOL_ABOVE,
            "serial": spec.serial,
        }
        await self._wire.send(wire.request(f"{self._prefix}-init", "init", params))
        try:
            async with asyncio.timeout(spec.start_seconds):
                reply = await self._starting
        except TimeoutError:
            self.kill()
            raise ToolUnavailable(
                spec.pack, f"it did not start within {spec.start_seconds:g} s{self._words()}"
            ) from None
        if "error" in reply:
            problem = reply["error"]
            raise ToolUnavailable(spec.pack, f"{problem['data'].get('kind', '')}: {problem['message']}".lstrip(": "))
        if reply["result"].get("protocol") != wire.PROTOCOL:
            self.kill()
            raise ToolUnavailable(spec.pack, f"its worker speaks protocol {reply['result'].get('protocol')}")

    @property
    def usable(self) -> bool:
        """Whether it may be given another call."""
        return not (self._wire.is_over or self.closing or self.worn)

    async def end(self) -> None:
        """Let it end by itself, or end it."""
        self.closing = True
        await self._process.end(ENDING_SECONDS)
        await asyncio.wait((self._living,), timeout=ENDING_SECONDS)

    def kill(self) -> None:
        """End its whole tree of processes now."""
        self.closing = True
        self._process.kill()

    # ---------------------------------------------------------------- calls

    async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> dict[str, Any]:
        """Return the worker's result message for one call.

        Raises:
            NotReceived: The process ended before it had read the call.
            WorkerDied: The process ended before it answered.
            ToolFailed: The tool raised.
            ToolBusy: Too many calls are waiting already.
        """
        async with self.lease(tool.full_name, "its worker"):
            return await self._exchange(tool, arguments, context)

    async def _exchange(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> dict[str, Any]:
        await self._wire.room(tool.full_name)
        if self._wire.is_over:
            raise self._death(NotReceived, await self._process.wait())
        call_id = f"{self._prefix}-{next(self._numbers)}"
        self._wire.write(self._call_frame(call_id, tool, arguments, context))
        pending = PendingCall(tool, context, asyncio.get_running_loop().create_future(), self._wire.written)
        self._pending[call_id] = pending
        try:
            return self._result(tool, await pending.answer)
        except asyncio.CancelledError:
            await self._cancel(call_id, pending)
            raise
        finally:
            self._pending.pop(call_id, None)
            self._requests.cancel(call_id)

    def _call_frame(self, call_id: str, tool: Tool, arguments: dict[str, Any], context: CallContext) -> bytes:
        # A question to the user stops the run's clock, of which the worker's own knows nothing; the door ends the call.
        left = max(context.deadline - time.monotonic(), 0.0) + (ASKING_SECONDS if context.clock else 0.0)
        try:
            params = {"tool": tool.name, "arguments": tagged.encode(arguments), "ms": int(left * 1000)}
            params |= {"key": context.key} if context.key else {}
            return wire.to_frame(wire.request(call_id, "call", params))
        except NotPlain as error:
            raise NotPlainData(tool.full_name, str(error)) from None
        except FrameTooLarge:
            raise DataTooLarge(tool.full_name, f"the arguments are larger than {wire.MAX_FRAME:,} bytes") from None

    def _result(self, tool: Tool, reply: dict[str, Any]) -> dict[str, Any]:
        if "error" not in reply:
            result: dict[str, Any] = reply["result"]
            return {"file": self._take_over(result["spooled"])} if "spooled" in result else result
        problem = reply["error"]
        if problem["code"] == wire.TOOL_TIMEOUT:
            raise ToolTimeout(tool.full_name, 0)
        # Descriptors that a tool has lost are lost to every later call too.
        self.worn = self.worn or NO_FILES in str(problem["message"])
        kind = str(problem["data"].get("kind") or "RuntimeError")
        failure = ToolFailed(tool.full_name, kind, str(problem["message"]))
        if frames := str(problem["data"].get("traceback") or ""):
            failure.add_note(frames)  # for the pack's author; no reply to a program shows it
        raise failure

    def _take_over(self, spooled: Any) -> Path:
        """Move the reply's file out of the worker's reach, so that it outlives the worker, and return its path."""
        said = cast("dict[str, Any]", spooled) if isinstance(spooled, dict) else {}
        name = str(said.get("name", ""))
        suffix = ".json" if said.get("form") == "json" else ".txt"
        taken = self._spool.with_name(f"taken-{secrets.token_hex(16)}{suffix}")
        try:
            # It names a file of its own directory, and nothing else, whatever it says.
            (self._spool / Path(name or "nothing").name).rename(taken)
        except (OSError, ValueError) as error:
            logger.warning("the worker of %s names a file that cannot be taken: %s", self.spec.pack, error)
        return taken

    async def _cancel(self, call_id: str, pending: PendingCall) -> None:
        """Interrupt the call; a worker that does not answer to that is killed: nobody knows what it would do next."""
        if self._wire.is_over:
            return
        # The future that was awaited has been cancelled with the call; the worker's answer still has to come.
        pending.answer = asyncio.get_running_loop().create_future()
        with anyio.CancelScope(shield=True):
            self._wire.write(wire.to_frame(wire.notification("cancel", {"id": call_id})))
            await asyncio.wait((pending.answer,), timeout=CANCEL_GRACE_SECONDS)
        if not pending.answer.done():
            logger.warning(
                "%s ignored its cancellation; the worker of %s is ended", pending.tool.full_name, self.spec.pack
            )
            self.kill()
        elif pending.answer.exception():
            pass  # the worker died; its other calls say so

    # ---------------------------------------------------------------- what it says

    async def _live(self) -> None:
        self.ended = await self._wire.wait_for_end()
        shutil.rmtree(self._spool, ignore_errors=True)
        for pending in self._pending.values():
            if not pending.answer.done():
                kind = NotReceived if pending.known_after > self._wire.read_bytes else WorkerDied
                pending.answer.set_exception(self._death(kind, self.ended))
        if self._starting and not self._starting.done():
            self._starting.set_exception(
                ToolUnavailable(self.spec.pack, f"it ended at start: {self.ended.text}{self._words()}")
            )
        self._requests.cancel()
        self.on_death(self)

    def _take(self, message: wire.Message) -> None:
        method = message.get("method")
        if method is None:
            self._take_reply(message)
        elif not self._requests.take(message, self._pending.get):
            self._take_notification(str(method), message.get("params"))

    def _take_reply(self, message: wire.Message) -> None:
        call_id = message.get("id")
        if call_id == f"{self._prefix}-init":
            if self._starting and not self._starting.done() and is_reply(message):
                self._starting.set_result(message)
            return
        pending = self._pending.get(call_id) if isinstance(call_id, str) else None
        # An unknown id is a late answer to an abandoned call: drop it.
        if pending and not pending.answer.done() and is_reply(message):
            pending.answer.set_result(message)

    def _take_notification(self, method: str, params: Any) -> None:
        if not isinstance(params, dict):
            return
        told = cast("dict[str, Any]", params)
        pending = self._pending.get(str(told.get("id")))
        if method == "log":
            level = LEVELS.get(str(told.get("level")), logging.INFO)
            variables = pending.variables.copy() if pending else Context()  # they say whose call it is, for the log
            variables.run(self._pack_logger.log, level, "%s", str(told.get("message", ""))[:2000])
        elif pending and pending.context.told and (details := _filter_event(method, told)):
            what, said = details
            pending.context.told(what, pending.tool.full_name, said)

    def _death(self, kind: type[WorkerDied], ending: Ending) -> WorkerDied:
        return kind(self.spec.pack, ending.text, self.spec.redactor.text(ending.stderr))

    def _words(self) -> str:
        tail = self.spec.redactor.text(self._process.stderr_tail()).strip()
        return f". Its last words: {tail[-1000:]}" if tail else ""


def _filter_event(method: str, told: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return the part of an event that a worker may tell its call's caller."""
    if method in ("print", "progress"):
        return method, told
    block: Any = told.get("block")
    if method != "image" or not isinstance(block, dict):
        return None
    parts = {key: str(cast("dict[str, Any]", block).get(key, "")) for key in ("data", "mimeType")}
    if parts["mimeType"] not in KINDS:
        return None
    return "content", {"block": {"type": "image", **parts}, "id": str(told.get("name", ""))}

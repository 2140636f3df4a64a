"""WorkerHost: answers a pack's calls of ot_sdk inside a worker, and calls tools through the server for it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, NamedTuple, cast

from ot_sdk import tagged, wire
from ot_sdk.call import Call, current_call, send_for_pack
from ot_sdk.errors import ChatError, NoConfig, OutsideWorker, SecretNotGranted, ToolCallFailed
from ot_sdk.files import OpenDirectory, open_found_directory, open_found_file
from ot_sdk.host import PackHost, Secret, check_level
from ot_sdk.redaction import Redactor
from ot_sdk.replies import cut

MAX_TEXT = 65_536
MAX_FIELD_PARTS = 10_000
WITHOUT_CALL = 60.0
"""Seconds that a request waits when it belongs to no call; otherwise it waits as long as its call may take."""
GRACE = 1.0
"""Seconds by which the server's own word about a deadline may come later."""

PATH_ERRORS = (PermissionError, FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError, TypeError)
"""What the server's rule for paths raises, under the same name here."""

Settle = Callable[[wire.Message], None]


class WorkerHost(PackHost):
    """Speaks to the server for the one pack of this process."""

    def __init__(self, line: wire.Line) -> None:
        self._line = line
        self._pack = ""
        self._secrets: Mapping[str, str] = {}
        self._redact = Redactor({})
        self._config: Any = None
        self._imported = False
        self._numbers = itertools.count(1)
        self._waiting: dict[str, tuple[Call | None, Settle]] = {}

    def begin(self, pack: str, secrets: Mapping[str, str], redactor: Redactor) -> None:
        """Speak for *pack*, which was given *secrets*, from now on."""
        self._pack, self._secrets, self._redact = pack, secrets, redactor

    def note_import(self, config: Any) -> None:
        """Note that the pack is there, with *config* as its settings."""
        self._imported = True
        self._config = config

    def config(self) -> Any:
        """Return the pack's settings."""
        if not self._imported:
            raise NoConfig("settings can be read once the pack is imported: call ot_sdk.config() inside a tool")
        if self._config is None:
            raise NoConfig(f"pack '{self._pack}' has no settings: give it a dataclass named Config")
        return self._config

    def secret(self, name: str) -> Secret:
        """Return a secret that the pack was given."""
        if name not in self._secrets:
            raise SecretNotGranted(name, self._pack)
        return Secret(self._secrets[name])

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """Send a line for the server's log."""
        check_level(level)
        text = cut(self._redact.text(str(message)), MAX_TEXT)
        self._notify("log", {"level": level, "message": text, "fields": self._plain(fields)})

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Tell the server how far the call is."""
        if current_call.get() is not None:
            text = cut(self._redact.text(str(message)), MAX_TEXT)
            self._notify("progress", {"done": done, "total": total, "message": text})

    def idempotency_key(self) -> str:
        """Return the key of the running call."""
        call = current_call.get()
        return call.key if call else ""

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the value of another tool; blocks this thread."""
        return self._blocking(_tool_request(name, arguments))

    async def acall_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the value of another tool; the event loop goes on meanwhile."""
        return await self._await_reply(_tool_request(name, arguments))

    def ask_model(self, text: str, schema: Mapping[str, Any] | None) -> Any:
        """Ask the server's model and return its answer; blocks this thread."""
        return self._blocking(_model_request(text, schema))

    async def aask_model(self, text: str, schema: Mapping[str, Any] | None) -> Any:
        """Ask the server's model and return its answer, without blocking the event loop."""
        return await self._await_reply(_model_request(text, schema))

    def image(self, data: bytes, mime_type: str) -> dict[str, Any]:
        """Send the image for the reply, and return what stands for it."""
        # Few packs have images: the others need not pay for it at their start.
        from ot_sdk import images  # noqa: PLC0415 - as said

        block, value = images.image_block(data, mime_type), images.image_value(data, mime_type)
        self._notify("image", {"block": block, "name": value[images.BLOCK]})
        return value

    def open_file(self, path: str) -> BinaryIO:
        """Return the file that the server finds for *path*, open for reading; blocks this thread."""
        found = self._blocking(_path_request(path, directory=False))
        return open_found_file(path, found["at"], found["identity"])

    def open_directory(self, path: str) -> OpenDirectory:
        """Return the directory that the server finds for *path*, open; blocks this thread."""
        found = self._blocking(_path_request(path, directory=True))
        return open_found_directory(path, found["at"], found["identity"], found["hidden"])

    def require_writable(self, paths: Sequence[str]) -> None:
        """Check with the server that these files may be written; blocks this thread."""
        asked = _Request("require_writable", "the server", {"paths": [*paths]}, "asyncio.to_thread", _path_error)
        self._blocking(asked)

    def _blocking(self, asked: _Request) -> Any:
        asyncio = sys.modules.get("asyncio")
        if asyncio is not None and asyncio._get_running_loop() is not None:
            raise RuntimeError(f"it would block the event loop: write `await {asked.awaited}(...)`")
        replies: SimpleQueue[wire.Message] = SimpleQueue()
        id = self._ask(asked, replies.put)
        try:
            return asked.value_of(replies.get(timeout=_patience()))
        except Empty:
            raise asked.no_reply() from None
        finally:
            self._waiting.pop(id, None)

    async def _await_reply(self, asked: _Request) -> Any:
        import asyncio  # noqa: PLC0415 - costs half of a worker's start; whoever awaits has loaded it

        loop = asyncio.get_running_loop()
        reply: asyncio.Future[wire.Message] = loop.create_future()

        def settle(message: wire.Message) -> None:
            loop.call_soon_threadsafe(lambda: reply.done() or reply.set_result(message))

        id = self._ask(asked, settle)
        try:
            return asked.value_of(await asyncio.wait_for(reply, _patience()))
        except asyncio.TimeoutError:  # noqa: UP041 - another class than TimeoutError before Python 3.11
            raise asked.no_reply() from None
        finally:
            self._waiting.pop(id, None)

    def settle(self, reply: wire.Message) -> None:
        """Hand a reply to whoever waits for it; others are forgotten."""
        _, settle = self._waiting.pop(str(reply.get("id")), (None, None))
        if settle is not None:
            with suppress(RuntimeError):  # the event loop that waited is closed
                settle(reply)

    def abandon(self, call: Call) -> None:
        """Fail what *call* waits for: its thread must wake up to be interrupted."""
        for id, (owner, _) in list(self._waiting.items()):
            if owner is call:
                self.settle(wire.error(id, wire.CANCELLED, "the call was cancelled", kind="Cancelled"))

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        call = current_call.get()
        send_for_pack(self._line, wire.notification(method, {"id": call.id if call else None, **params}))

    def _plain(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        plain = {name: self._plain_field(value) for name, value in fields.items()}
        return plain if tagged.has_plain_keys(plain) else tagged.tagged("dict", list(plain.items()))

    def _plain_field(self, value: Any) -> Any:
        encoder = tagged.Encoder(max_nodes=MAX_FIELD_PARTS, redact=self._redact.text, redact_bytes=self._redact.data)
        try:
            return encoder.convert(value)
        except Exception:  # noqa: BLE001 - values run other people's code, and a note must not fail the call
            return f"<{type(value).__name__}>"

    def _ask(self, asked: _Request, settle: Settle) -> str:
        if not self._line.open:
            raise OutsideWorker(f"{asked.awaited.removeprefix('ot_sdk.')}()")
        call = current_call.get()
        id = f"w{next(self._numbers)}"
        self._waiting[id] = (call, settle)
        try:
            params = {**asked.params, "call": call.id if call else None}
            send_for_pack(self._line, wire.request(id, asked.method, params))
        except BaseException:  # too large, or cancelled meanwhile
            self._waiting.pop(id, None)
            raise
        return id


def _patience() -> float:
    call = current_call.get()
    return (max(call.seconds_left, 0) if call else WITHOUT_CALL) + GRACE


# ---------------------------------------------------------------- what a pack asks the server for


class _Request(NamedTuple):
    """A request: to whom, with what, what a coroutine should await instead, and what is raised when it fails."""

    method: str
    whom: str
    params: Mapping[str, Any]
    awaited: str
    failure: Callable[[str, str], Exception]

    def value_of(self, reply: wire.Message) -> Any:
        result = reply.get("result")
        if isinstance(result, dict):
            return tagged.decode(cast("dict[str, Any]", result).get("value"))
        error: Any = reply.get("error")
        if not isinstance(error, dict):
            raise self.failure("ProtocolError", "the server's reply holds neither a value nor an error")
        found = cast("dict[str, Any]", error)
        data: Any = found.get("data")
        kind = cast("dict[str, Any]", data).get("kind") if isinstance(data, dict) else ""
        raise self.failure(str(kind or "ToolFailed"), str(found.get("message", "")))

    def no_reply(self) -> Exception:
        return self.failure("ToolTimeout", f"{self.whom} did not answer in time")


def _tool_request(name: str, arguments: Mapping[str, Any]) -> _Request:
    params = {"tool": name, "arguments": tagged.encode(dict(arguments))}
    return _Request("call_tool", name, params, "ot_sdk.acall_tool", ToolCallFailed)


def _model_request(text: str, schema: Mapping[str, Any] | None) -> _Request:
    params = {"text": str(text), "schema": None if schema is None else tagged.encode(dict(schema))}
    name = "ot_sdk.llm.aask" if schema is None else "ot_sdk.llm.aextract"
    return _Request("ask_model", "the model", params, name, _chat_error)


def _path_request(path: str, *, directory: bool) -> _Request:
    name = "asyncio.to_thread"
    return _Request("find_path", "the server", {"path": path, "directory": directory}, name, _path_error)


def _path_error(kind: str, message: str) -> Exception:
    return next((error(message) for error in PATH_ERRORS if error.__name__ == kind), OSError(message))


def _chat_error(kind: str, message: str) -> Exception:
    return ValueError(message) if kind == "ValueError" else ChatError(kind, message)

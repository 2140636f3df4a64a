"""A small blocking client that drives a real worker process, as the server would."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import ot_sdk
from ot_sdk import tagged, wire
from pace import PATIENCE

BOOTSTRAP = Path(ot_sdk.__file__).with_name("bootstrap.py")
PACKS = Path(__file__).parent / "packs"


class Failed(Exception):
    """The worker answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.kind: str = error["data"]["kind"]
        self.traceback: str = error["data"]["traceback"]


class Gone(Exception):
    """The worker's output ended before the reply came."""


class Pending:
    """A request whose reply may not be there yet."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.replies: SimpleQueue[Any] = SimpleQueue()

    def reply(self, timeout: float = PATIENCE) -> Any:
        """Return the result of the reply."""
        message = self.replies.get(timeout=timeout)
        if message is None:
            raise Gone
        if "error" in message:
            raise Failed(message["error"])
        return message["result"]

    def value(self, timeout: float = PATIENCE) -> Any:
        """Return the value in the reply."""
        return tagged.decode(self.reply(timeout)["value"])


class WorkerClient:
    """One worker; everything that it sends is kept."""

    def __init__(self, python: str = sys.executable, wrapper: tuple[str, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [*wrapper, python, "-I", str(BOOTSTRAP)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr
        self.notes: list[dict[str, Any]] = []
        self.unknown: list[dict[str, Any]] = []
        self.on_call_tool: Callable[[dict[str, Any]], Any] = lambda params: None
        self.errors = bytearray()
        self.stderr_bytes = 0
        self.reader = wire.FrameSplitter()
        self._writer = wire.FrameWriter(self.stdin.fileno())
        self._pending: dict[str, Pending] = {}
        self._ids = itertools.count(1)
        self._noted = threading.Condition()
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._read, self._drain)]
        for thread in self._threads:
            thread.start()

    # ---------------------------------------------------------------- talking

    def init(self, file: Path, /, pack: str | None = None, **params: Any) -> Any:
        """Let the worker load the pack in *file*, and return what it says about itself."""
        pack = pack or file.name.removesuffix("_tools.py")
        asked = {"protocol": wire.PROTOCOL, "pack": pack, "file": str(file), "directory": str(file.parent), **params}
        return self.request("init", asked).reply()

    def request(self, method: str, params: Any, id: str | None = None) -> Pending:
        """Send a request."""
        pending = self.expect(id or f"s{next(self._ids)}")
        self._writer.send(wire.request(pending.id, method, params))
        return pending

    def expect(self, id: str) -> Pending:
        """Wait for a reply to a request that is sent in some other way."""
        pending = self._pending[id] = Pending(id)
        return pending

    def begin(self, tool: str, /, ms: float = 20_000, **arguments: Any) -> Pending:
        """Call a tool without waiting for it."""
        return self.request("call", {"tool": tool, "arguments": tagged.encode(arguments), "ms": ms})

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """Return a tool's value."""
        return self.begin(tool, **arguments).value()

    def cancel(self, pending: Pending) -> None:
        """Cancel a call."""
        self._writer.send(wire.notification("cancel", {"id": pending.id}))

    def send_raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.stdin.write(data)

    # ---------------------------------------------------------------- looking

    def wait_for_note(
        self, method: str, match: Callable[[dict[str, Any]], bool] = lambda params: True
    ) -> dict[str, Any]:
        """Return the parameters of the first notification that matches, once it is there."""
        with self._noted:
            assert self._noted.wait_for(lambda: self._found(method, match) is not None, PATIENCE)
            found = self._found(method, match)
            assert found is not None
            return found

    def _found(self, method: str, match: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
        hits = (note["params"] for note in self.notes if note["method"] == method and match(note["params"]))
        return next(hits, None)

    def printed(self, pending: Pending) -> str:
        """Return what a call has printed so far."""
        mine = (n["params"] for n in self.notes if n["method"] == "print")
        return "".join(params["text"] for params in mine if params["id"] == pending.id)

    def error_text(self) -> str:
        """Return what stands on the worker's standard error, once it has ended."""
        self._threads[1].join(PATIENCE)
        return self.errors.decode(errors="replace")

    # ---------------------------------------------------------------- ending

    def end(self, timeout: float = PATIENCE) -> int:
        """Close the worker's input and return its exit status."""
        self.stdin.close()
        return self.wait(timeout)

    def wait(self, timeout: float = PATIENCE) -> int:
        """Return the exit status, once the worker has ended and all that it sent is read."""
        status = self.process.wait(timeout)
        for thread in self._threads:
            thread.join(PATIENCE)
        return status

    def close(self) -> None:
        """End the worker by force, if it is still there."""
        self.process.kill()
        self.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()

    # ---------------------------------------------------------------- its own threads

    def _read(self) -> None:
        for message in self.reader.read(self.stdout.fileno()):
            if "method" not in message:
                self._settle(message)
            elif "id" in message:
                threading.Thread(target=self._serve, args=(message,), daemon=True).start()
            else:
                with self._noted:
                    self.notes.append(message)
                    self._noted.notify_all()
        for pending in list(self._pending.values()):
            pending.replies.put(None)

    def _settle(self, message: dict[str, Any]) -> None:
        pending = self._pending.pop(message["id"], None)
        if pending is None:
            self.unknown.append(message)
        else:
            pending.replies.put(message)

    def _serve(self, message: dict[str, Any]) -> None:
        try:
            reply = wire.result(message["id"], {"value": tagged.encode(self.on_call_tool(message["params"]))})
        except Exception as error:  # noqa: BLE001 - a test's stand-in for a tool
            reply = wire.error(message["id"], wire.TOOL_FAILED, str(error), kind=type(error).__name__)
        with suppress(OSError):  # the worker that asked may be gone
            self._writer.send(reply)

    def _drain(self) -> None:
        while data := self.stderr.read(1 << 16):
            self.stderr_bytes += len(data)
            self.errors += data
            del self.errors[: -(1 << 16)]


NewWorker = Callable[..., WorkerClient]
"""The fixture that starts workers; it may be given an interpreter."""
WritePack = Callable[[str], Path]
"""The fixture that writes a pack called trial."""

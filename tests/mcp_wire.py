"""A raw MCP client over standard input and output, for tests that must see every byte.

    with WireServer.start([sys.executable, "-m", "..."], cwd=work, env=environment) as server:
        reply = server.run("1 + 1")          # tools/call of run: reply.text, reply.is_error, reply.meta, reply.raw_line
        server.request("tools/list")         # any method: reply.result or reply.error, as JSON
        number = server.send("tools/call", {...}); server.cancel(number); server.wait(number, 5)
        server.send_raw(b"junk\\n"); server.read_line(2)
        assert server.ping() < 0.05 and server.stdout_junk == []
        server.snapshot()                    # fds, threads, children and memory of the server, from /proc

The server runs in a session of its own. A thread reads all that it writes, so nothing blocks unless a test says
``hold_reading()``. Everything blocks the calling thread and has a timeout; async tests wrap it in
``anyio.to_thread.run_sync``. Waiting ends with ServerGone as soon as the server closes its output.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from server_process import ServerProcess

HANDSHAKE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}}
CHUNK = 1 << 16


class ServerGone(Exception):
    """The server closed its output while an answer was awaited."""


@dataclass(frozen=True)
class WireReply:
    """One JSON-RPC answer, and the line that carried it."""

    message: Mapping[str, Any] = field(repr=False)
    raw_line: bytes = field(repr=False)
    at: float = 0.0

    @property
    def id(self) -> Any:
        """The id of the request that it answers."""
        return self.message.get("id")

    @property
    def result(self) -> dict[str, Any]:
        """The result, empty for an error."""
        return self.message.get("result") or {}

    @property
    def error(self) -> dict[str, Any]:
        """The JSON-RPC error, empty for a result."""
        return self.message.get("error") or {}

    @property
    def texts(self) -> list[str]:
        """The text blocks of a tool's answer."""
        return [block["text"] for block in self.result.get("content", []) if block.get("type") == "text"]

    @property
    def text(self) -> str:
        """All text of a tool's answer, or the message of a JSON-RPC error."""
        return "\n".join(self.texts) if self.result else str(self.error.get("message", ""))

    @property
    def is_error(self) -> bool:
        """Whether the tool, or the protocol, says that it failed."""
        return bool(self.error) or bool(self.result.get("isError"))

    @property
    def meta(self) -> dict[str, Any]:
        """What the reply says about its run: engine, run id, ms, and the kind of error."""
        return (self.result.get("_meta") or {}).get("onetool") or {}


class WireServer(ServerProcess):
    """A server process at the other end of two pipes."""

    def __init__(self, args: Sequence[str], *, reading: bool = True, **how: Any) -> None:
        """Start *args*; use ``start``."""
        super().__init__(args, **how)
        self._stdin = self.input.fileno()
        self._stdout = self.output.fileno()
        os.set_blocking(self._stdin, False)
        self._ids = itertools.count(1)
        self._news = threading.Condition()
        self._writing = threading.Lock()
        self._taken = 0
        self._ended = False
        self._may_read = threading.Event()
        if reading:
            self._may_read.set()
        self.lines: list[bytes] = []
        """Every line of standard output so far, without its line end."""
        self.stdout_junk: list[bytes] = []
        """Those that are not JSON-RPC messages, in strict JSON and UTF-8; a last line without an end counts too."""
        self.notifications: list[dict[str, Any]] = []
        self.answers: dict[Any, list[WireReply]] = {}
        """All answers by id; more than one under an id is the server's mistake."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @classmethod
    def start(
        cls,
        args: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        handshake: bool = True,
        reading: bool = True,
        memory_bytes: int | None = None,
        warm: bool = True,
    ) -> Self:
        """Start *args* in a session of its own, as a fork with all imports done unless it is not to be *warm*.

        *memory_bytes* bounds its address space (``ulimit -v``).
        """
        server = cls(args, reading=reading, cwd=cwd, env=env, memory_bytes=memory_bytes, warm=warm)
        if handshake:
            try:
                server.initialize()
            except BaseException:
                server.kill()
                raise
        return server

    # ---------------------------------------------------------------- talking

    def initialize(self, timeout: float = 30.0) -> WireReply:
        """Shake hands as a client of the older era does."""
        reply = self.request("initialize", HANDSHAKE, timeout=timeout)
        self.notify("notifications/initialized")
        return reply

    def run(self, command: str, *, timeout: float = 30.0) -> WireReply:
        """Call the tool run and return its answer."""
        return self.wait(self.send_run(command), timeout)

    def send_run(self, command: str, *, progress_token: str | None = None) -> int:
        """Call the tool run and return the request's id at once."""
        params: dict[str, Any] = {"name": "run", "arguments": {"command": command}}
        return self.send(
            "tools/call", params | ({"_meta": {"progressToken": progress_token}} if progress_token else {})
        )

    def request(self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float = 30.0) -> WireReply:
        """Send a request and return its answer."""
        return self.wait(self.send(method, params), timeout)

    def send(self, method: str, params: Mapping[str, Any] | None = None, *, id: Any = None) -> Any:
        """Send a request and return its id at once."""
        number = next(self._ids) if id is None else id
        self._send_message({"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params or {})})
        return number

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        self._send_message({"jsonrpc": "2.0", "method": method, "params": dict(params or {})})

    def cancel(self, number: Any) -> None:
        """Say that the answer to a request is no longer wanted."""
        self.notify("notifications/cancelled", {"requestId": number, "reason": "test"})

    def ping(self, timeout: float = 30.0) -> float:
        """Return how many seconds a ping takes."""
        started = time.perf_counter()
        self.request("ping", timeout=timeout)
        return time.perf_counter() - started

    def send_raw(self, data: bytes, *, timeout: float = 30.0) -> None:
        """Write bytes as they are.

        Raises:
            TimeoutError: The server does not read them.
            BrokenPipeError: It has closed its input.
        """
        end = time.monotonic() + timeout
        view = memoryview(data)
        with self._writing:
            while view:
                if not select.select([], [self._stdin], [], max(end - time.monotonic(), 0))[1]:
                    raise TimeoutError(f"the server left {len(view)} bytes unread for {timeout} s")
                with contextlib.suppress(BlockingIOError):
                    view = view[os.write(self._stdin, view) :]

    def _send_message(self, message: Mapping[str, Any]) -> None:
        self.send_raw(json.dumps(message).encode() + b"\n")

    # ---------------------------------------------------------------- listening

    def wait(self, number: Any, timeout: float = 30.0, *, nth: int = 0) -> WireReply:
        """Return the first answer to the request of that id, or a later one.

        Raises:
            TimeoutError: There is none in time.
            ServerGone: There will be none.
        """
        with self._news:
            self._news.wait_for(lambda: len(self.answers.get(number, ())) > nth or self._ended, timeout)
            if len(self.answers.get(number, ())) > nth:
                return self.answers[number][nth]
        if self._ended:
            raise ServerGone(f"no answer to {number}: exit code {self.process.poll()}\n{self.stderr_text()[-2000:]}")
        raise TimeoutError(f"no answer to request {number} in {timeout} s")

    def read_line(self, timeout: float = 30.0) -> bytes:
        """Return the next line of standard output that no earlier ``read_line`` has returned."""
        with self._news:
            self._news.wait_for(lambda: len(self.lines) > self._taken or self._ended, timeout)
            if len(self.lines) == self._taken:
                raise ServerGone("no more lines") if self._ended else TimeoutError(f"no line in {timeout} s")
            self._taken += 1
            return self.lines[self._taken - 1]

    def hold_reading(self) -> None:
        """Stop taking the server's output; at most what one read returns is still taken."""
        self._may_read.clear()

    def resume_reading(self) -> None:
        """Take the server's output again."""
        self._may_read.set()

    def _read(self) -> None:
        parts: list[bytes] = []
        while self._may_read.wait() and (chunk := os.read(self._stdout, CHUNK)):
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                self._take(b"".join([*parts, end]))
                parts.clear()
            parts.append(rest)
        with self._news:
            if left := b"".join(parts):
                self.stdout_junk.append(left)
            self._ended = True
            self._news.notify_all()

    def _take(self, line: bytes) -> None:
        message = strict_json(line)
        with self._news:
            self.lines.append(line)
            if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                self.stdout_junk.append(line)
            elif "method" in message:
                self.notifications.append(message)
            else:
                self.answers.setdefault(message.get("id"), []).append(WireReply(message, line, time.monotonic()))
            self._news.notify_all()

    # ---------------------------------------------------------------- the end

    def close_stdin(self) -> None:
        """Close the server's input, which asks it to end."""
        with self._writing:
            super().close_stdin()

    def _ask_to_end(self) -> None:
        self.close_stdin()

    def _heard_out(self) -> None:
        self._may_read.set()
        self._reader.join(30)


class NotStrict(ValueError):
    """The text is JSON only by a lenient reading."""


def strict_json(line: bytes | str, *, unique_keys: bool = True) -> Any:
    """Return the value of a JSON text, or None when it is not strict: NaN, doubled keys, lone surrogates, not UTF-8."""
    try:
        text = line.decode() if isinstance(line, bytes) else line
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique if unique_keys else dict)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value


def _refuse(constant: str) -> None:
    raise NotStrict(constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotStrict("a key stands twice")
    return found

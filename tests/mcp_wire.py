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
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import warm_start
from warm_start import WarmProcess

HANDSHAKE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}}
CHUNK = 1 << 16
PAGE = os.sysconf("SC_PAGE_SIZE")


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


@dataclass(frozen=True)
class Snapshot:
    """What a process and those below it hold."""

    fds: int
    threads: int
    children: tuple[int, ...]
    rss_mb: float


@dataclass(frozen=True)
class ProcessStat:
    """One process as /proc tells of it."""

    pid: int
    parent: int
    session: int
    threads: int
    rss_mb: float


def process_stat(pid: int) -> ProcessStat | None:
    """Return the process *pid*, or nothing when it has gone or is only waiting to be buried."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - sampled a hundred times a second
            # The name may hold spaces and brackets; fields count from behind its last one.
            fields = file.read().rpartition(b") ")[2].split()
    except OSError:
        return None
    parent, session, threads, pages = (int(fields[index]) for index in (1, 3, 17, 21))
    # The first thread of a killed process may be over while another still takes in a last read.
    if fields[0] in (b"Z", b"X") and threads <= 1:
        return None
    return ProcessStat(pid, parent, session, threads, pages * PAGE / (1 << 20))


def process_tree(root: int) -> list[ProcessStat]:
    """Return *root* and what it has started: its descendants, and orphans that stayed in its session."""
    stats = [stat for name in os.listdir("/proc") if name.isdigit() and (stat := process_stat(int(name)))]  # noqa: PTH208 - as above
    members = {root}
    grown = True
    while grown:
        below = {s.pid for s in stats if s.parent in members or s.session == root}
        grown = not below <= members
        members |= below
    return [stat for stat in stats if stat.pid in members]


def _start_cold(
    args: Sequence[str], *, cwd: Path | None, env: Mapping[str, str] | None, stderr: int, memory_bytes: int | None
) -> subprocess.Popen[bytes]:
    command = list(args)
    if memory_bytes:
        command = ["/bin/sh", "-c", 'ulimit -v "$0" && exec "$@"', str(memory_bytes >> 10), *command]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd=cwd,
        env=None if env is None else dict(env),
        start_new_session=True,
        bufsize=0,
    )


class WireServer:
    """A server process at the other end of two pipes."""

    def __init__(self, process: subprocess.Popen[bytes] | WarmProcess, stderr: Any, *, reading: bool = True) -> None:
        """Take over a started process; use ``start``."""
        assert process.stdin
        assert process.stdout
        self._process = process
        self._stderr = stderr
        self._last_words = ""
        self._stdin = process.stdin.fileno()
        self._stdout = process.stdout.fileno()
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
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        begin = warm_start.start if warm and warm_start.can_be_warm(args) else _start_cold
        process = begin(args, cwd=cwd, env=env, stderr=stderr.fileno(), memory_bytes=memory_bytes)
        server = cls(process, stderr, reading=reading)
        if handshake:
            try:
                server.initialize()
            except BaseException:
                server.kill()
                raise
        return server

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
            raise ServerGone(f"no answer to {number}: exit code {self._process.poll()}\n{self.stderr_text()[-2000:]}")
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

    def stderr_text(self) -> str:
        """Return all that the server has written to standard error, also after it was closed."""
        if self._stderr.closed:
            return self._last_words
        return os.pread(self._stderr.fileno(), os.fstat(self._stderr.fileno()).st_size, 0).decode(errors="replace")

    def wait_for_stderr(self, words: str, seconds: float = 30.0) -> None:
        """Return once the server has written *words* to standard error."""
        end = time.monotonic() + seconds
        while words not in (said := self.stderr_text()):
            if time.monotonic() > end:
                raise TimeoutError(f"standard error does not say {words!r} within {seconds} s: {said}")
            time.sleep(0.01)

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

    # ---------------------------------------------------------------- the process

    @property
    def pid(self) -> int:
        """The server's process id, which is also its session's."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def rss_mb(self) -> float:
        """Return the resident memory of the server alone, in MiB."""
        stat = process_stat(self.pid)
        return stat.rss_mb if stat else 0.0

    def fds(self) -> list[str]:
        """Return what the server's descriptors lead to."""
        found: list[str] = []
        for entry in Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.append(f"{entry.name}: {entry.readlink()}")
        return sorted(found)

    def threads(self) -> int:
        """Return how many threads the server has."""
        stat = process_stat(self.pid)
        return stat.threads if stat else 0

    def children(self) -> tuple[int, ...]:
        """Return the processes below the server, and orphans of its session."""
        return tuple(stat.pid for stat in process_tree(self.pid) if stat.pid != self.pid)

    def snapshot(self) -> Snapshot:
        """Return what the server holds now."""
        return Snapshot(len(self.fds()), self.threads(), self.children(), self.rss_mb())

    def close_stdin(self) -> None:
        """Close the server's input, which asks it to end."""
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError), self._writing:
            self._process.stdin.close()

    def close(self, timeout: float = 30.0) -> int:
        """Close the input, wait for the server to end by itself, and return its exit code; kill it if it does not."""
        self.close_stdin()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        return self.kill()

    def kill(self, number: int = signal.SIGKILL) -> int:
        """Send a signal to the server and all of its session, bury it, and return its exit code."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        code = self._process.wait(30)
        self._may_read.set()
        self._reader.join(30)
        self.close_stdin()
        assert self._process.stdout
        self._process.stdout.close()
        self._last_words = self.stderr_text()
        self._stderr.close()
        return code


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

"""ZygoteProcess: the server's end of a zygote, which hands out its children."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import select
import signal
import socket
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ot.errors import EngineCrashed
from ot.runtime.engines.forked.cgroup import GroupReport, JailGroup
from ot.runtime.engines.forked.child_process import Child, Told
from ot.runtime.engines.forked.jail_command import ZygoteCommand

logger = logging.getLogger(__name__)

START_SECONDS = 10.0
END_SECONDS = 1.0
"""How long a process may take to end that has closed its socket."""
MAX_ANSWER = 1 << 16
MAX_STDERR = 2000
MAX_ASKED = 64
"""Requests that wait for their answer; many more would not fit into the socket, and others wait here."""
FULL_PAUSE = 0.005
"""Between two tries to send to a zygote that has more to read than its socket holds."""
Commands = Callable[[int], Sequence[ZygoteCommand]]
Handed = tuple[socket.socket, int, int]
"""A child's connection, its pidfd, and its number as the zygote knows it."""


@dataclass(frozen=True)
class JailReport:
    """What a zygote told about its jail."""

    layers: Mapping[str, Sequence[str]]
    """By layer, what it should have stopped and did not."""
    user: str
    landlock: int
    namespaces: bool
    notes: tuple[str, ...] = field(default=())
    """Why stronger ways to start it failed."""
    group: GroupReport | None = None
    """What its control group limits."""


class ZygoteProcess:
    """A zygote that runs; every request is answered in the order of requests."""

    def __init__(
        self, commands: Commands, environ: Mapping[str, str], *, jailed: bool, group: JailGroup | None = None
    ) -> None:
        """Start the first of *commands* in *group*, which ends with it; later ones are tried when it fails."""
        self._environ = environ
        self._group = group
        self._jailed = jailed
        self._waiting: deque[asyncio.Future[Handed]] = deque()
        self._asked_how: dict[int, Told] = {}
        self._turns = asyncio.Semaphore(MAX_ASKED)
        self._notes: list[str] = []
        self._commands = commands
        self._left = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self.on_warm: Callable[[], None] = lambda: None
        self._spawn()

    def _spawn(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = self._commands(theirs.fileno())[self._left]
            argv = self._group.joining(command.argv) if self._group else command.argv
            self._process = subprocess.Popen(
                argv, env=dict(self._environ), pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/" if self._jailed else None,
                start_new_session=True,
            )  # fmt: skip
        self._pidfd = os.pidfd_open(self._process.pid)
        self._control = ours
        self._command = command
        settings: dict[str, Any] = {
            "jailed": self._jailed,
            "namespaces": command.namespaces,
            "read_paths": command.read_paths,
            "imports": command.imports,
            "server": os.getpid(),
        }
        with contextlib.suppress(OSError):  # it died at once: the wait for its report tells why
            ours.send(json.dumps(settings).encode())

    # ---------------------------------------------------------------- the start

    async def await_report(self) -> JailReport:
        """Wait for the zygote's self-test and return the layers that hold.

        Raises:
            EngineCrashed: It could not be started in any way, or was killed: no reason to try a weaker way.
        """
        while "failed" in (report := await self._report()):
            self._notes.append(report["failed"])
            await asyncio.to_thread(self._stop)
            self._left += 1
            if report.get("killed"):
                raise EngineCrashed(report["failed"])
            if self._left >= len(self._commands(0)):
                raise EngineCrashed("; ".join(self._notes))
            self._spawn()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._control.fileno(), self._read_answer)
        group = self._group.report(self._process.pid) if self._group else None
        layers = report["layers"] | ({"cgroup": group.missing} if group else {})
        return JailReport(
            layers, report["user"], report["landlock"], self._command.namespaces, tuple(self._notes), group
        )

    async def _report(self) -> dict[str, Any]:
        self._control.setblocking(False)
        loop = asyncio.get_running_loop()
        news = asyncio.Event()
        for fd in (self._control.fileno(), self._pidfd):
            loop.add_reader(fd, news.set)
        try:
            async with asyncio.timeout(START_SECONDS):
                await news.wait()
            answer = self._control.recv(MAX_ANSWER)
        except TimeoutError:
            return {"failed": "it did not start in time"}
        except OSError:  # it is dead, though another may still hold its socket, or has not read what it was sent
            answer = b""
        finally:
            for fd in (self._control.fileno(), self._pidfd):
                loop.remove_reader(fd)
        return json.loads(answer) if answer else await asyncio.to_thread(self._last_words)

    def _last_words(self) -> dict[str, Any]:
        stderr = self._process.stderr
        assert stderr is not None
        ending = select.poll()  # select() takes no number above 1023, and a server may have more files open
        ending.register(self._pidfd, select.POLLIN)
        ending.poll(END_SECONDS * 1000)
        self._control.close()
        code = self._kill()
        os.set_blocking(stderr.fileno(), False)  # what it had started may still hold the other end for a moment
        text = (stderr.read(MAX_STDERR) or b"").decode(errors="replace").strip()
        name = Path(self._command.argv[0]).name
        killed = code < 0 or code == 128 + signal.SIGKILL  # as bubblewrap tells it
        words = text.splitlines()[-1] if text else "it ended while it started"
        how = f"killed by {_signal_name(-code if code < 0 else signal.SIGKILL)} while it started" if killed else words
        return {"failed": f"{name}: {how}", "killed": killed}

    # ---------------------------------------------------------------- children

    @property
    def alive(self) -> bool:
        """Whether it still answers."""
        return self._loop is not None

    async def fork(self, memory_bytes: int, cpu_seconds: float) -> Child:
        """Return a new child under these limits, which has yet to lock itself up.

        Raises:
            EngineCrashed: None is available.
        """
        await self._turns.acquire()  # given back by the answer, also when nobody waits for it any more
        if self._loop is None:
            self._turns.release()
            raise EngineCrashed("the zygote is not running")
        if self._group:
            self._group.allow(memory_bytes)
        answer: asyncio.Future[Handed] = self._loop.create_future()
        await self._ask(json.dumps({"memory_bytes": memory_bytes, "cpu_seconds": cpu_seconds}).encode())
        self._waiting.append(answer)
        try:
            connection, pidfd, number = await answer
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled() and not answer.exception():
                connection, pidfd, _ = answer.result()
                connection.close()
                os.close(pidfd)
            raise
        return await Child.connect(connection, pidfd, partial(self._tell_how, number), self._group)

    async def _ask(self, request: bytes) -> None:
        """Send a request once there is room for it: a zygote that is slow is not dead."""
        while self._loop is not None:
            try:
                self._control.send(request)
                return
            except BlockingIOError:
                try:
                    await asyncio.sleep(FULL_PAUSE)
                except asyncio.CancelledError:
                    self._turns.release()
                    raise
            except OSError as error:
                self._fail_waiting(str(error))
        self._turns.release()
        raise EngineCrashed("the zygote ended")

    def _tell_how(self, number: int, told: Told) -> None:
        """Let *told* know how a dead child ended, as soon as the zygote says so."""
        if self._loop is None:
            return told("its zygote died")
        self._asked_how[number] = told
        try:
            self._control.send(json.dumps({"how": number}).encode())
        except BlockingIOError:
            self._loop.call_later(FULL_PAUSE, self._tell_how, number, told)
        except OSError as error:
            self._fail_waiting(str(error))
        return None

    def _read_answer(self) -> None:
        try:
            answer, fds, _, _ = socket.recv_fds(self._control, MAX_ANSWER, 2)
        except BlockingIOError:
            return
        except OSError as error:
            return self._fail_waiting(str(error))
        if not answer:
            return self._fail_waiting("the zygote ended")
        told = json.loads(answer)
        if "warm" in told:
            return self.on_warm() if told["warm"] else None
        if "how" in told:
            tell = self._asked_how.pop(told["how"], None)  # none is left of a child that is forgotten already
            return tell(_how(told["status"])) if tell else None
        waiting = self._next_asked()
        if len(fds) != 2 or waiting is None or waiting.done():
            for fd in fds:
                os.close(fd)
            if waiting is not None and not waiting.done():
                waiting.set_exception(EngineCrashed(told.get("failed", "no child was handed over")))
            return None
        return waiting.set_result((socket.socket(fileno=fds[0]), fds[1], told["pid"]))

    def _fail_waiting(self, why: str) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._control.fileno())
            self._loop = None
        while waiting := self._next_asked():
            if not waiting.done():
                waiting.set_exception(EngineCrashed(why))
        while self._asked_how:
            self._asked_how.popitem()[1]("its zygote died")

    def _next_asked(self) -> asyncio.Future[Handed] | None:
        if not self._waiting:
            return None
        self._turns.release()
        return self._waiting.popleft()

    # ---------------------------------------------------------------- the end

    async def aclose(self) -> None:
        """End the zygote and all its children."""
        self._fail_waiting("the engine was closed")
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End the zygote and all its children, where no event loop is."""
        self._stop()
        if self._group:
            self._group.remove()

    def _stop(self) -> None:
        self._control.close()
        self._kill()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _kill(self) -> int:
        """End it, and what it had started before it could see to that itself; return its exit code."""
        if self._process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            os.close(self._pidfd)
        return self._process.wait()


def _how(status: int | None) -> str:
    if status is None:
        return "it ended"
    code = os.waitstatus_to_exitcode(status)
    return f"it ended with exit code {code}" if code >= 0 else f"killed by {_signal_name(-code)}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # those for real time have none
        return f"signal {number}"

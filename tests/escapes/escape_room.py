"""EscapeRoom: a server with things in it worth reaching, and eyes on everything around it."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from escapes.cases import Case
from escapes.listeners import Listeners
from escapes.process_sampler import ProcessSampler
from escapes.signs import Sight, escapes_seen
from mcp_wire import ServerGone, WireReply, WireServer
from pace import PATIENCE, patiently, times_as_slow
from settled import wait_until_settled

TESTS = Path(__file__).parents[1]
SERVER = Path(__file__).parent / "escape_server.py"
AS_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
"""Becomes an ordinary user without any capability; its files are those of the user who runs the tests."""
ADDRESS_SPACE = 4 << 30
REPLY_SECONDS = 12.0
MORE_TRIES = 2
ROOMS = {
    # The weakest jail of the default engine: only what needs no package, for a user whose files are the server's.
    "exact-as-user-no-namespaces": ["--exact", "--no-namespaces", "--as-user"],
    "portable": [],
    "exact": ["--exact"],
    "exact-no-namespaces": ["--exact", "--no-namespaces"],
    "exact-as-user": ["--exact", "--as-user"],
    "no-refusal": ["--no-refusal"],
}
"""Ways of running the server: stronger jails hold what the weakest holds, the last does not look at programs' text."""
DEFAULT, OTHER = list(ROOMS)[:2]
SHARE = 10
"""One case of so many, always the same ones, is tried on the other engine, too, whenever the tests run."""
TIMING = ("wall_over_s", "stall_ms_over")
CONFIG = """\
limits: {run_seconds: 2, call_seconds: 2, cpu_seconds: 1}
aliases: {ws: brave.search}
snippets: {hello: {body: '"hello {{ name }}"'}}
policy: {deny: [vault.wipe]}
"""


def marks_of(room: str, case: Case | None = None) -> tuple[pytest.MarkDecorator, ...]:
    """Return the marks of *case* in *room*: the soak tries every case in every room."""
    is_due = room == OTHER and (case is None or crc32(case.label.encode()) % SHARE == 0)
    return () if room == DEFAULT or is_due else (pytest.mark.soak,)


class EscapeRoom:
    """One long-lived test server; every case gets a scratch directory of its own outside the server's."""

    def __init__(self, directory: Path, listeners: Listeners, *options: str) -> None:
        """Start the server below *directory*, with options of its own."""
        self._directory = directory
        self._listeners = listeners
        self._side = str(directory / "side")
        self._command = [*(AS_USER if "--as-user" in options else ()), sys.executable, str(SERVER), *options]
        self.scratch: list[Path] = []
        (directory / "home" / ".onetool").mkdir(parents=True)
        (directory / "work").mkdir()
        (directory / "home" / ".onetool" / "onetool.yaml").write_text(CONFIG)
        self.server = self._started()
        self.baseline = self.server.snapshot()

    def _started(self) -> WireServer:
        server = WireServer.start(
            self._command, cwd=self._directory / "work", env=self._environment(), memory_bytes=ADDRESS_SPACE
        )
        # What a server does once, at its first run and its first snippet, is not to be taken for a case's doing.
        for command in ("1 + 1", "$hello name=you", "[brave.search(query=1), vault.read(key=1), echo.id(x=1)]"):
            assert not (reply := server.run(command)).is_error, reply.text
        wait_until_settled(server)
        return server

    def _environment(self) -> dict[str, str]:
        python = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
        ours = {"HOME": str(self._directory / "home"), "PYTHONPATH": python, "OT_SIDE": self._side}
        # In CI nobody sits at a terminal, so that no question waits for an answer there.
        return {**os.environ, **ours, "SBX_CANARY": "canary-env-7f3a", "CI": "1"}

    def escapes(self, case: Case) -> list[str]:
        """Run every command of *case*, and return the signs of an escape with what else was seen."""
        return [found for number in range(len(case.commands)) for found in self._escapes(case, number)]

    def _escapes(self, case: Case, number: int) -> list[str]:
        for _ in range(MORE_TRIES):
            found = self._signs_of(case, number)
            # A busy machine can make anything late, but hardly three times in a row; all other signs count at once.
            if not found or not all(sign.startswith(TIMING) for sign in found):
                break
        else:
            found = self._signs_of(case, number)
        return [f"command {number}, {sign}" for sign in found]

    def _signs_of(self, case: Case, number: int) -> list[str]:
        """Run a command once, and return the signs of an escape, each with what else was seen."""
        sight = self.try_command(case, case.commands[number], number)
        found = escapes_seen(case.escaped_if, sight)
        if found and all(sign.startswith(TIMING) for sign in found):
            slowness = times_as_slow()
            found = escapes_seen(
                {sign: case.escaped_if[sign] * slowness for sign in TIMING if sign in case.escaped_if}, sight
            )
        return [f"{sign}; {sight}" for sign in found]

    def try_command(self, case: Case, command: str, number: int = 0) -> Sight:
        """Run one command of a case under watch."""
        scratch = self._scratch(f"{case.id}-{number}-{len(self.scratch)}")
        hits, lines = self._listeners.hits, len(self.server.lines)
        self.ask("reset")
        started = time.monotonic()
        with ProcessSampler(self.server.pid) as sampler:
            reply = self._run(self._filled(command, scratch))
        drop = scratch / "drop"
        if reply is None:
            wall, alive = time.monotonic() - started, self.server.alive
            self._begin_again()
            return Sight(wall_seconds=wall, growth=sampler.growth, alive=alive, drop=drop)
        return Sight(
            reply=reply,
            wall_seconds=reply.at - started,
            growth=sampler.growth,
            host=self.ask("report"),
            other_lines=self._other_lines(lines, reply),
            alive=self.server.alive,
            drop=drop,
            listener_hits=self._listeners.hits - hits,
            calls_alive_after=self._alive_after(case.escaped_if.get("calls_alive_after_s")),
            next_reply=self._run(self._filled(case.then, scratch)) if case.then else None,
        )

    def _begin_again(self) -> None:
        """Start a new server, so that one escape does not look like many."""
        self.server.kill()
        Path(self._side).unlink()
        self.server = self._started()

    def ask(self, request: str) -> dict[str, Any]:
        """Return what the server's side channel answers."""
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(PATIENCE)
            channel.connect(self._side)
            channel.sendall(request.encode())
            return json.loads(b"".join(iter(lambda: channel.recv(1 << 16), b"")))

    def _scratch(self, name: str) -> Path:
        scratch = self._directory / "scratch" / name
        drop = scratch / "drop"
        drop.mkdir(parents=True)
        drop.chmod(0o777)
        (scratch / "canary.txt").write_text("canary-file-7f3a")
        self.scratch.append(scratch)
        return scratch

    def _filled(self, code: str, scratch: Path) -> str:
        places = {"TMP": scratch, "HOST_PID": self.server.pid}
        for name, value in places.items():
            code = code.replace(f"{{{name}}}", str(value))
        return self._listeners.named(code)

    def _run(self, command: str) -> WireReply | None:
        try:
            return self.server.run(command, timeout=REPLY_SECONDS)
        except (TimeoutError, ServerGone, BrokenPipeError):
            return None

    def _other_lines(self, first: int, reply: WireReply) -> tuple[bytes, ...]:
        """Return what came over the wire since, up to the answer to a ping that comes after all of it."""
        pong = self.server.request("ping").raw_line
        return tuple(line for line in self.server.lines[first:] if line not in (pong, reply.raw_line))

    def _alive_after(self, seconds: float | None) -> int:
        """Return how many calls still run after *seconds*."""
        if seconds is None:
            return 0
        for _ in patiently(seconds):
            if not self.ask("report")["alive"]:
                return 0
        return self.ask("report")["alive"]

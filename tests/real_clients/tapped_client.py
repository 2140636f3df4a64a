"""A client's own program in the home of a user, with everything noted that it says to OneTool and OneTool to it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import tomllib
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pace import PATIENCE, patiently
from real_clients.client_programs import ClientProgram
from real_clients.model_server import ScriptedModel
from server_process import process_stat
from shared_bed import SharedBed, own_command

SECONDS = 90.0
"""How long a client may take on a machine whose cores are all busy."""
AGAIN_SECONDS = 5.0
TASK = "Do it."
ROWS, COLUMNS = 50, 160
ESCAPE = re.compile(r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|[\[(][0-9;?<>=]*[ -/]*[@-~])|\s")
ASKS_TERMINAL = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62;c"}
"""What a program asks its terminal, and the answer: where the cursor is, and what kind of terminal it is."""


@dataclass(frozen=True)
class Tap:
    """A command that stands for ``onetool``, and notes what a client and OneTool say to each other."""

    place: Path

    @classmethod
    def make(cls, place: Path, onetool: str = own_command()[0]) -> Tap:
        """Make the command in the new directory *place*, before what a shell starts as *onetool*."""
        place.mkdir()
        tap = cls(place)
        tap.command.write_text(f'#!/bin/sh\ntee -a {place}/said | {onetool} "$@" | tee -a {place}/heard\n')
        tap.command.chmod(0o755)
        return tap

    @property
    def command(self) -> Path:
        """The command that the client starts."""
        return self.place / "onetool"

    @property
    def said(self) -> list[dict[str, Any]]:
        """What the client has said to OneTool so far."""
        file = self.place / "said"
        # The last line may not be whole yet.
        return [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]] if file.exists() else []


@dataclass(frozen=True)
class TappedClient:
    """A client that is connected to OneTool, and to a model on loopback."""

    program: ClientProgram
    house: SharedBed
    model: ScriptedModel
    place: Path
    onetool: str = own_command()[0]
    """What the shell starts behind the tap."""

    def connect(self) -> None:
        """Connect it as its user does, with a tap between it and OneTool, and set it up for the model."""
        file, command = self.settings, own_command()[0]
        file.unlink(missing_ok=True)
        if self.program.is_known:
            done = self.house.typed("connect", self.program.client, "--yes")
            assert done.returncode == 0, done.stderr
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            entry = {"type": "local", "command": [command, "serve", "--shared"], "timeout": 60_000}
            file.write_text(json.dumps({"mcp": {"onetool": entry}}))
        tap = Tap.make(self.place, self.onetool)
        assert command in file.read_text()
        file.write_text(file.read_text().replace(command, str(tap.command)))
        self.program.set_up(file, self.house.cwd, self.model.address)

    @property
    def settings(self) -> Path:
        """The client's own file."""
        return self.house.home / self.program.settings

    def other_settings(self) -> dict[str, Any]:
        """Return what the client's own file says but for OneTool."""
        text = self.settings.read_text()
        read: dict[str, Any] = tomllib.loads(text) if self.settings.suffix == ".toml" else json.loads(text)
        for key in ("mcpServers", "mcp_servers"):
            read.setdefault(key, {}).pop("onetool", None)
            if not read[key]:
                del read[key]
        return read

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the client."""
        own = {name: value.format(model=self.model.address) for name, value in self.program.env.items()}
        return self.house.environment(TERM="xterm-256color", **own)

    @property
    def said(self) -> list[dict[str, Any]]:
        """What the client has said to OneTool so far."""
        return Tap(self.place).said

    # ------------------------------------------------------------ without a terminal

    @contextmanager
    def given_task(self) -> Generator[subprocess.Popen[bytes]]:
        """Start it with a task and without a terminal."""
        command = [*self.program.command, *self.program.prompt, TASK, *self.program.options]
        with (self.place / "printed").open("wb") as printed:
            process = subprocess.Popen(
                command,
                cwd=self.house.cwd,
                # Claude Code's model is shown the tool without a search all the same, because the entry says so.
                env=self.environment | {"NO_COLOR": "1", "ENABLE_TOOL_SEARCH": "true"},
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            end_group(process.pid)
            process.wait()

    def wait(self, process: subprocess.Popen[bytes], is_so: Callable[[], bool], what: str) -> None:
        """Return once something *is_so*; fail when the client ends before that."""
        for _ in patiently(SECONDS):
            if is_so():
                return
            if process.poll() is not None:
                break
        raise AssertionError(f"no {what}: {self.printed()}\nthe model was shown: {self.model.shown}")

    def press_ctrl_c(self, process: subprocess.Popen[bytes]) -> None:
        """Send what a terminal sends to the client and to all that it has started in its group; twice if need be."""
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
                return
        raise AssertionError(f"the client goes on after Ctrl-C: {self.printed()}")

    def printed(self) -> str:
        """Return the end of what the client printed."""
        return (self.place / "printed").read_text(errors="replace")[-3000:]

    # ------------------------------------------------------------ at a terminal

    @contextmanager
    def at_terminal(self) -> Generator[Terminal]:
        """Start it with a task at a terminal."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.house.cwd)
            command = [*self.program.command, TASK, *self.program.options]
            os.execve(command[0], command, self.environment)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.set_blocking(terminal, False)
        try:
            yield Terminal(terminal)
        finally:
            os.close(terminal)
            end_group(pid)
            os.waitpid(pid, 0)


@dataclass
class Terminal:
    """A terminal with a person before it, who reads what appears and presses keys."""

    descriptor: int
    unread: str = ""

    def press(self, keys: str) -> None:
        """Press *keys*."""
        os.write(self.descriptor, keys.encode())

    def read_until(self, *words: str) -> None:
        """Return once *words* have appeared, one after the other, whatever the spaces between their letters."""
        wanted = [re.sub(r"\s", "", word) for word in words]
        for _ in patiently(SECONDS):
            self._read()
            while wanted and wanted[0] in self.unread:
                self.unread = self.unread.partition(wanted.pop(0))[2]
            if not wanted:
                return
        raise AssertionError(f"{wanted[0]!r} did not appear in: {self.unread[-3000:]}")

    def look_until(self, is_so: Callable[[], bool], again: str = "") -> None:
        """Return once something *is_so* elsewhere, reading meanwhile, and pressing keys *again* from time to time."""
        for _ in range(round(SECONDS / AGAIN_SECONDS)):
            for _ in patiently(AGAIN_SECONDS):
                self._read()
                if is_so():
                    return
            self.press(again)
        raise AssertionError(f"it did not come to that: {self.unread[-3000:]}")

    def _read(self) -> None:
        try:
            new = os.read(self.descriptor, 1 << 16)
        except (BlockingIOError, OSError):
            return
        for asked, answer in ASKS_TERMINAL.items():
            if asked in new:
                os.write(self.descriptor, answer)
        self.unread += ESCAPE.sub("", new.decode(errors="replace"))


def end_group(pid: int) -> None:
    """Kill a client with the processes that it has started and that are still in its session."""
    if process_stat(pid):
        os.killpg(pid, signal.SIGKILL)


def end_daemons(house: SharedBed) -> None:
    """End what Codex at a terminal leaves running: programs that it has put into the home."""
    programs = os.fsencode(house.home / ".codex")
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(programs):
                os.kill(int(entry.name), signal.SIGKILL)

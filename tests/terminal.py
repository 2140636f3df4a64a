"""A person at a terminal: a command on a pseudo-terminal that controls it, and what is typed there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pace import PATIENCE

ONETOOL = str(Path(sys.executable).with_name("onetool"))


@dataclass
class Terminal:
    """A command at a terminal, and all that it has shown."""

    process: subprocess.Popen[bytes]
    screen: int
    shown: str = ""

    @property
    def output(self) -> str:
        """What it has written to a standard output that is not the terminal."""
        assert self.process.stdout
        return self.process.stdout.read().decode()

    def read_until(self, words: str) -> str:
        """Return what was shown when *words* are among it.

        Raises:
            EOFError: The command has ended before.
        """
        end = time.monotonic() + PATIENCE
        while words not in self.shown:
            assert select.select([self.screen], [], [], max(end - time.monotonic(), 0))[0], self.shown
            try:
                part = os.read(self.screen, 65536)
            except OSError:
                part = b""
            if not part:
                raise EOFError(self.shown)
            self.shown += part.decode(errors="replace").replace("\r\n", "\n")
        return self.shown

    def type(self, line: str) -> None:
        """Type *line*."""
        os.write(self.screen, line.encode() + b"\n")

    def end(self) -> tuple[int, str]:
        """Return the exit code and all that was shown, when the command has ended."""
        with contextlib.suppress(OSError):  # nobody holds the other end any more
            while select.select([self.screen], [], [], PATIENCE)[0] and (part := os.read(self.screen, 65536)):
                self.shown += part.decode(errors="replace").replace("\r\n", "\n")
        return self.process.wait(PATIENCE), self.shown


def _control() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def at_terminal(
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path | None = None,
    *,
    typed: str = "",
    stdout: int | None = None,
) -> Generator[Terminal]:
    """Yield *command* in the foreground of a terminal of its own, at which *typed* was typed too early."""
    screen, its = pty.openpty()
    os.write(screen, typed.encode())
    process = subprocess.Popen(
        command, stdin=its, stdout=stdout or its, stderr=its, cwd=cwd,
        env={"TERM": "xterm", "NO_COLOR": "1", **environment}, start_new_session=True, preexec_fn=_control,
    )  # fmt: skip
    os.close(its)
    try:
        yield Terminal(process, screen)
    finally:
        process.kill()
        process.wait(PATIENCE)
        os.close(screen)
        if process.stdout:
            process.stdout.close()

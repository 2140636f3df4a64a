"""Runs the program git with bounded time and output, in an environment that holds nothing but what is given."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BLOCK = 1 << 16
MAX_ERROR = 4000
STALL_SECONDS = 2.0
"""How long git may sleep and print nothing; after the second time it is taken to wait for what never comes."""


class GitMissing(RuntimeError):
    """There is no program git."""


class GitFailed(ValueError):
    """git refused; the text is what it said."""


@dataclass(frozen=True)
class GitProgram:
    """The program, where it works, what it may see, and how long and how much it may say."""

    environ: Mapping[str, str]
    directory: Path
    seconds: float
    max_bytes: int

    def run(self, *args: str, stdin: bytes = b"", accepted: Sequence[int] = (0,)) -> bytes:
        """Run git and return its output.

        Raises:
            GitMissing: It is not installed.
            GitFailed: It ended with another code than those accepted.
            TimeoutError: It took too long.
            ValueError: It printed too much.
        """
        with tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            process = subprocess.Popen(
                [git_path(), *args],
                cwd=self.directory,
                env=dict(self.environ),
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        with process:
            try:
                out, said = self._collect(process)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if process.returncode not in accepted:
            raise GitFailed(_first_line(said) or f"git {args[0]} ended with code {process.returncode}")
        return out

    def _collect(self, process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
        until, asleep = time.monotonic() + self.seconds, list[list[str]]()
        out, said = bytearray(), bytearray()
        assert process.stdout
        assert process.stderr
        with selectors.DefaultSelector() as waiting:
            waiting.register(process.stdout, selectors.EVENT_READ, out)
            waiting.register(process.stderr, selectors.EVENT_READ, said)
            while waiting.get_map():
                ready = waiting.select(max(0.0, min(until - time.monotonic(), STALL_SECONDS)))
                if not ready:
                    if time.monotonic() >= until:
                        raise TimeoutError(
                            f"git was not done after {self.seconds:g} s (tools.git.seconds): ask for less"
                        )
                    before, asleep = asleep, _times_asleep(process.pid)
                    if asleep and asleep == before:
                        raise TimeoutError(
                            "git waits for input that never comes: remove named pipes, such as one called .gitignore"
                        )
                for key, _ in ready:
                    block = os.read(key.fd, BLOCK)
                    if not block:
                        waiting.unregister(key.fileobj)
                    key.data.extend(block)
                del said[MAX_ERROR:]
                if len(out) > self.max_bytes:
                    raise ValueError(
                        f"git printed more than {self.max_bytes:,} bytes (tools.git.max_bytes): "
                        "ask for fewer commits, fewer paths or stat=True"
                    )
        process.wait(max(1.0, until - time.monotonic()))
        return bytes(out), bytes(said)


def _times_asleep(pid: int) -> list[list[str]]:
    """Return the time that each thread of a process has worked, if all of them sleep; else, or unknown, nothing."""
    try:
        # What follows the name, which may hold anything: the state, and among others the two times.
        rows = [file.read_text().rpartition(")")[2].split() for file in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:
        return []
    return [row[11:13] for row in rows] if all(row[0] == "S" for row in rows) else []


def git_path() -> str:
    """Return where the program is.

    Raises:
        GitMissing: Nowhere.
    """
    found = shutil.which("git")
    if not found:
        raise GitMissing(
            "the program git is missing: install it (Debian, Ubuntu: apt install git; macOS: xcode-select --install; "
            "others: https://git-scm.com/downloads) and make sure that it is on the server's PATH"
        )
    return str(Path(found).absolute())


def _first_line(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    shown = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[0] if lines else "")
    return shown.removeprefix("fatal: ").removeprefix("error: ")[:500]

"""UvCommand: runs uv for one pack, under guard."""

from __future__ import annotations

import importlib
import re
import shutil
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from ot.errors import ToolUnavailable
from ot.execution.workers.child_environ import uv_environ
from ot.execution.workers.guarded_process import GuardedProcess

TEXT_CHARACTERS = 2000
LINES = 100
PROCESSES = 256
"""Building packages takes more processes than a tool should."""

LOGIN = re.compile(r"(?<=://)[^/\s@]+@")


def find_uv(environ: Mapping[str, str]) -> str | None:
    """Return the uv that is on the PATH, else the one that came as a Python package."""
    if found := shutil.which("uv", path=environ.get("PATH", "")):
        return str(Path(found).absolute())
    try:
        return str(importlib.import_module("uv").find_uv_bin())
    except (ImportError, FileNotFoundError):
        return None


class UvCommand:
    """Runs uv for a pack, passes its progress on and turns its failures into the pack's."""

    def __init__(self, pack: str, directory: Path, environ: Mapping[str, str], tell: Callable[[str], None]) -> None:
        """Run for *pack* in *directory*; settings of uv that lie there are obeyed.

        Raises:
            ToolUnavailable: There is no uv.
        """
        uv = find_uv(environ)
        if uv is None:
            raise ToolUnavailable(pack, "its dependencies need uv, which is not on the PATH: run 'pip install uv'")
        self._uv = uv
        self._pack = pack
        self._directory = directory
        self._environ = uv_environ(environ)
        self._tell = tell
        self._lines: deque[str] = deque(maxlen=LINES)

    async def run(self, *arguments: str) -> str:
        """Return what uv printed; a cancelled run leaves no process.

        Raises:
            ToolUnavailable: It failed.
        """
        process = await self._start(arguments)
        try:
            process.stdin.close()
            output = await process.stdout.read()
            ending = await process.wait()
        finally:
            process.kill()
            await process.wait()
        if (ending.kind, ending.number) != ("exit", 0):
            raise ToolUnavailable(self._pack, f"'uv {arguments[0]}' failed ({ending.text}){self.last_words()}")
        return output.decode(errors="replace").strip()

    def last_words(self) -> str:
        """Return the end of what uv has said, without logins of indexes, to be put behind a sentence."""
        text = LOGIN.sub("***@", "\n".join(self._lines)).strip()
        return f":\n{text[-TEXT_CHARACTERS:]}" if text else ""

    async def _start(self, arguments: tuple[str, ...]) -> GuardedProcess:
        argv = [self._uv, *arguments, "--color", "never", "--no-progress"]
        try:
            return await GuardedProcess.start(
                argv, env=self._environ, cwd=self._directory, processes=PROCESSES, on_line=self._hear
            )
        except OSError as error:
            raise ToolUnavailable(self._pack, f"uv cannot be started: {error}") from error

    def _hear(self, line: str) -> None:
        self._lines.append(line)
        self._tell(LOGIN.sub("***@", line))

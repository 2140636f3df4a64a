"""LogFile: a private file of lines that begins anew when it is full; several processes may write it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class LogFile:
    """Appends to ``path``; full ones are ``path.1`` (the newest), ``path.2`` and so on."""

    def __init__(self, path: Path, *, max_bytes: int, files: int) -> None:
        """Keep *files* files of about *max_bytes* bytes; nothing is touched before the first write."""
        self.path = path
        self._max_bytes = max_bytes
        self._files = files
        self._fd: int | None = None

    def write(self, text: str) -> None:
        """Append *text*, whole lines.

        Raises:
            OSError: It cannot be written.
        """
        data = text.encode(errors="replace")
        fd = self._opened()
        if os.fstat(fd).st_size + len(data) > self._max_bytes and os.fstat(fd).st_size:
            self._begin_anew(fd)
            fd = self._opened()
        # One call a batch: lines of several processes do not mix.
        while data:
            data = data[os.write(fd, data) :]

    def close(self) -> None:
        """Let go of the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _opened(self) -> int:
        if self._fd is not None and self._is_current(self._fd):
            return self._fd
        self.close()
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._fd = os.open(self.path, _APPEND, 0o600)
        return self._fd

    def _is_current(self, fd: int) -> bool:
        """Whether the file still has its name: another process may have begun a new one."""
        try:
            return os.path.samestat(os.fstat(fd), self.path.lstat())
        except OSError:
            return False

    def _begin_anew(self, fd: int) -> None:
        if sys.platform != "win32":
            fcntl.flock(fd, fcntl.LOCK_EX)  # let go of when the file is closed
        if self._is_current(fd):
            with suppress(OSError):  # where an open file cannot be renamed it goes on growing
                self._rename()
        self.close()

    def _rename(self) -> None:
        if self._files == 1:
            self.path.unlink()
            return
        for number in range(self._files - 2, 0, -1):
            with suppress(FileNotFoundError):
                self.numbered(number).replace(self.numbered(number + 1))
        self.path.replace(self.numbered(1))

    def numbered(self, number: int) -> Path:
        """Return the path of an older file; the larger the number, the older."""
        return self.path.with_name(f"{self.path.name}.{number}")

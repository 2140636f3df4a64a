"""Watchdog: however the server dies, nothing that it started lives on.

A program that computes does not notice that the server is gone before its time is up. So the server makes a process
group of its own, and a shell outside of it waits on a pipe that only the server holds: when that breaks, the shell
kills the group.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

SCRIPT = 'read -r word; [ "$word" = done ] || kill -s KILL -- "-$1"'


class Watchdog:
    """Kills what is left of the server's process group when the server is gone."""

    def __init__(self) -> None:
        """Start watching; at a terminal, and where there are no process groups, nothing is watched."""
        self._shell: subprocess.Popen[bytes] | None = None
        if sys.platform == "win32" or sys.stdin.isatty():
            return
        with suppress(PermissionError):  # the leader of a session leads its group already
            os.setpgid(0, 0)
        # The client's own group must never be meant.
        if os.getpgrp() == os.getpid():
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", SCRIPT, "onetool-watchdog", str(os.getpid())],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    def release(self) -> None:
        """Stop watching: the server has let go of everything itself."""
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError):
                self._shell.stdin.write(b"done\n")
                self._shell.stdin.close()
            self._shell.wait(timeout=5)

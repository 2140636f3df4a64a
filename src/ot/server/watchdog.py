"""Watchdog: however the server dies, nothing that it started lives on.

A program that computes does not notice that the server is gone before its time is up. So the server makes a process
group of its own, and a shell outside of it waits on a pipe that only the server holds: when that breaks, the shell
kills the group.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from contextlib import suppress

logger = logging.getLogger(__name__)

MOST_STARTS = 10
SCRIPT = 'read -r word; [ "$word" = done ] || kill -s KILL -- "-$1"'


class Watchdog:
    """Kills what is left of the server's process group when the server is gone; one that dies is started again."""

    def __init__(self) -> None:
        """Start watching; at a terminal, and where there are no process groups, nothing is watched."""
        self._shell: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._left = MOST_STARTS
        if sys.platform == "win32" or sys.stdin.isatty():
            return
        with suppress(PermissionError):  # the leader of a session leads its group already
            os.setpgid(0, 0)
        # The client's own group must never be meant.
        if os.getpgrp() == os.getpid():
            self._start()

    def _start(self) -> None:
        self._left -= 1
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", SCRIPT, "onetool-watchdog", str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        with suppress(OSError, AttributeError):  # elsewhere than on Linux nothing tells
            self._pidfd = os.pidfd_open(self._shell.pid)
            asyncio.get_running_loop().add_reader(self._pidfd, self._died)

    def _died(self) -> None:
        logger.warning("the watchdog was killed%s", " and is started again" if self._left else "")
        self._bury(b"")
        if self._left:
            self._start()

    def release(self) -> None:
        """Stop watching: the server has let go of everything itself."""
        self._bury(b"done\n")

    def _bury(self, last_words: bytes) -> None:
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError):
                self._shell.stdin.write(last_words)
                self._shell.stdin.close()
            self._shell.wait(timeout=5)
            self._shell = None

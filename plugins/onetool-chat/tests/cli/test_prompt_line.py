"""A line typed at a terminal, and the Ctrl-C that comes when nothing waits for it yet."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from cli.command import interruptible

pytest.importorskip("readline")

# The hook is called between the prompt and the wait for a key. It is no Python function, so that Python does not look
# for signals before it waits: what a signal of that very moment meets.
INTERRUPTED = """
import ctypes, functools, readline, signal
from onetool_chat.cli.question_line import prompt_line
readline.set_pre_input_hook(functools.partial(getattr(ctypes.CDLL(None), "raise"), signal.SIGINT))
try:
    prompt_line("> ")
except KeyboardInterrupt:
    print("heard", signal.getsignal(signal.SIGALRM) is signal.SIG_DFL)
"""
TYPED = """
from onetool_chat.cli.question_line import LOOK_SECONDS, prompt_line
print("typed:", prompt_line(f"{LOOK_SECONDS} > "))
"""


class Typist:
    """A program at a terminal of its own."""

    def __init__(self, program: str) -> None:
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            interruptible([sys.executable, "-c", program]),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._shown = ""

    def until(self, words: str, seconds: float = 20.0) -> str:
        """Return what is shown until *words* come."""
        end = time.monotonic() + seconds
        while words not in self._shown:
            ready, _, _ = select.select([self._master], [], [], max(end - time.monotonic(), 0))
            assert ready, f"{words!r} did not come: {self._shown}"
            self._shown += os.read(self._master, 4096).decode()
        return self._shown

    def type(self, keys: str) -> None:
        """Press some keys."""
        os.write(self._master, keys.encode())

    def close(self) -> None:
        """End it."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(10)
        os.close(self._master)


def test_an_interrupt_that_comes_before_the_wait_for_a_key_is_heard() -> None:
    typist = Typist(INTERRUPTED)
    try:
        assert "heard True" in typist.until("heard True")
    finally:
        typist.close()


def test_a_line_that_is_typed_slowly_comes_whole() -> None:
    typist = Typist(TYPED)
    try:
        typist.until(" > ")
        for keys in ("ab", "cé", "d\n"):
            # Longer than the pause between two looks for signals.
            assert not select.select([], [], [], 0.5)[0]
            typist.type(keys)
        assert "typed: abcéd" in typist.until("typed: abcéd")
    finally:
        typist.close()

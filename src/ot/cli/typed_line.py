"""Reads a line that somebody types at the terminal."""

from __future__ import annotations

import contextlib
import importlib
import signal
from collections.abc import Generator
from types import FrameType

LOOK_SECONDS = 0.2


def typed_line(prompt: str) -> str:
    """Return what is typed after *prompt*; Ctrl-C is heard at any moment.

    Raises:
        KeyboardInterrupt: Ctrl-C was typed.
        EOFError: There is no more.
    """
    with contextlib.suppress(ImportError):  # Windows
        importlib.import_module("readline")  # being there, it gives input() a history and editing
    with _woken():
        return input(prompt).strip()


@contextlib.contextmanager
def _woken() -> Generator[None]:
    """Wake input() at intervals, so that it looks for signals.

    One that comes between the prompt and the wait for a key interrupts nothing, and would be heard with the next key.
    """
    if not hasattr(signal, "setitimer"):  # Windows
        yield
        return
    before = signal.signal(signal.SIGALRM, _nothing)
    signal.setitimer(signal.ITIMER_REAL, LOOK_SECONDS, LOOK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Take the signal: that it came is all that it is for."""

"""Interrupts: lets the thread of a call be interrupted, once, and only where that breaks nothing."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from ot_sdk.errors import Cancelled


class Interrupts:
    """Around a tool's code: ``Cancelled`` is raised in there when another thread asks for it.

    It reaches Python code only; a thread that waits inside C code meets it when that returns.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the collector may run a __del__ that prints
        self._thread: int | None = None
        self.wanted = False
        self._given = False
        self._shields = 0

    def __enter__(self) -> None:
        with self._lock:
            self._raise_if_wanted()
            self._thread = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._thread = None
            _checkpoint()

    def interrupt(self) -> None:
        """Raise ``Cancelled`` in the thread: at once, or when it leaves its shield, or when it begins."""
        with self._lock:
            self.wanted = True
            if self._thread is not None and not self._given and not self._shields:
                self._given = True
                _raise_in(self._thread)

    @contextmanager
    def shield(self) -> Generator[None]:
        """Hold an interrupt back meanwhile: half a message must not reach the wire."""
        if self._thread != threading.get_ident():
            yield  # another thread, which nobody interrupts
            return
        with self._lock:
            _checkpoint()
            self._shields += 1
        try:
            yield
        finally:
            with self._lock:
                self._shields -= 1
        with self._lock:
            self._raise_if_wanted()

    def _raise_if_wanted(self) -> None:
        if self.wanted and not self._given and not self._shields:
            self._given = True
            raise Cancelled


def _checkpoint() -> None:
    """Let an interrupt that is on its way arrive here: the interpreter looks for one when a function begins."""


def _raise_in(thread: int) -> None:
    try:
        import ctypes  # noqa: PLC0415 - most workers never interrupt a thread
    except ImportError:
        return  # a Python without it: the server ends the worker when its patience is over
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Cancelled))

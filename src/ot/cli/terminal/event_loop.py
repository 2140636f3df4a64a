"""Runs a command's coroutines on the quickest event loop that there is."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
from collections.abc import Coroutine
from typing import Any


def run_async[T](main: Coroutine[Any, Any, T]) -> T:
    """Run *main* on an event loop and return its value."""
    collect_garbage()
    with new_runner() as runner:
        return runner.run(main)


def new_runner() -> asyncio.Runner:
    """Return a runner of several coroutines after each other, on uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:  # Windows
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def collect_garbage() -> None:
    """Look for garbage from now on, if that was off, but never in what is there: it is large, and it stays."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def end_without_waiting() -> None:
    """End the process now if a tool's thread still runs: it cannot be stopped, and Python would wait for it."""
    if any(not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate()):
        logging.shutdown()
        os._exit(0)

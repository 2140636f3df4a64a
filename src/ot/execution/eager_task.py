"""Starts a coroutine at once: what never has to wait is done without a turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import Any


def eager_task[T](work: Coroutine[Any, Any, T], context: Context | None = None) -> asyncio.Task[T]:
    """Return the task of *work*, which has run to its first wait, or to its end, in *context* or a copy of this one."""
    return asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True, context=context)

"""Tells observers what happens in runs."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace

from ot.brief_repr import Redact
from ot.runtime.run_events import Printed, RunEvent, TellEvent

logger = logging.getLogger(__name__)


def fence_observers(observers: Iterable[Callable[[RunEvent], None]], redact: Redact) -> TellEvent:
    """Return what tells *observers* of events on the event loop; one that raises does not end the run."""
    loop, home = asyncio.get_running_loop(), threading.get_ident()

    def tell(event: RunEvent) -> None:
        event = replace(event, text=redact(event.text)) if isinstance(event, Printed) else event
        for observe in observers:
            try:
                observe(event)
            except Exception:
                logger.exception("an observer failed")

    def tell_at_home(event: RunEvent) -> None:
        # An engine may take prints on a thread of its own.
        if threading.get_ident() == home:
            tell(event)
        else:
            loop.call_soon_threadsafe(tell, event)

    return tell_at_home

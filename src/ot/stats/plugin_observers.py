"""The observers that plugins bring: entry points of the group ``onetool.observers``."""

from __future__ import annotations

import logging
from typing import Any

from ot import hooks
from ot.execution.tool_executor import CallRecord
from ot.stats.rows import RunRow

logger = logging.getLogger(__name__)


class PluginObserver:
    """An observer of runs and calls that is not ours: what it raises is logged, and the run goes on."""

    def __init__(self, name: str, observer: Any) -> None:
        """Tell *observer*, of whose methods ``finished`` and ``run_finished`` it may have one or both."""
        self._name = name
        self._observer = observer

    def finished(self, call: CallRecord) -> None:
        """Tell of a call that has ended."""
        self._tell("finished", call)

    def run_finished(self, run: RunRow) -> None:
        """Tell of a run that has ended."""
        self._tell("run_finished", run)

    def _tell(self, method: str, record: CallRecord | RunRow) -> None:
        try:
            if take := getattr(self._observer, method, None):
                take(record)
        except Exception:
            logger.exception("the observer %s failed", self._name)


def plugin_observers() -> list[PluginObserver]:
    """Return an observer for each entry point, which names what makes one; one that cannot be made is logged."""
    found: list[PluginObserver] = []
    for hook in hooks.hooks(hooks.OBSERVERS):
        try:
            found.append(PluginObserver(hook.name, hook.load()()))
        except Exception:
            logger.exception("the observer %s of %s cannot be used", hook.name, hook.distribution)
    return found

"""What a bundled tool may know while it runs: settings, allowed paths, the registry, the configuration, its logger."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ot.config.models import Config
from ot.execution.path_guard import PathGuard
from ot.registry.tool_registry import ToolRegistry


@dataclass(frozen=True)
class ToolContext:
    """The surroundings of one call, the same for every tool of a pack."""

    guard: PathGuard
    cwd: Path
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("ot.tools"))
    registry: ToolRegistry = field(default_factory=ToolRegistry)
    config: Config = field(default_factory=Config, repr=False)


_current: ContextVar[ToolContext] = ContextVar("ot_tool_context")


def current_tool_context() -> ToolContext:
    """Return the context of the call that is running.

    Raises:
        LookupError: No tool call is running.
    """
    return _current.get()


@contextmanager
def use(context: ToolContext) -> Generator[None]:
    """Make *context* the current one; the in-process backend does it around every call."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)

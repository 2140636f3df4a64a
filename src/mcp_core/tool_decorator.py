"""ExtMcpToolDecorator: registers tools under a prefix and logs their calls."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Protocol

TRACE = 5
"""Finer than DEBUG; `logging` knows it by the name TRACE."""

logging.addLevelName(TRACE, "TRACE")
logger = logging.getLogger(__name__)

PREFIX = "MCP_TOOL_PREFIX"


class Registrar(Protocol):
    """What a server must have: a ``tool(name=, description=)`` that gives a decorator, as FastMCP's does."""

    @property
    def tool(self) -> Callable[..., Any]: ...


class ExtMcpToolDecorator:
    """Registers functions at a server, each under ``{prefix}_{name}``, and logs every call."""

    def __init__(self, server: Registrar, *, prefix: str | None = None) -> None:
        """Register at *server*; without *prefix* the one of ``MCP_TOOL_PREFIX`` is used, or none."""
        self._server = server
        self._prefix = os.environ.get(PREFIX, "") if prefix is None else prefix

    def tool(
        self, *, description: str, name: str | None = None, prefix: str | None = None, **options: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that registers a function, under its own *prefix* if any, and logs its calls."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            final = self.final_name(name or function.__name__, prefix)
            logged = _logged(final, function)
            self._server.tool(name=final, description=description, **options)(logged)
            return logged

        return register

    def final_name(self, name: str, prefix: str | None = None) -> str:
        """Return the name that clients see."""
        chosen = self._prefix if prefix is None else prefix
        return f"{chosen}_{name}" if chosen else name


def _logged(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if not inspect.iscoroutinefunction(function):
        return _log_around(name, logging.DEBUG)(function)

    @wraps(function)
    async def call_later(*args: Any, **kwargs: Any) -> Any:
        with _log_around(name, TRACE):
            return await function(*args, **kwargs)

    return call_later


@contextmanager
def _log_around(name: str, level: int) -> Generator[None]:
    """Log the call of a tool before and after it, its success at *level*."""
    logger.log(TRACE, "Tool called: %s", name)
    try:
        yield
    except Exception as error:
        logger.error("Tool %s failed: %s", name, error)
        raise
    logger.log(level, "Tool %s completed successfully", name)

"""ExtMcpToolDecorator: registers tools under a prefix and logs their calls."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, Self

from mcp_core.result import failure_in

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
            logged = _log_calls(final, function)
            self._server.tool(name=final, description=description, **options)(logged)
            return logged

        return register

    def final_name(self, name: str, prefix: str | None = None) -> str:
        """Return the name that clients see."""
        chosen = self._prefix if prefix is None else prefix
        return f"{chosen}_{name}" if chosen else name


def _log_calls(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def call_later(*args: Any, **kwargs: Any) -> Any:
            with LoggedCall(name, TRACE) as logged:
                logged.outcome = await function(*args, **kwargs)
            return logged.outcome

        return call_later

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with LoggedCall(name, logging.DEBUG) as logged:
            logged.outcome = function(*args, **kwargs)
        return logged.outcome

    return call


class LoggedCall:
    """Logs a tool's call before it, and its ``outcome`` after it: a failure as an error, raised or returned."""

    def __init__(self, name: str, level: int = TRACE) -> None:
        """Log the call of *name*, and its success at *level*."""
        self.outcome: Any = None
        self._name = name
        self._level = level

    def __enter__(self) -> Self:
        logger.log(TRACE, "Tool called: %s", self._name)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        failure = error or failure_in(self.outcome)
        if failure is None:
            logger.log(self._level, "Tool %s completed successfully", self._name)
        elif isinstance(failure, Exception):
            logger.error("Tool %s failed: %s", self._name, failure)

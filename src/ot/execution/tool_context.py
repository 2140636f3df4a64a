"""What a bundled tool may use while it runs: settings, allowed paths, registry, configuration, logger, a model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ot.config.models import Config
from ot.config.principal import os_user
from ot.errors import ChatError
from ot.execution.caller import Caller
from ot.files.path_guard import PathGuard
from ot.registry.tool_registry import ToolRegistry


class LanguageModel(Protocol):
    """The model that tools may ask: ``ask`` and ``extract`` block a plain function, the others are awaited."""

    def ask(self, text: str) -> str:
        """Return the model's answer to *text*."""
        ...

    def extract(self, text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return what *text* asks for as an object that fits the JSON schema *schema*."""
        ...

    async def aask(self, text: str) -> str:
        """Return as ``ask``, for a coroutine."""
        ...

    async def aextract(self, text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return as ``extract``, for a coroutine."""
        ...


def _no_llm() -> LanguageModel:
    raise ChatError("there is no language model here: tools have one where OneTool serves them")


@dataclass(frozen=True)
class ToolContext:
    """The surroundings of one call."""

    guard: PathGuard
    cwd: Path
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("ot.tools"))
    registry: ToolRegistry = field(default_factory=ToolRegistry)
    config: Config = field(default_factory=Config, repr=False)
    open_llm: Callable[[], LanguageModel] = field(default=_no_llm, repr=False)
    caller: Caller = field(default_factory=lambda: Caller(os_user()))

    @property
    def llm(self) -> LanguageModel:
        """The model of the setting ``chat``.

        Raises:
            ChatError: None is configured; the text says what to do.
        """
        return self.open_llm()


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

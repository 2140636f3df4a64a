"""LanguageModel: the model that tools may ask, as they see it, and what it may cost a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Protocol

from ot.errors import ChatError


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

    def within(self, *, questions: int | None = None, tokens: int | None = None) -> LanguageModel:
        """Return the same model for a part of what the run may ask."""
        ...


type OpenModel = Callable[[], LanguageModel]
"""Returns the model of one run; raises ChatError where none is configured. It may take its time."""


def no_model() -> LanguageModel:
    """Stand in for the model where there is none."""
    raise ChatError("there is no language model here: tools have one where OneTool serves them")


class ModelOfRun:
    """The model of one run, looked for when a tool first asks: all of its tools spend from one budget."""

    def __init__(self, find: Callable[[], OpenModel]) -> None:
        """Open what *find* returns; it is asked once."""
        self._find = find
        self._found: OpenModel | None = None
        self._lock = Lock()

    def __call__(self) -> LanguageModel:
        """Return the model; raises ChatError where there is none."""
        with self._lock:
            self._found = self._found or self._find()
        return self._found()

"""LogSpan: one piece of work in the log, with its name, its time and how it ended."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from ot.brief_repr import brief_int
from ot.visible_text import visible

LENGTHS = {"path": 200, "url": 120, "query": 100, "topic": 100, "pattern": 100, "errorMessage": 300}
LENGTH = 120
NUMBER_BITS = 63
"""What a reader of the log takes for a number; a longer one is written as text."""
_PASSWORD = re.compile(r"(?<=://)[^/@\s]+@")


class SpanMessage:
    """A finished span, as the message of a log record; it becomes text only where it is written."""

    __slots__ = ("_fields", "duration", "error", "message", "name")

    def __init__(self, name: str, duration: float, error: str, message: str, fields: Mapping[str, Any]) -> None:
        self.name = name
        self.duration = duration
        self.error = error
        self.message = message
        self._fields = fields

    def fields(self, redact: Callable[[str], str] = str) -> dict[str, Any]:
        """Return all that is known of it, long texts cut after *redact*: half a secret would not be known as one."""
        found: dict[str, Any] = {"span": self.name, "duration": round(self.duration, 6)}
        found["status"] = "FAILED" if self.error else "SUCCESS"
        if self.error:
            found["errorType"] = self.error
            found |= {"errorMessage": _cut("errorMessage", redact(self.message))} if self.message else {}
        told = ((name, value) for name, value in self._fields.items() if value not in ("", None))
        return found | {name: _cut(name, value if _is_number(value) else redact(_text(value))) for name, value in told}

    def text(self, redact: Callable[[str], str] = str) -> str:
        """Return the same on one line, for people."""
        found = self.fields(redact)
        head = f"{found.pop('span')} {found.pop('status')} {found.pop('duration'):.3f}s"
        return " ".join([head, *(f"{name}={value}" for name, value in found.items())])

    def __str__(self) -> str:
        return self.text()


class LogSpan:
    """Measures a block, or what lies between its making and its ``end``, and logs it.

    A failed one is logged at WARNING at least.
    """

    __slots__ = ("_fields", "_level", "_logger", "_name", "_started")

    def __init__(self, logger: logging.Logger, name: str, *, level: int = logging.INFO, **fields: Any) -> None:
        """Start the clock; *fields* are logged with it."""
        self._logger = logger
        self._name = name
        self._level = level
        self._fields = fields
        self._started = time.monotonic()

    def add(self, **fields: Any) -> None:
        """Log these with it too."""
        self._fields |= fields

    def end(self, error: str = "", message: str = "") -> None:
        """Log it, as failed when there is an *error*, the name of its class."""
        log_span(self._logger, self._level, self._name, time.monotonic() - self._started, error, message, self._fields)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(kind.__name__ if kind else "", str(error) if error else "")


def log_span(
    logger: logging.Logger,
    level: int,
    name: str,
    seconds: float,
    error: str = "",
    message: str = "",
    fields: Mapping[str, Any] | None = None,
    failed: int = logging.WARNING,
) -> None:
    """Log a span that has been measured already, at the level *failed* when there is an *error*."""
    level = max(level, failed) if error else level
    if logger.isEnabledFor(level):
        # Made here: looking for the line that logs it would cost more than all the rest, for every run.
        span = SpanMessage(name, seconds, error, message, fields or {})
        logger.handle(logging.LogRecord(logger.name, level, __file__, 0, span, None, None))


def cut_arguments(arguments: Mapping[str, Any]) -> str:
    """Return a call's arguments as a text for the log: short values as they are, large ones by their kind and size."""
    return ", ".join(f"{name}={_brief(name, value)}" for name, value in list(arguments.items())[:20])


def _brief(name: str, value: Any) -> str:
    if isinstance(value, str | bytes):
        return repr(_cut(name, value[: LENGTHS["path"] * 2]))
    if isinstance(value, list | tuple | dict | set | frozenset):
        return f"<{type(value).__name__} of {len(value)}>"  # pyright: ignore[reportUnknownArgumentType] - any values
    if type(value) is int:
        return brief_int(value)
    return _cut(name, repr(value) if isinstance(value, float | bool | None) else f"<{type(value).__name__}>")


def in_a_log(text: str) -> str:
    """Return *text* for people: what it says cannot look like a line of the log's own, nor steer a terminal."""
    return visible(text).replace("\n", "\n    ")


def _text(value: object) -> str:
    return brief_int(value) if isinstance(value, int) else str(value)


def _is_number(value: object) -> bool:
    return isinstance(value, bool | float) or (isinstance(value, int) and value.bit_length() <= NUMBER_BITS)


def _cut(name: str, value: Any) -> Any:
    if _is_number(value):
        return value
    text = str(value)
    if "://" in text:
        text = _PASSWORD.sub("***@", text)
    most = LENGTHS.get(name, LENGTH)
    # One line a record: what a program or a tool says must not look like another one.
    text = visible(text).replace("\n", "\\n")
    return text if len(text) <= most else f"{text[: most - 1]}…"

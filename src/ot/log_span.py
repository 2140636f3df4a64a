"""LogSpan: one piece of work in the log, with its name, its time and how it ended."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple, Self

from ot.brief_repr import MARGIN, Redact, brief_int, brief_text
from ot.visible_text import visible

LENGTHS = {"path": 200, "url": 120, "query": 100, "topic": 100, "pattern": 100, "errorMessage": 300}
LENGTH = 120
NEVER_CUT = min(LENGTH, *LENGTHS.values())
KEPT = 3 * MARGIN
"""Characters of a text that wait to be written: those that are shown, and those that are looked at for secrets."""
SMALL = 1000
"""Characters up to which a value is written out: Python does that in a few microseconds."""
NUMBER_BITS = 63
"""What a reader of the log takes for a number; a longer one is written as text."""
LOG_FILE_ONLY = {"log_file_only": True}
"""Given as the ``extra`` of a record that is of no use to who waits for a command at a terminal."""
_PASSWORD = re.compile(r"(?<=://)[^/@\s]+@")


class SpanMessage(NamedTuple):
    """A finished span, as the message of a log record; it becomes text only where it is written."""

    name: str
    duration: float
    error: str
    message: str
    more: Mapping[str, Any]

    def fields(self, redact: Redact = str) -> dict[str, Any]:
        """Return all that is known of it, long texts cut after *redact*: half a secret would not be known as one."""
        found: dict[str, Any] = {"span": self.name, "duration": round(self.duration, 6)}
        found["status"] = "FAILED" if self.error else "SUCCESS"
        if self.error:
            found["errorType"] = self.error
            found |= {"errorMessage": _show_value("errorMessage", self.message, redact)} if self.message else {}
        # Most texts hold no secret, which is seen at once for all of them.
        texts = "\n".join([value for value in self.more.values() if type(value) is str])
        clean = "://" not in texts and redact(texts) == texts
        for name, value in self.more.items():
            if type(value) is not str:
                if value is not None:
                    found[name] = _show_value(name, value, redact)
            elif value:
                is_plain = clean and len(value) <= NEVER_CUT and value.isascii() and value.isprintable()
                found[name] = value if is_plain else _show_value(name, value, str if clean else redact)
        return found

    def text(self, redact: Redact = str) -> str:
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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
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
        logger.handle(_SpanRecord(logger.name, level, SpanMessage(name, seconds, error, message, fields or {})))


class _SpanRecord(logging.LogRecord):
    """The record of a span: to look for the line, the thread and the task would cost more than all the rest."""

    _same = vars(logging.LogRecord("", logging.INFO, __file__, 0, "", None, None))

    def __init__(self, name: str, level: int, span: SpanMessage) -> None:
        now = time.time()
        self.__dict__.update(self._same)
        self.name, self.levelno, self.levelname = name, level, logging.getLevelName(level)
        self.msg, self.created, self.msecs = span, now, int(now % 1 * 1000) + 0.0


def cut_arguments(arguments: Mapping[str, Any]) -> str:
    """Return a call's arguments as a text for the log: texts and numbers as they are, others by their kind and size."""
    return ", ".join(f"{name}={_brief(value)}" for name, value in islice(arguments.items(), 20))


def cut_result(value: Any, chars: int) -> str:
    """Return a call's value of about *chars* characters for the log, a large one by its kind and size."""
    if isinstance(value, str):
        return value[:KEPT]
    if not 0 < chars <= SMALL:
        return _brief(value)
    try:
        return repr(value)[:KEPT]
    except ValueError:  # a number of more digits than Python writes
        return _brief(value)


def _brief(value: Any) -> str:
    if isinstance(value, str | bytes):
        return repr(value[:KEPT])
    if isinstance(value, list | tuple | dict | set | frozenset):
        return f"<{type(value).__name__} of {len(value)}>"  # pyright: ignore[reportUnknownArgumentType] - any values
    if type(value) is int:
        return brief_int(value)
    return repr(value) if isinstance(value, float | bool | None) else f"<{type(value).__name__}>"


def in_a_log(text: str) -> str:
    """Return *text* for people: what it says cannot look like a line of the log's own, nor steer a terminal."""
    return visible(text).replace("\n", "\n    ")


def _show_value(name: str, value: Any, redact: Redact) -> Any:
    if isinstance(value, bool | float) or (isinstance(value, int) and value.bit_length() <= NUMBER_BITS):
        return value
    most, text = LENGTHS.get(name, LENGTH), brief_int(value) if isinstance(value, int) else str(value)
    text = brief_text(text, most, lambda text: _PASSWORD.sub("***@", redact(text)))
    # One line a record: what a program or a tool says must not look like another one.
    text = visible(text).replace("\n", "\\n")
    return text if len(text) <= most else f"{text[: most - 1]}…"

"""The server's own log: on standard error, for standard output belongs to the protocol, and in a private file."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import orjson

from ot.batches import Batches
from ot.log_file import LogFile
from ot.log_span import SpanMessage, in_a_log
from ot.visible_text import visible_json

LOGGERS = ("ot", "ot_tools")
FILE_SECONDS, STDERR_SECONDS = 0.25, 0.05
END_SECONDS = 1.0

current_run: ContextVar[str] = ContextVar("ot_log_run", default="")
"""The id of the run that the current task works for: every line that is logged meanwhile carries it."""

type Redact = Callable[[str], str]
type Lines = Callable[[str], None]


def configure_logs(
    level: str,
    redact: Redact = lambda text: text,
    *,
    format: str = "text",
    file: LogFile | None = None,
    terminal_level: str = "",
) -> None:
    """Send the log of ``ot`` and of packs to standard error and to *file*, at *level* and above.

    Successful spans come on standard error only where the level is DEBUG: few clients read it, and runs are many.
    *terminal_level* leaves out all spans there, and what is below it: who runs a command sees how it ends.
    """
    stderr = BatchedHandler(_write_stderr, json_line if format == "json" else text_line, redact, STDERR_SECONDS)
    if terminal_level:
        stderr.setLevel(terminal_level)
        stderr.addFilter(_is_no_span)
    elif level != "DEBUG":
        stderr.addFilter(_is_no_quiet_span)
    handlers: list[logging.Handler] = [stderr]
    if file is not None:
        handlers.append(BatchedHandler(file.write, json_line, redact, FILE_SECONDS))
    for name in LOGGERS:
        logger = logging.getLogger(name)
        for old in logger.handlers:
            old.close()
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.propagate = False


def end_logs() -> None:
    """Write what is left and end the threads that write."""
    for name in LOGGERS:
        for handler in logging.getLogger(name).handlers:
            handler.close()


def log_path(state_dir: Path) -> Path:
    """Return where the log of a server with that state is."""
    return state_dir / "logs" / "onetool.log"


class BatchedHandler(logging.Handler):
    """Writes lines on a thread of its own: a pipe that nobody reads, or a slow disk, holds up nothing.

    At most ten thousand lines wait; what comes on top is dropped and counted.
    """

    def __init__(
        self, write: Lines, line: Callable[[logging.LogRecord, str, Redact], str], redact: Redact, seconds: float
    ) -> None:
        """Pass what *line* makes of each record through *redact*, and to *write*."""
        super().__init__()
        self._write = write
        self._line = line
        self._redact = redact
        self._batches: Batches[tuple[logging.LogRecord, str]] = Batches(
            self._write_batch, name="ot-logs", seconds=seconds
        )

    def emit(self, record: logging.LogRecord) -> None:
        """Take the record; whatever it refers to is written out now, for it may change."""
        if record.args:
            record.msg, record.args = _filled_in(record), None
        if record.exc_info:
            record.exc_text = record.exc_text or logging.Formatter().formatException(record.exc_info)
            record.exc_info = None
        self._batches.add((record, current_run.get()))

    def flush(self) -> None:
        """Wait until all is written, a second at most."""
        self._batches.flush(END_SECONDS)

    def close(self) -> None:
        """Write what is left and end the thread."""
        self._batches.close(END_SECONDS)
        super().close()

    def _write_batch(self, records: list[tuple[logging.LogRecord, str]]) -> bool:
        text = "".join(f"{self._redact(self._line(record, run, self._redact))}\n" for record, run in records)
        try:
            self._write(text)
        except (OSError, ValueError):  # a full disk, or a standard error that is closed
            self._batches.dropped += len(records)
        return True


def _filled_in(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - what a pack logs is other people's code, and must not fail its call
        return f"{record.msg} ({type(error).__name__}: it cannot be filled in)"


def text_line(record: logging.LogRecord, run: str, redact: Redact = str) -> str:
    """Return the record as a line for people, with what was raised below it."""
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
    trace = f"\n{record.exc_text}" if record.exc_text else ""
    message: object = record.msg
    said = message.text(redact) if isinstance(message, SpanMessage) else f"{message}{f' run={run}' if run else ''}"
    head = f"{clock},{int(record.msecs):03d} {record.levelname} {record.name}:"
    return in_a_log(f"{head} {said}{trace}")


def json_line(record: logging.LogRecord, run: str, redact: Redact = str) -> str:
    """Return the record as one JSON object."""
    found: dict[str, Any] = {"ts": round(record.created, 3), "level": record.levelname, "logger": record.name}
    message: object = record.msg
    fields: Mapping[str, Any] = (
        message.fields(redact) if isinstance(message, SpanMessage) else {"message": str(message)}
    )
    found |= {"run": run} if run else {}
    found |= {"trace": record.exc_text} if record.exc_text else {}
    try:
        return visible_json(orjson.dumps(found | dict(fields), default=str).decode())
    except TypeError:  # half a character, or a number beyond what it writes
        return json.dumps(found | dict(fields), default=str)


def _is_no_span(record: logging.LogRecord) -> bool:
    return not isinstance(record.msg, SpanMessage)


def _is_no_quiet_span(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or _is_no_span(record)


def _write_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()

"""The server's log: on standard error, because standard output belongs to the protocol, and in a private file."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from ot import hooks
from ot.batches import Batches
from ot.brief_repr import Redact
from ot.files.no_links import NO_LINK, make_private
from ot.files.private_file import is_at, lock, write_all
from ot.log_span import SpanMessage, in_a_log
from ot.visible_text import visible_json

LOGGERS = ("ot", "ot_tools")
LIBRARY_LINES, LIBRARY_SECONDS = 20, 60.0
"""So many lines of one library within so many seconds: what strangers send must not fill the log."""
FILE_SECONDS, STDERR_SECONDS = 0.25, 0.05
END_SECONDS = 1.0
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | NO_LINK

current_run: ContextVar[str] = ContextVar("ot_log_run", default="")
"""The id of the run that the current task works for: every line that is logged meanwhile carries it."""
current_request: ContextVar[str] = ContextVar("ot_log_request", default="")
"""The id of the HTTP request that the current task works for, likewise; empty on stdio."""
current_principal: ContextVar[str] = ContextVar("ot_log_principal", default="")
"""Who asked for it, on a server of several people, likewise."""

type Line = Callable[[logging.LogRecord, Mapping[str, str], Redact], str]
"""Makes a line of a record, of what it was logged for, and without secrets."""


def configure_logs(
    level: str,
    redact: Redact = str,
    *,
    format: str = "text",
    file: LogFile | None = None,
    terminal_level: str = "",
) -> None:
    """Send the log of ``ot``, of packs and of plugins to standard error and to *file*, at *level* and above.

    Warnings and errors of libraries go there too, a bounded number of each.
    Successful spans come on standard error only where the level is DEBUG: few clients read it, and runs are many.
    *terminal_level* leaves out all spans there, and what is below it: who runs a command sees how it ends.
    """
    stderr = BatchedHandler(_write_stderr, json_line if format == "json" else text_line, redact, STDERR_SECONDS)
    stderr.setLevel(terminal_level or logging.NOTSET)
    spans_from = math.inf if terminal_level else logging.NOTSET if level == "DEBUG" else logging.WARNING
    stderr.addFilter(lambda record: record.levelno >= spans_from or not isinstance(record.msg, SpanMessage))
    stderr.addFilter(lambda record: not (terminal_level and "log_file_only" in record.__dict__))
    handlers: list[logging.Handler] = [stderr]
    if file is not None:
        handlers.append(BatchedHandler(file.write, json_line, redact, FILE_SECONDS))
    end_logs()
    for name in _loggers():
        logger = logging.getLogger(name)
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.propagate = False
    libraries = LibraryHandler(handlers)
    libraries.setLevel(max(logging.WARNING, logging.getLogger(LOGGERS[0]).level))
    logging.root.addHandler(libraries)


def _loggers() -> tuple[str, ...]:
    return (*LOGGERS, *hooks.packages())


def end_logs() -> None:
    """Write what is left and end the threads that write."""
    for name in _loggers():
        for handler in logging.getLogger(name).handlers:
            handler.close()
    for handler in [handler for handler in logging.root.handlers if isinstance(handler, LibraryHandler)]:
        logging.root.removeHandler(handler)


def log_path(state_dir: Path) -> Path:
    """Return the path of the log of a server with that state."""
    return state_dir / "logs" / "onetool.log"


type _Logged = tuple[logging.LogRecord, str, str, str]
WORKS_FOR = ("run", "request", "principal")
"""The fields that say for whom a line was logged, each if it is known."""


class BatchedHandler(logging.Handler):
    """Writes lines on a thread of its own: a pipe that nobody reads, or a slow disk, holds up nothing.

    At most ten thousand lines wait; what comes on top is dropped and counted.
    """

    def __init__(self, write: Callable[[str], None], line: Line, redact: Redact, seconds: float) -> None:
        """Pass what *line* makes of each record through *redact*, and to *write*."""
        super().__init__()
        self._write, self._line, self._redact = write, line, redact
        self._batches = Batches[_Logged](self._write_batch, name="ot-logs", seconds=seconds)

    def handle(self, record: logging.LogRecord) -> bool:
        """Take the record as any handler does, without its lock: what waits has one of its own."""
        if passes := bool(self.filter(record)):
            self.emit(record)
        return passes

    def emit(self, record: logging.LogRecord) -> None:
        """Take the record; whatever it refers to is written out now, for it may change."""
        if record.args:
            record.msg, record.args = _fill_in(record), None
        if record.exc_info:
            record.exc_text = record.exc_text or logging.Formatter().formatException(record.exc_info)
            record.exc_info = None
        self._batches.add((record, current_run.get(), current_request.get(), current_principal.get()))

    def flush(self) -> None:
        """Wait until all is written, a second at most."""
        self._batches.flush(END_SECONDS)

    def close(self) -> None:
        """Write what is left and end the thread."""
        self._batches.close(END_SECONDS)
        super().close()

    def _write_batch(self, records: list[_Logged]) -> bool:
        lines = (self._line(record, dict(zip(WORKS_FOR, ids, strict=True)), self._redact) for record, *ids in records)
        text = self._redact("".join([f"{line}\n" for line in lines]))
        try:
            self._write(text)
        except (OSError, ValueError):  # a full disk, or a standard error that is closed
            self._batches.dropped += len(records)
        return True


class LibraryHandler(logging.Handler):
    """Passes on what libraries log, until one of them has logged too much within a minute."""

    def __init__(self, handlers: Sequence[logging.Handler], now: Callable[[], float] = time.monotonic) -> None:
        """Pass records on to *handlers*."""
        super().__init__()
        self._handlers, self._now = handlers, now
        self._counted: dict[str, tuple[float, int]] = {}
        """Since when, and how many, by library."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass the record on, or count it."""
        library = record.name.partition(".")[0]
        since, count = self._counted.get(library, (-math.inf, 0))
        now = self._now()
        if now - since >= LIBRARY_SECONDS:
            if count > LIBRARY_LINES:
                self._pass_on(_note(library, f"{count - LIBRARY_LINES:,} lines were left out of this log"))
            since, count = now, 0
        self._counted[library] = since, count + 1
        if count < LIBRARY_LINES:
            self._pass_on(record)
        elif count == LIBRARY_LINES:
            self._pass_on(_note(library, f"more than {LIBRARY_LINES} lines in a minute: the rest of it is left out"))

    def _pass_on(self, record: logging.LogRecord) -> None:
        for handler in self._handlers:
            if record.levelno >= handler.level:
                handler.handle(record)


def _note(library: str, text: str) -> logging.LogRecord:
    return logging.LogRecord(library, logging.WARNING, "", 0, text, None, None)


def _fill_in(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - what a pack logs is other people's code, and must not fail its call
        return f"{record.msg} ({type(error).__name__}: it cannot be filled in)"


def text_line(record: logging.LogRecord, works_for: Mapping[str, str], redact: Redact = str) -> str:
    """Return the record as a line for people, with what was raised below it."""
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
    trace = f"\n{record.exc_text}" if record.exc_text else ""
    message: object = record.msg
    span = message if isinstance(message, SpanMessage) else None
    head = f"{clock},{int(record.msecs):03d} {record.levelname} {record.name}:"
    said = span.text(redact) if span else str(message)
    ids = "".join(f" {name}={id}" for name, id in works_for.items() if id and not (span and name in span.more))
    return in_a_log(f"{head} {said}{ids}{trace}")


def json_line(record: logging.LogRecord, works_for: Mapping[str, str], redact: Redact = str) -> str:
    """Return the record as one JSON object."""
    found: dict[str, Any] = {"ts": round(record.created, 3), "level": record.levelname, "logger": record.name}
    message: object = record.msg
    found |= {name: id for name, id in works_for.items() if id}
    found |= {"trace": record.exc_text} if record.exc_text else {}
    found |= message.fields(redact) if isinstance(message, SpanMessage) else {"message": str(message)}
    try:
        return visible_json(orjson.dumps(found, default=str).decode())
    except TypeError:  # an unpaired surrogate, or a number beyond what it writes
        return json.dumps(found, default=str)


def _write_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


class LogFile:
    """A private file of lines that begins anew when it is full; several processes may write it.

    Full ones are ``path.1`` (the newest), ``path.2`` and so on.
    """

    def __init__(self, path: Path, *, max_bytes: int = 5_000_000, files: int = 3) -> None:
        """Keep *files* files of about *max_bytes* bytes; nothing is touched before the first write."""
        self._max_bytes = max_bytes
        self._names = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, files))]
        self._fd: int | None = None

    def write(self, text: str) -> None:
        """Append *text*, whole lines; raise OSError if it cannot be written."""
        data = text.encode(errors="replace")
        fd = self._open()
        size = os.fstat(fd).st_size
        if size and size + len(data) > self._max_bytes:
            self._begin_anew(fd)
            fd = self._open()
        # One call a batch: lines of several processes do not mix.
        write_all(fd, data)

    def _open(self) -> int:
        if self._fd is not None and is_at(self._names[0], self._fd):
            return self._fd
        self.close()
        make_private(self._names[0].parent)
        self._fd = os.open(self._names[0], _APPEND, 0o600)
        return self._fd

    def close(self) -> None:
        """Let go of the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _begin_anew(self, fd: int) -> None:
        lock(fd)
        if is_at(self._names[0], fd):  # else another process has begun a new one
            with suppress(OSError):  # where an open file cannot be renamed it goes on growing
                self._names[-1].unlink(missing_ok=True)
                for name, older in reversed([*pairwise(self._names)]):
                    with suppress(FileNotFoundError):
                        name.replace(older)
        self.close()

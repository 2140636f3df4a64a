"""AuditLog: a file that says of every call that may change something who made it and what allowed it."""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread
import orjson

from onetool_team.telemetry.keyed_hash import KeyedHash
from ot.batches import Batches
from ot.brief_repr import Redact, brief_repr
from ot.errors import ToolUnavailable
from ot.execution.caller import Caller
from ot.execution.ledger import Effect, NotMade
from ot.logs import LogFile, current_request, current_run
from ot.registry.tool import Tool
from ot.visible_text import visible_json

logger = logging.getLogger(__name__)

WRITE_SECONDS = 0.1
CLOSE_SECONDS = 2.0
MAX_TEXT = 1024
OUR_OWN = ("ot", "proj")
"""Packs that tell programs of OneTool itself."""
UNWRITABLE = "the audit log cannot be written, and telemetry.audit_required is set: nothing was called"


class StandardOutput:
    """Standard output, for whatever collects what a container writes there."""

    def write(self, text: str) -> None:
        """Write *text* at once."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def close(self) -> None:
        """Leave it open: it is the process's."""


class AuditLog:
    """Watches effects; arguments are in it as a keyed hash, and as they are for the tools that the operator chose.

    Lines are written on a thread. Where the log is *required*, a call is first written down as "sent", and refused
    if that fails; else lines wait in memory, ten thousand of them, and what comes on top is counted as lost.
    """

    def __init__(
        self,
        path: Path | None,
        hashes: KeyedHash,
        *,
        required: bool = False,
        shown: Sequence[str] = (),
        redact: Redact = str,
    ) -> None:
        """Append to *path*, which whoever operates the server renames when it is full; None: to standard output.

        Arguments of tools that match *shown* are written through *redact*.
        """
        self._file = LogFile(path, max_bytes=sys.maxsize, files=1) if path else StandardOutput()
        self._path = path or "on standard output"
        self._host = socket.gethostname()
        self._shown = tuple(shown)
        self._redact = redact
        self._turn = threading.Lock()
        self._hashes = hashes
        self._required = required
        self._failing = False
        self.failures = 0
        """How many writes failed, whether or not the lines were written later."""
        self._batches: Batches[bytes] = Batches(self._write, name="ot-audit", seconds=WRITE_SECONDS)

    @property
    def lost(self) -> int:
        """How many lines were never written."""
        return self._batches.dropped

    async def sending(self, effect: Effect) -> None:
        """Write down what is about to be sent, where the log is required.

        Raises:
            ToolUnavailable: It cannot be written, so the call must not be made.
        """
        if not self._required or _changes_nothing(effect.tool):
            return
        if not await anyio.to_thread.run_sync(self._write, [self._of_effect(effect, "sent")]):
            raise ToolUnavailable(effect.tool.pack, UNWRITABLE)

    def note_end(self, effect: Effect, how: Literal["done", "failed", "unknown"]) -> None:
        """Write down how the call ended, a moment later."""
        if not _changes_nothing(effect.tool):
            self._batches.add(self._of_effect(effect, how))

    def note_refused(
        self, tool: Tool, caller: Caller, how: NotMade, arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Write down a call that was not made, whatever its tool would have done."""
        if tool.pack not in OUR_OWN:
            self._batches.add(self._line(tool, caller, how, arguments, {"run": current_run.get()}))

    def write(self, line: bytes) -> bool:
        """Write one line now, and return whether it is written."""
        return self._write([line])

    def check(self) -> None:
        """Open the file.

        Raises:
            OSError: It cannot be written.
        """
        self._file.write("")

    def close(self) -> None:
        """Write what is left."""
        self._batches.close(CLOSE_SECONDS)
        self._file.close()

    def _of_effect(self, effect: Effect, outcome: str) -> bytes:
        more = {"run": effect.run_id, "call": effect.call_id, "allowed_by": _plain(effect.allowed)}
        return self._line(effect.tool, effect.caller, outcome, effect.arguments, more)

    def _line(
        self, tool: Tool, caller: Caller, outcome: str, arguments: Mapping[str, Any] | None, more: Mapping[str, Any]
    ) -> bytes:
        entry: dict[str, Any] = {
            "ts": round(time.time(), 3),
            "host": self._host,
            "request": current_request.get(),
            **more,
            "principal": _plain(caller.principal),
            "client": _plain(caller.client),
            "tool": _plain(tool.full_name),
            "outcome": outcome,
        }
        if arguments is not None:
            entry["arguments"] = self._hashes.of_arguments(arguments)
            if any(fnmatchcase(tool.full_name, pattern) for pattern in self._shown):
                entry["given"] = {_plain(name): self._show(value) for name, value in arguments.items()}
        return orjson.dumps(entry)

    def _show(self, value: object) -> str:
        """Return *value* as text without secrets, which may be cut."""
        return _plain(brief_repr(value, MAX_TEXT, self._redact))

    def _write(self, lines: list[bytes]) -> bool:
        """Return whether *lines* were written; runs in any thread."""
        try:
            # A character that steers a terminal is written as an escape: whoever reads the file sees it.
            text = "".join(f"{visible_json(line.decode())}\n" for line in lines)
            with self._turn:
                self._file.write(text)
        except OSError as error:
            self.failures += 1
            if not self._failing:
                logger.error("the audit log %s cannot be written: %s", self._path, error)
            self._failing = True
            return False
        if self._failing:
            logger.warning("the audit log %s is written again", self._path)
        self._failing = False
        return True


def _changes_nothing(tool: Tool) -> bool:
    return tool.pack in OUR_OWN or bool(tool.read_only)


def _plain(text: str) -> str:
    """Return *text* cut, and without halves of characters, which JSON cannot hold."""
    return text[:MAX_TEXT].encode(errors="backslashreplace").decode()

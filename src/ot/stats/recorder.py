"""Recorder: takes note of runs and calls without ever slowing or failing one."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ot.batches import Batches
from ot.config.models import Stats
from ot.errors import ToolUnavailable
from ot.execution.caller import Caller
from ot.execution.tool_executor import CallRecord
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack, ToolRegistry
from ot.stats.rows import CallRow, ConnectionRow, RunRow, StatsRow

if TYPE_CHECKING:
    from ot.stats.sqlite_sink import SqliteSink

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 0.5
CLOSE_SECONDS = 1.0
MAX_CLIENTS = 1000
MAX_NAME = 100
UNKNOWN = "(unknown)"
"""Stands for a tool that does not exist: programs could make up any number of names."""
PAUSE_SECONDS = 0.005
"""Between packs: reading hundreds of them must not take the processor from runs."""
TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}


class StatsPlace(NamedTuple):
    """Where statistics are kept now, and how."""

    file: Path
    settings: Stats


class _Call(NamedTuple):
    ts: float
    record: CallRecord


type _Noted = RunRow | ConnectionRow | _Call


class Recorder:
    """An observer of runs and calls; a thread of its own writes them, at most half a second later.

    Rows that cannot be written wait, ten thousand of them; what comes on top is counted as lost.
    """

    def __init__(self, place: StatsPlace, clock: Callable[[], float] = time.time) -> None:
        """Write to *place*, which nothing touches before the first row."""
        self._place = place
        self._clock = clock
        self._writer = _RowWriter()
        self._batches: Batches[_Noted] = Batches(self._write, name="ot-stats", seconds=FLUSH_SECONDS)
        self._clients: set[tuple[str, str]] = set()
        self._weighing: threading.Thread | None = None

    @property
    def place(self) -> StatsPlace:
        """Where statistics are kept now."""
        return self._place

    def move(self, place: StatsPlace) -> None:
        """Keep them there from now on; a reload may say so."""
        self._place = place

    def finished(self, call: CallRecord) -> None:
        """Take note of a call that has ended."""
        if self._place.settings.enabled:
            self._batches.add(_Call(self._clock(), call))

    def run_finished(self, run: RunRow) -> None:
        """Take note of a run that has ended."""
        if self._place.settings.enabled:
            self._batches.add(run)

    def note_client(self, caller: Caller, flat_chars: Callable[[], int], our_chars: int) -> None:
        """Take note of *caller*'s client, once; *flat_chars* may take its time, on a thread of its own."""
        key = caller.principal, caller.client
        if not self._place.settings.enabled or key in self._clients or len(self._clients) >= MAX_CLIENTS:
            return
        self._clients.add(key)
        ts = self._clock()

        def weigh() -> None:
            self._batches.add(ConnectionRow(ts, caller.principal, caller.client[:MAX_NAME], flat_chars(), our_chars))

        self._weighing = threading.Thread(target=weigh, name="ot-stats-flat", daemon=True)
        self._weighing.start()

    def flush(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Return whether all that was noted so far is written, waiting for it at most *seconds*."""
        end = time.monotonic() + seconds
        if self._weighing is not None:
            self._weighing.join(seconds / 2)
        return self._batches.flush(max(0.0, end - time.monotonic()))

    def close(self) -> None:
        """Write what is left, within a second or two."""
        self.flush()
        self._batches.close(CLOSE_SECONDS)
        self._writer.close()

    def health(self) -> dict[str, object]:
        """Return the state of the recording."""
        if not self._place.settings.enabled:
            return {"status": "disabled"}
        found: dict[str, object] = {"status": "degraded" if self._writer.trouble else "ok"}
        if self._writer.trouble:
            found |= {"error": self._writer.trouble, "waiting": self._batches.waiting}
        return found | ({"lost": self._batches.dropped} if self._batches.dropped else {})

    def _write(self, noted: list[_Noted]) -> bool:
        return self._writer.write(self._place, noted, self._batches.dropped)


class _RowWriter:
    """What the writing thread holds: the open file, and what went wrong last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: tuple[StatsPlace, SqliteSink] | None = None
        self._lost_told = 0
        self.trouble = ""

    def write(self, place: StatsPlace, noted: list[_Noted], lost: int) -> bool:
        """Return whether the rows were kept."""
        with self._lock:
            try:
                self._sink(place).write([_row(item) for item in noted], lost - self._lost_told)
            except OSError as error:
                if not self.trouble:
                    logger.warning("statistics cannot be written and wait in memory: %s", error)
                self.trouble = str(error)
                return False
            self._lost_told, self.trouble = lost, ""
            return True

    def close(self) -> None:
        """Let go of the file, unless the thread is stuck in it."""
        if self._lock.acquire(timeout=CLOSE_SECONDS):
            try:
                if self._open:
                    self._open[1].close()
                self._open = None
            finally:
                self._lock.release()

    def _sink(self, place: StatsPlace) -> SqliteSink:
        if self._open and self._open[0] == place:
            return self._open[1]
        if self._open:
            self._open[1].close()
        from ot.stats.sqlite_sink import SqliteSink  # noqa: PLC0415 - its import is spared to the start of the server

        sink = SqliteSink(place.file, retention_days=place.settings.retention_days)
        self._open = (place, sink)
        return sink


def _row(noted: _Noted) -> StatsRow:
    if not isinstance(noted, _Call):
        return noted
    call = noted.record
    tool = call.tool if call.source else UNKNOWN
    return CallRow(
        noted.ts, call.caller.principal, call.caller.client[:MAX_NAME], call.run_id, tool, tool.partition(".")[0],
        round(call.seconds * 1000, 3), call.error[:MAX_NAME], call.chars, call.source,
    )  # fmt: skip


# ---------------------------------------------------------------- a flat list, sent to a model with every request


def flat_chars(registry: ToolRegistry) -> int:
    """Return the characters of a ``tools/list`` with one entry a tool, as JSON; it takes its time.

    Bundled packs do not count: without OneTool, nobody would list them.
    """
    total = 0
    for pack in registry.packs.values():
        if not pack.bundled:
            total += _pack_chars(pack)
            time.sleep(PAUSE_SECONDS)
    return total


def definition(tool: Tool) -> dict[str, Any]:
    """Return the entry of *tool* in such a list."""
    schema = tool.input_schema or {
        "type": "object",
        "properties": {parameter.name: _property(parameter) for parameter in tool.parameters},
        "required": [parameter.name for parameter in tool.parameters if parameter.required],
    }
    return {"name": f"{tool.pack}_{tool.name}", "description": tool.doc, "inputSchema": dict(schema)}


def definition_chars(tool: Tool) -> int:
    """Return the characters of that entry as JSON."""
    return len(json.dumps(definition(tool), ensure_ascii=False, default=str))


def _pack_chars(pack: Pack) -> int:
    try:
        # Read anew and dropped: kept, the tools of unused packs would only fill the memory.
        tools = pack.tools.values() if "tools" in vars(pack) else pack.read_tools()
        return sum(map(definition_chars, tools))
    except ToolUnavailable:
        return 0


def _property(parameter: Parameter) -> dict[str, Any]:
    kind = TYPES.get(parameter.annotation.partition("[")[0].strip())
    found: dict[str, Any] = {"type": kind} if kind else {}
    return found | ({"description": parameter.description} if parameter.description else {})

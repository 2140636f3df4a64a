"""Sums: what a batch of rows adds to the hours and days that it falls into."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ot.stats.histogram import bucket_of
from ot.stats.rows import CallRow, ConnectionRow, RunRow, StatsRow
from ot.stats.schema import HOUR, SPANS, SPANS_OF_TIMES

MOST_CALLS = 1000
"""Runs of more calls are counted with those of this many."""

type Key = tuple[Any, ...]
type Figures = list[Any]


class Sums:
    """Adds rows up in memory, so that a batch costs one write a sum and not one a row."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[Key, Figures]] = {}

    def add(self, rows: Iterable[StatsRow]) -> None:
        """Add *rows* to the hours of their times."""
        for row in rows:
            start = int(row.ts) // HOUR * HOUR
            if isinstance(row, RunRow):
                self._run(start, row)
            elif isinstance(row, CallRow):
                self._call(start, row)
            else:
                self._connection(start, row)

    def of(self, table: str) -> list[Sequence[Any]]:
        """Return what is to be added to *table*: each hour's sums to that hour, to its day and so on."""
        spans = SPANS_OF_TIMES if table == "times" else SPANS
        return [
            (span, start // span * span, *key, *figures)
            for (start, *key), figures in self._tables.get(table, {}).items()
            for span in spans
        ]

    def _run(self, start: int, row: RunRow) -> None:
        failed = 1 if row.error_type else 0
        sizes = [row.chars_in, row.chars_out, row.tool_chars, row.kept_out, row.duration_ms]
        self._sum("run_sums", (start, row.client), [1, failed, row.calls, max(0, row.calls - 1), *sizes])
        self._sum("times", (start, "", bucket_of(row.duration_ms)), [1])
        self._sum("run_calls", (start, min(row.calls, MOST_CALLS)), [1])
        if failed:
            self._sum("error_sums", (start, "", row.error_type), [1], [row.ts])

    def _call(self, start: int, row: CallRow) -> None:
        failed = 1 if row.error_type else 0
        figures = [1, failed, row.chars_returned, row.duration_ms]
        key = (start, row.tool, row.client, row.pack, row.source)
        self._sum("call_sums", key, figures, [row.duration_ms, row.ts])
        self._sum("times", (start, row.tool, bucket_of(row.duration_ms)), [1])
        if failed:
            self._sum("error_sums", (start, row.tool, row.error_type), [1], [row.ts])

    def _connection(self, start: int, row: ConnectionRow) -> None:
        self._sum("connection_sums", (start, row.client), [1, row.flat_chars, row.our_chars])

    def _sum(self, table: str, key: Key, summed: Figures, largest: Figures | None = None) -> None:
        largest = largest or []
        rows = self._tables.setdefault(table, {})
        found = rows.get(key)
        if found is None:
            rows[key] = [*summed, *largest]
            return
        for place, figure in enumerate(summed):
            found[place] += figure
        for place, figure in enumerate(largest, len(summed)):
            found[place] = max(found[place], figure)

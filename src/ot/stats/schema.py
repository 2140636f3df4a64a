"""The statistics' database: one row a run and one a call, and sums of them by hour and by day."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ot.stats.rows import CallRow, ConnectionRow, RunRow, StatsRow

VERSION = 4
WITH_PRINCIPAL = 3
"""Since this version every row says whose it is; what is older is of this process's user."""
WITH_TOLERANCES = 4
"""Since this version it is counted how often each row of the table of tolerances was used."""
HOUR, DAY = 3600, 86_400
MONTH = 30 * DAY
SPANS = (HOUR, DAY)
"""The lengths, in seconds, over which sums are kept."""
SPANS_OF_TIMES = (*SPANS, MONTH)
"""Of times there are many more sums: those of all days ever would take seconds to read."""
MAX_CALLS = 1000
"""Runs of more calls are counted with those of this many."""
FIRST_BUCKET_MS = 0.1
BUCKET_STEPS = 4
"""Buckets to a doubling: an estimate is off by at most a fifth, and mostly by far less."""
LAST_BUCKET = 96
"""The bucket of everything above twenty-six minutes."""

TABLES = """
CREATE TABLE runs (ts REAL, client TEXT, run TEXT, chars_in INTEGER, chars_out INTEGER, duration_ms REAL,
    success INTEGER, error_type TEXT, calls INTEGER, tool_chars INTEGER, ot_chars INTEGER, engine TEXT,
    principal TEXT);
CREATE TABLE calls (ts REAL, client TEXT, run TEXT, tool TEXT, pack TEXT, duration_ms REAL,
    success INTEGER, error_type TEXT, chars_returned INTEGER, source TEXT, principal TEXT);
CREATE TABLE connections (ts REAL, client TEXT, flat_chars INTEGER, our_chars INTEGER, principal TEXT);
CREATE TABLE losses (ts REAL, rows INTEGER);
CREATE TABLE run_sums (span INTEGER, start INTEGER, principal TEXT, client TEXT, runs INTEGER, errors INTEGER,
    calls INTEGER, composed INTEGER, chars_in INTEGER, chars_out INTEGER, tool_chars INTEGER, kept_out INTEGER, ms REAL,
    PRIMARY KEY (span, start, principal, client)) WITHOUT ROWID;
CREATE TABLE call_sums (span INTEGER, start INTEGER, principal TEXT, tool TEXT, client TEXT, pack TEXT, source TEXT,
    calls INTEGER, errors INTEGER, chars INTEGER, ms REAL, slowest_ms REAL, last REAL,
    PRIMARY KEY (span, start, principal, tool, client)) WITHOUT ROWID;
CREATE TABLE error_sums (span INTEGER, start INTEGER, principal TEXT, tool TEXT, error_type TEXT, count INTEGER,
    last REAL, PRIMARY KEY (span, start, principal, tool, error_type)) WITHOUT ROWID;
CREATE TABLE times (span INTEGER, start INTEGER, principal TEXT, tool TEXT, bucket INTEGER, count INTEGER,
    PRIMARY KEY (span, start, principal, tool, bucket)) WITHOUT ROWID;
CREATE TABLE run_calls (span INTEGER, start INTEGER, principal TEXT, calls INTEGER, count INTEGER,
    PRIMARY KEY (span, start, principal, calls)) WITHOUT ROWID;
CREATE TABLE connection_sums (span INTEGER, start INTEGER, principal TEXT, client TEXT, connections INTEGER,
    flat_chars INTEGER, our_chars INTEGER, PRIMARY KEY (span, start, principal, client)) WITHOUT ROWID;
CREATE TABLE tolerance_sums (span INTEGER, start INTEGER, principal TEXT, tolerance TEXT, count INTEGER,
    PRIMARY KEY (span, start, principal, tolerance)) WITHOUT ROWID;
"""
"""In ``times`` and ``error_sums`` an empty tool stands for whole runs."""

MONTHS_OF_DAYS = f"""INSERT OR REPLACE INTO times
    SELECT {MONTH}, start / {MONTH} * {MONTH}, principal, tool, bucket, sum(count) FROM times
    WHERE span = {DAY} GROUP BY 2, 3, 4, 5"""
"""Version 1 had no sums of times by month."""

DETAILS = ("runs", "calls", "connections", "losses")
SUMS = {
    "run_sums": ("principal client", "runs errors calls composed chars_in chars_out tool_chars kept_out ms", ""),
    "call_sums": ("principal tool client pack source", "calls errors chars ms", "slowest_ms last"),
    "error_sums": ("principal tool error_type", "count", "last"),
    "times": ("principal tool bucket", "count", ""),
    "run_calls": ("principal calls", "count", ""),
    "connection_sums": ("principal client", "connections flat_chars our_chars", ""),
    "tolerance_sums": ("principal tolerance", "count", ""),
}
"""For each table of sums: what is summed up apart, what is added, and of what the largest is kept."""


def _addition(table: str, apart: str, added: str, largest: str) -> str:
    columns = ["span", "start", *apart.split(), *added.split(), *largest.split()]
    values = [f"{name} = {name} + excluded.{name}" for name in added.split()]
    values += [f"{name} = max({name}, excluded.{name})" for name in largest.split()]
    row = f"{table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    return f"INSERT INTO {row} ON CONFLICT DO UPDATE SET {', '.join(values)}"


ADD = {table: _addition(table, *columns) for table, columns in SUMS.items()}
"""How sums of new rows are added to those that are there."""


# ---------------------------------------------------------------- times, in buckets that grow by a fifth


def bucket_of(ms: float) -> int:
    """Return the bucket that holds *ms*."""
    return min(LAST_BUCKET, math.ceil(math.log2(ms / FIRST_BUCKET_MS) * BUCKET_STEPS)) if ms > FIRST_BUCKET_MS else 0


def upper_edge(bucket: int) -> float:
    """Return the most milliseconds that *bucket* holds."""
    return FIRST_BUCKET_MS * 2 ** (bucket / BUCKET_STEPS)


def percentile(counts: Mapping[int, int], share: float) -> float:
    """Return the estimated time below which *share* of all counted times lie; 0 when there are none."""
    below, wanted = 0, share * sum(counts.values())
    for bucket in sorted(counts):
        here = counts[bucket]
        if here and below + here >= wanted:
            return upper_edge(bucket) * 2 ** ((wanted - below - here) / here / BUCKET_STEPS)
        below += here
    return 0.0


# ---------------------------------------------------------------- what a batch of rows adds to the sums


class Sums:
    """Adds rows up in memory, so that a batch costs one write a sum and not one a row."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[tuple[Any, ...], list[Any]]] = {}

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
        """Return what to add to *table*: each hour's sums to that hour, to its day and so on."""
        spans = SPANS_OF_TIMES if table == "times" else SPANS
        return [
            (span, start // span * span, *key, *figures)
            for (start, *key), figures in self._tables.get(table, {}).items()
            for span in spans
        ]

    def _run(self, start: int, row: RunRow) -> None:
        failed = 1 if row.error_type else 0
        sizes = [row.chars_in, row.chars_out, row.tool_chars, row.kept_out, row.duration_ms]
        self._sum("run_sums", (start, row.principal, row.client), [1, failed, row.calls, max(0, row.calls - 1), *sizes])
        self._sum("times", (start, row.principal, "", bucket_of(row.duration_ms)), [1])
        self._sum("run_calls", (start, row.principal, min(row.calls, MAX_CALLS)), [1])
        if failed:
            self._sum("error_sums", (start, row.principal, "", row.error_type), [1], [row.ts])
        for tolerance in row.tolerated:
            self._sum("tolerance_sums", (start, row.principal, tolerance), [1])

    def _call(self, start: int, row: CallRow) -> None:
        failed = 1 if row.error_type else 0
        figures = [1, failed, row.chars_returned, row.duration_ms]
        key = (start, row.principal, row.tool, row.client, row.pack, row.source)
        self._sum("call_sums", key, figures, [row.duration_ms, row.ts])
        self._sum("times", (start, row.principal, row.tool, bucket_of(row.duration_ms)), [1])
        if failed:
            self._sum("error_sums", (start, row.principal, row.tool, row.error_type), [1], [row.ts])

    def _connection(self, start: int, row: ConnectionRow) -> None:
        self._sum("connection_sums", (start, row.principal, row.client), [1, row.flat_chars, row.our_chars])

    def _sum(self, table: str, key: tuple[Any, ...], summed: list[Any], largest: Sequence[Any] = ()) -> None:
        rows = self._tables.setdefault(table, {})
        found = rows.get(key)
        if found is None:
            rows[key] = [*summed, *largest]
            return
        for place, figure in enumerate(summed):
            found[place] += figure
        for place, figure in enumerate(largest, len(summed)):
            found[place] = max(found[place], figure)

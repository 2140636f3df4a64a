"""Answers from the statistics' sums: no question but for the latest runs reads single rows, so they may be millions."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

from ot.config.principal import os_user
from ot.stats.figures import Figures, ToolFigures, Window
from ot.stats.schema import MONTH, SUMS, TABLES, VERSION, WITH_PRINCIPAL, WITH_TOLERANCES, percentile
from ot.stats.sqlite_sink import open_for_reading, version_of


def read_figures(path: Path, period: str, now: float, *, tool: str = "", principal: str = "") -> Figures:
    """Return the figures of *period*, of one *tool* or pack and one *principal* if named; without a database zeros.

    Raises:
        OSError: The database is there and cannot be read.
    """
    window = Window.of(period, now)
    if not path.exists():
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.executescript(f"{TABLES}; PRAGMA user_version = {VERSION}")
            return _figures(connection, window, tool, principal)
    try:
        with closing(open_for_reading(path)) as connection:
            return _figures(connection, window, tool, principal)
    except sqlite3.Error as error:
        raise OSError(f"the statistics cannot be read: {path}: {error}") from error


LATEST_CALLS = 10_000
"""How many of the latest calls are looked through for those of some runs."""


def read_latest_runs(path: Path, most: int) -> list[dict[str, Any]]:
    """Return the latest runs of this user, the last one first, each with its ``tools``; without a database none.

    Raises:
        OSError: The database is there and cannot be read.
    """
    if not path.exists():
        return []
    try:
        with closing(open_for_reading(path)) as connection:
            connection.row_factory = sqlite3.Row
            mine = " WHERE principal = ?" if version_of(connection) >= WITH_PRINCIPAL else ""
            latest = f"SELECT * FROM runs{mine} ORDER BY rowid DESC LIMIT ?"
            whose = (os_user(),) if mine else ()
            found = connection.execute(latest, (*whose, most))
            runs: dict[str, dict[str, Any]] = {row["run"]: {**row, "tools": []} for row in found}
            since = "rowid > (SELECT max(rowid) FROM calls) - ?"
            for row in connection.execute(f"SELECT * FROM calls WHERE {since} ORDER BY rowid", (LATEST_CALLS,)):
                if row["run"] in runs:
                    runs[row["run"]]["tools"].append(dict(row))
            return list(runs.values())
    except sqlite3.Error as error:
        raise OSError(f"the statistics cannot be read: {path}: {error}") from error


def _figures(connection: sqlite3.Connection, window: Window, tool: str, principal: str) -> Figures:
    connection.row_factory = sqlite3.Row
    # All questions see one moment: what servers write meanwhile must not be in some of the answers alone.
    connection.execute("BEGIN")
    ask = _Ask(connection, window, tool, principal)
    times = ask.times()
    return Figures(
        window=window,
        first=ask.first(),
        runs=ask.runs(),
        clients=ask.clients(),
        tools=ask.tools(times),
        errors=ask.errors(),
        pack_series=ask.pack_series(),
        run_series=ask.run_series(),
        run_calls=ask.run_calls(),
        p50_ms=percentile(times[""], 0.5),
        p95_ms=percentile(times[""], 0.95),
        lost=ask.count_losses(),
        tolerated=ask.count_tolerances(),
    )


class _Ask:
    """The questions, each one statement over the sums of one window."""

    def __init__(self, connection: sqlite3.Connection, window: Window, tool: str, principal: str) -> None:
        self._connection = connection
        self._window = (window.span, window.start)
        self._of_principal, self._whose = "", ()
        if principal and version_of(connection) >= WITH_PRINCIPAL:
            self._of_principal, self._whose = " AND principal = ?", (principal,)
        elif principal not in ("", os_user()):
            self._of_principal = " AND 0"
        self._end = window.end
        self._tool = tool

    def _rows(self, statement: str, *more: object) -> list[dict[str, Any]]:
        text = statement.format(window=f"span = ? AND start >= ?{self._of_principal}")
        return [dict(row) for row in self._connection.execute(text, (*self._window, *self._whose, *more))]

    def _of_tool(self, statement: str, column: str = "tool") -> list[dict[str, Any]]:
        if not self._tool:
            return self._rows(statement.format(window="{window}", tool="1"))
        # Not LIKE, to which Web and web are one pack.
        named, beginning = f"({column} = ? OR substr({column}, 1, ?) = ?)", f"{self._tool}."
        return self._rows(statement.format(window="{window}", tool=named), self._tool, len(beginning), beginning)

    def first(self) -> float:
        (row,) = self._rows("SELECT min(start) AS first FROM run_sums WHERE {window}")
        return row["first"] or self._end

    def runs(self) -> dict[str, Any]:
        return self._total("run_sums") | self._total("connection_sums")

    def _total(self, table: str) -> dict[str, Any]:
        sums = ", ".join(f"coalesce(sum({column}), 0) AS {column}" for column in SUMS[table][1].split())
        (found,) = self._rows(f"SELECT {sums} FROM {table} WHERE {{window}}")
        return found

    def clients(self) -> list[dict[str, Any]]:
        return self._rows(
            "SELECT client, sum(runs) AS runs, sum(errors) AS errors, sum(calls) AS calls, sum(ms) AS ms,"
            " sum(chars_out) AS chars_out, sum(kept_out) AS kept_out FROM run_sums WHERE {window}"
            " GROUP BY client ORDER BY runs DESC LIMIT 100"
        )

    def times(self) -> defaultdict[str, dict[int, int]]:
        found: defaultdict[str, dict[int, int]] = defaultdict(dict)
        span, start = self._window
        rows = self._connection.execute(
            f"SELECT tool, bucket, sum(count) FROM times WHERE span = ? AND start >= ?{self._of_principal}"
            " GROUP BY tool, bucket",
            (MONTH if not start and version_of(self._connection) > 1 else span, start, *self._whose),
        )
        for tool, bucket, count in rows:
            found[tool][bucket] = count
        return found

    def tools(self, times: defaultdict[str, dict[int, int]]) -> list[ToolFigures]:
        series: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for row in self._of_tool(
            "SELECT tool, start, sum(calls) AS calls FROM call_sums WHERE {window} AND {tool} GROUP BY tool, start"
        ):
            series[row["tool"]].append((row["start"], row["calls"]))
        found = self._of_tool(
            "SELECT tool, max(pack) AS pack, max(source) AS source, sum(calls) AS calls, sum(errors) AS errors,"
            " sum(chars) AS chars, sum(ms) AS ms, max(slowest_ms) AS slowest_ms, max(last) AS last"
            " FROM call_sums WHERE {window} AND {tool} GROUP BY tool ORDER BY calls DESC, tool"
        )
        return [
            ToolFigures(
                **row,
                p50_ms=round(percentile(times[row["tool"]], 0.5), 2),
                p95_ms=round(percentile(times[row["tool"]], 0.95), 2),
                series=tuple(series[row["tool"]]),
            )
            for row in found
        ]

    def errors(self) -> list[dict[str, Any]]:
        return self._of_tool(
            "SELECT tool, error_type, sum(count) AS count, max(last) AS last FROM error_sums"
            " WHERE {window} AND {tool} GROUP BY tool, error_type ORDER BY count DESC LIMIT 200"
        )

    def pack_series(self) -> list[tuple[int, str, int]]:
        rows = self._of_tool(
            "SELECT start, pack, sum(calls) AS calls FROM call_sums WHERE {window} AND {tool}"
            " GROUP BY start, pack ORDER BY start"
        )
        return [(row["start"], row["pack"], row["calls"]) for row in rows]

    def run_series(self) -> list[dict[str, Any]]:
        sent = {
            row["start"]: row["kept"]
            for row in self._rows(
                "SELECT start, sum(flat_chars) - sum(our_chars) AS kept FROM connection_sums"
                " WHERE {window} GROUP BY start"
            )
        }
        rows = self._rows(
            "SELECT start, sum(runs) AS runs, sum(errors) AS errors, sum(kept_out) AS kept_out FROM run_sums"
            " WHERE {window} GROUP BY start ORDER BY start"
        )
        return [row | {"definitions": sent.get(row["start"], 0)} for row in rows]

    def run_calls(self) -> dict[int, int]:
        rows = self._rows("SELECT calls, sum(count) AS count FROM run_calls WHERE {window} GROUP BY calls")
        return {row["calls"]: row["count"] for row in rows}

    def count_tolerances(self) -> dict[str, int]:
        if version_of(self._connection) < WITH_TOLERANCES:
            return {}
        rows = self._rows(
            "SELECT tolerance, sum(count) AS count FROM tolerance_sums WHERE {window}"
            " GROUP BY tolerance ORDER BY count DESC, tolerance"
        )
        return {row["tolerance"]: row["count"] for row in rows}

    def count_losses(self) -> int:
        (row,) = self._connection.execute(
            "SELECT coalesce(sum(rows), 0) AS lost FROM losses WHERE ts >= ?", (self._window[1],)
        )
        return row["lost"]

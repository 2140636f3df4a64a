"""The statistics' database: one row a run and one a call, and sums of them by hour and by day."""

from __future__ import annotations

VERSION = 2
HOUR, DAY = 3600, 86_400
MONTH = 30 * DAY
SPANS = (HOUR, DAY)
"""The lengths, in seconds, over which sums are kept."""
SPANS_OF_TIMES = (*SPANS, MONTH)
"""Of times there are many more sums: those of all days ever would take seconds to read."""

TABLES = """
CREATE TABLE runs (ts REAL, client TEXT, run TEXT, chars_in INTEGER, chars_out INTEGER, duration_ms REAL,
    success INTEGER, error_type TEXT, calls INTEGER, tool_chars INTEGER, ot_chars INTEGER, engine TEXT);
CREATE TABLE calls (ts REAL, client TEXT, run TEXT, tool TEXT, pack TEXT, duration_ms REAL,
    success INTEGER, error_type TEXT, chars_returned INTEGER, source TEXT);
CREATE TABLE connections (ts REAL, client TEXT, flat_chars INTEGER, our_chars INTEGER);
CREATE TABLE losses (ts REAL, rows INTEGER);
CREATE TABLE run_sums (span INTEGER, start INTEGER, client TEXT, runs INTEGER, errors INTEGER, calls INTEGER,
    composed INTEGER, chars_in INTEGER, chars_out INTEGER, tool_chars INTEGER, kept_out INTEGER, ms REAL,
    PRIMARY KEY (span, start, client)) WITHOUT ROWID;
CREATE TABLE call_sums (span INTEGER, start INTEGER, tool TEXT, client TEXT, pack TEXT, source TEXT, calls INTEGER,
    errors INTEGER, chars INTEGER, ms REAL, slowest_ms REAL, last REAL,
    PRIMARY KEY (span, start, tool, client)) WITHOUT ROWID;
CREATE TABLE error_sums (span INTEGER, start INTEGER, tool TEXT, error_type TEXT, count INTEGER, last REAL,
    PRIMARY KEY (span, start, tool, error_type)) WITHOUT ROWID;
CREATE TABLE times (span INTEGER, start INTEGER, tool TEXT, bucket INTEGER, count INTEGER,
    PRIMARY KEY (span, start, tool, bucket)) WITHOUT ROWID;
CREATE TABLE run_calls (span INTEGER, start INTEGER, calls INTEGER, count INTEGER,
    PRIMARY KEY (span, start, calls)) WITHOUT ROWID;
CREATE TABLE connection_sums (span INTEGER, start INTEGER, client TEXT, connections INTEGER,
    flat_chars INTEGER, our_chars INTEGER, PRIMARY KEY (span, start, client)) WITHOUT ROWID;
"""
"""In ``times`` and ``error_sums`` an empty tool stands for whole runs."""

MONTHS_OF_DAYS = f"""INSERT OR REPLACE INTO times
    SELECT {MONTH}, start / {MONTH} * {MONTH}, tool, bucket, sum(count) FROM times
    WHERE span = {DAY} GROUP BY 2, 3, 4"""
"""Version 1 had no sums of times by month."""

DETAILS = ("runs", "calls", "connections", "losses")
SUMS = ("run_sums", "call_sums", "error_sums", "times", "run_calls", "connection_sums")

ADD = {
    "run_sums": """INSERT INTO run_sums VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
        runs = runs + excluded.runs, errors = errors + excluded.errors, calls = calls + excluded.calls,
        composed = composed + excluded.composed, chars_in = chars_in + excluded.chars_in,
        chars_out = chars_out + excluded.chars_out, tool_chars = tool_chars + excluded.tool_chars,
        kept_out = kept_out + excluded.kept_out, ms = ms + excluded.ms""",
    "call_sums": """INSERT INTO call_sums (span, start, tool, client, pack, source, calls, errors, chars, ms,
        slowest_ms, last) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
        calls = calls + excluded.calls, errors = errors + excluded.errors, chars = chars + excluded.chars,
        ms = ms + excluded.ms, slowest_ms = max(slowest_ms, excluded.slowest_ms), last = max(last, excluded.last)""",
    "error_sums": """INSERT INTO error_sums VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
        count = count + excluded.count, last = max(last, excluded.last)""",
    "times": """INSERT INTO times VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count""",
    "run_calls": "INSERT INTO run_calls VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
    "connection_sums": """INSERT INTO connection_sums VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
        connections = connections + excluded.connections, flat_chars = flat_chars + excluded.flat_chars,
        our_chars = our_chars + excluded.our_chars""",
}
"""How sums of new rows are added to those that are there."""

INSERT = {
    "runs": "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "calls": "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "connections": "INSERT INTO connections VALUES (?, ?, ?, ?)",
}

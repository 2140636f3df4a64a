-- The tables of statistics before each row said whose it is.
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
PRAGMA user_version = 2;

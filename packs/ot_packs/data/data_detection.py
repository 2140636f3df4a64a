"""Finds the columns of a CSV or JSON file by all of its values.

Where the file is large, a process of its own looks: DuckDB cannot be interrupted meanwhile.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
from data_engine import TableEngine, limit_memory, literal, quote

SMALL = 4 << 20
SMALL_PACKED = 64 << 10
"""Bytes of a file that is looked at here, in less than a second."""
CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); import data_detection; data_detection.main(*sys.argv[2:])"
)
INPUT = "/dev/stdin"
DIALECT = ("delim", "quote", "escape", "new_line", "comment", "skip", "header")
ASKED = {
    "csv": "SELECT Delimiter, Quote, Escape, NewLineDelimiter, Comment, SkipRows, HasHeader, TimestampFormat, Columns "
    "FROM sniff_csv({})",
    "json": "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM read_json({}))",
}
LINE_ENDS = (r"\n", r"\r\n", r"\r")
TOLD_APART = re.compile(r"(.+)_\d+")


def csv_reader(name: str, at: str, given: Sequence[str], engine: TableEngine, said: str, *, packed: bool) -> str:
    """Return the call of DuckDB that reads the CSV file at *at*, with the type of each column."""
    ((*dialect, moments, found),) = _ask("csv", name, at, [*given, "sample_size = -1"], engine, said, packed=packed)
    chosen = {option: "" if value == "(empty)" else value for option, value in zip(DIALECT, dialect, strict=True)}
    if chosen["new_line"] not in LINE_ENDS:
        del chosen["new_line"]
    if moments and not moments.startswith("%Y"):  # as with days: it can be read in two ways
        found = [column | ({"type": "VARCHAR"} if column["type"] == "TIMESTAMP" else {}) for column in found]
    options = [f"{option} = {literal(value)}" for option, value in chosen.items()]
    options += [item for item in given if not item.startswith(("delimiter =", "header ="))]
    types = {column["name"]: column["type"] for column in found}

    def reader(types: Mapping[str, str]) -> str:
        return f"read_csv({', '.join([literal(at), 'auto_detect = false', *options, _columns(types)])})"

    if numbers := [name for name, kind in types.items() if kind == "BIGINT"]:
        # A zip code such as 02134 is not the number 2134.
        asked = ", ".join(f"coalesce(bool_or(regexp_matches({quote(name)}, '^0[0-9]')), false)" for name in numbers)
        (padded,) = engine.ask(name, f"SELECT {asked} FROM {reader(dict.fromkeys(types, 'VARCHAR'))}", {at: said})
        types |= {number: "VARCHAR" for number, is_padded in zip(numbers, padded, strict=True) if is_padded}
    return reader(types)


def json_reader(name: str, at: str, given: Sequence[str], engine: TableEngine, said: str, *, packed: bool) -> str:
    """Return the call of DuckDB that reads the JSON file at *at*."""
    every = [*given, "sample_size = -1"]
    alone = f"read_json({', '.join([literal(at), *every])})"
    if not _is_large(at, packed=packed):
        return alone
    found = dict(_ask("json", name, at, every, engine, said, packed=packed))
    if list(found) == ["json"] and found["json"].startswith("MAP("):
        every.append("map_inference_threshold = -1")
        found = dict(_ask("json", name, at, every, engine, said, packed=packed))
    if _has_names_told_apart(list(found)):
        return alone  # these are not the keys that the file has
    types = {column: "VARCHAR" if kind == '"NULL"' else kind for column, kind in found.items()}
    return f"read_json({', '.join([literal(at), *given, _columns(types)])})"


def _columns(types: Mapping[str, str]) -> str:
    return "columns = {" + ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in types.items()) + "}"


def _has_names_told_apart(names: Sequence[str]) -> bool:
    known = {name.lower() for name in names}
    return any((found := TOLD_APART.fullmatch(name)) and found[1] in known for name in known)


def _is_large(at: str, *, packed: bool) -> bool:
    return Path(at).stat().st_size > (SMALL_PACKED if packed else SMALL)


def _ask(
    kind: str, name: str, at: str, options: Sequence[str], engine: TableEngine, said: str, *, packed: bool
) -> list[Any]:
    if not _is_large(at, packed=packed):
        return engine.ask(name, ASKED[kind].format(", ".join([literal(at), *options])), {at: said})
    wanted = json.dumps([kind, list(options), engine.limits.memory_mb])
    argv = [sys.executable, "-I", "-c", CODE, json.dumps(sys.path), wanted]
    try:
        with Path(at).open("rb") as file:
            done = subprocess.run(argv, stdin=file, capture_output=True, timeout=engine.seconds_left, check=False)
    except subprocess.TimeoutExpired:
        raise engine.too_slow() from None
    if done.returncode:
        raise engine.unreadable(name, done.stderr.decode(errors="replace"), {INPUT: said})
    return json.loads(done.stdout)


# ---------------------------------------------------------------- in the other process


def main(wanted: str) -> None:
    """Write what DuckDB finds in the file on standard input to standard output; what is wrong to standard error."""
    kind, options, memory_mb = json.loads(wanted)
    limit_memory(memory_mb)
    try:
        with duckdb.connect(":memory:", config={"memory_limit": f"{memory_mb}MiB", "threads": "1"}) as db:
            found = db.execute(ASKED[kind].format(", ".join([literal(INPUT), *options]))).fetchall()
    except (duckdb.Error, MemoryError) as error:
        sys.stderr.write(str(error))
        raise SystemExit(3) from None
    sys.stdout.write(json.dumps(found))

"""Files of hostile repositories that only a program can make."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from ot.config.principal import os_user
from ot.stats.schema import DAY, HOUR, MONTH, TABLES, VERSION

JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
RESULT = "A" * 22
LOCK_PAGE = (1 << 30) // 4096 + 1

type Fill = Callable[[str], str]


def statistics(path: Path, fill: Fill, tool: str = "file.read", more: str = "") -> None:
    """Make a database of statistics in which *tool* was called today, with *more* tables and triggers."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLES)
        for span in (HOUR, DAY, MONTH):
            start = int(time.time()) // span * span
            connection.execute(
                "INSERT INTO call_sums VALUES (?, ?, ?, ?, 'c', 'file', 'local', 3, 1, 9, 1.0, 1.0, ?)",
                (span, start, os_user(), tool, start),
            )
            connection.execute(
                "INSERT INTO run_sums VALUES (?, ?, ?, 'c', 1, 0, 1, 0, 9, 9, 9, 9, 1.0)", (span, start, os_user())
            )
        connection.executescript(f"{more}; PRAGMA user_version = {VERSION}")
        connection.commit()


def statistics_that_steer(path: Path, fill: Fill) -> None:
    """Make statistics of a tool whose name writes to the clipboard."""
    statistics(path, fill, tool="file.read\x1b]52;c;ZXZpbA==\x07\u202e")


def statistics_that_speak_shell(path: Path, fill: Fill) -> None:
    """Make statistics whose report would be a script."""
    statistics(path, fill, tool=fill("file.x\ntouch @MARK@/report\n"))


def statistics_that_take_long(path: Path, fill: Fill) -> None:
    """Make statistics with a trigger that counts to twelve million with every run."""
    count = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 12000000) SELECT max(x) FROM n"
    deed = f"INSERT INTO losses VALUES (0, ({count}))"
    statistics(path, fill, more=f"CREATE TRIGGER t AFTER INSERT ON runs BEGIN {deed}; END")


def statistics_of_words(path: Path, fill: Fill) -> None:
    """Make statistics whose numbers are words."""
    statistics(path, fill, more="UPDATE call_sums SET calls = 'many', ms = 'long'; UPDATE run_sums SET runs = 'x'")


def journal_that_removes(path: Path, fill: Fill) -> None:
    """Make statistics in the middle of a transaction over several files, whose super-journal is the user's file.

    SQLite removes a super-journal that no journal refers to any more once it has rolled back.
    """
    statistics(path, fill)
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("PRAGMA page_size").fetchone()
    size = path.stat().st_size // page
    target = fill("@HOME@/.bash_profile").encode()
    header = JOURNAL_MAGIC + struct.pack(">IIIII", 0, 0, size, 512, page)
    trailer = struct.pack(">I", LOCK_PAGE) + target + struct.pack(">II", len(target), sum(target)) + JOURNAL_MAGIC
    path.with_name(f"{path.name}-journal").write_bytes(header.ljust(512, b"\0") + trailer)


def many_references(path: Path, fill: Fill) -> None:
    """Make a client's file with a text in which references begin and never end."""
    path.write_text('{"servers": {"slow": {"command": "x", "args": ["' + "${a:" * 8_000 + '"]}}}')


def name_that_is_no_text(path: Path, fill: Fill) -> None:
    """Make a file whose name is not text in any usual encoding."""
    Path(os.fsdecode(os.fsencode(path.parent) + b"/x\xff\xfe.py")).touch()


def deep_json(path: Path, fill: Fill) -> None:
    """Make a client's file that is nested very deep."""
    path.write_text('{"mcpServers": ' + '{"a": ' * 100_000 + "}" * 100_001)


def deep_toml(path: Path, fill: Fill) -> None:
    """Make a client's file that is nested very deep."""
    path.write_text("mcp_servers = " + "[" * 100_000 + "]" * 100_000)


def huge_file(path: Path, fill: Fill) -> None:
    """Make a file of a gigabyte that takes no room."""
    with path.open("wb") as file:
        file.truncate(1 << 30)


def planted_result(path: Path, fill: Fill) -> None:
    """Make a stored result whose content is the user's credentials."""
    target = Path(fill("@HOME@/.aws/credentials"))
    meta = {
        "handle": RESULT, "owner": f"uid:{os.getuid()}", "tool": "file.read", "form": "text",
        "size_bytes": target.stat().st_size, "total_lines": 3, "created_at": datetime.now(UTC).isoformat(),
    }  # fmt: skip
    path.with_name(f"result-{RESULT}.txt").symlink_to(target)
    path.with_name(f"result-{RESULT}.meta.json").write_text(json.dumps(meta))
    path.with_name(f"result-{RESULT}.idx").write_bytes(b"")


def junk_results(path: Path, fill: Fill) -> None:
    """Make files that are called as those of results are, and hold anything else."""
    for number, text in enumerate(("", "[]", '{"size_bytes": -1}', "\x00", '{"created_at": "9999-99-99"}')):
        for suffix in (".txt", ".idx", ".meta.json", ".meta.tmp"):
            path.with_name(f"result-{'B' * 21}{number}{suffix}").write_text(text)
    os.mkfifo(path.with_name(f"result-{'C' * 22}.meta.json"))
    path.with_name(f"result-{'C' * 22}.txt").mkdir()


MADE: Mapping[str, Callable[[Path, Fill], None]] = {
    made.__name__: made
    for made in (
        statistics, statistics_that_steer, statistics_that_speak_shell, statistics_that_take_long, statistics_of_words,
        journal_that_removes, many_references, name_that_is_no_text, deep_json, deep_toml, huge_file,
        planted_result, junk_results,
    )
}  # fmt: skip
"""The files by the names that the corpus has for them."""

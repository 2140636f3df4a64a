"""A SQLite file, private to its user, that several processes write at the same time."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from ot.files.no_links import NO_LINK, make_private

BUSY_SECONDS = 5.0
PAUSE_SECONDS = 0.01
NETWORK = ("9p", "afs", "ceph", "cifs", "fuse", "gpfs", "lustre", "nfs", "smb", "virtiofs")
"""What the kinds of file systems begin with that other machines may have mounted, too."""


def open_shared_database(
    path: Path, make_tables: Callable[[sqlite3.Connection], None], *, power: bool = False
) -> sqlite3.Connection:
    """Return a connection to *path* in autocommit mode, for any thread, on which *make_tables* was called.

    A crash of the process loses nothing that was written; with *power*, neither does a loss of power.
    """
    make_private(path.parent)
    # SQLite gives its side files the mode of the file itself.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | NO_LINK, 0o600))
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        _set_journal(connection, mode := _journal_for(Path(os.path.realpath(path))))
        connection.execute(f"PRAGMA synchronous = {'FULL' if power or mode != 'WAL' else 'NORMAL'}")
        connection.execute("PRAGMA trusted_schema = OFF")
        make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _journal_for(path: Path) -> str:
    """Return SQLite's mode for *path*: the index of a write-ahead log is memory, which machines do not share."""
    try:
        mounts = dict(line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines())
    except OSError:  # not Linux
        return "WAL"
    kind = mounts.get(max(filter(path.is_relative_to, mounts), default=""), "")
    return "TRUNCATE" if kind.startswith(NETWORK) else "WAL"


def _set_journal(connection: sqlite3.Connection, mode: str) -> None:
    """Use that mode; SQLite does not wait for another process that makes the same new file."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute(f"PRAGMA journal_mode = {mode}")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(PAUSE_SECONDS)

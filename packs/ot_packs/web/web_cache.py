"""PageCache: answers of web servers, kept in a private file of the user and bounded in size."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from pathlib import Path

from web_requests import WebAnswer

KEPT_HEADERS = ("content-type", "etag", "last-modified", "cache-control", "expires", "date")
SCHEMA = """
CREATE TABLE IF NOT EXISTS pages (
    key BLOB PRIMARY KEY, headers TEXT, body BLOB, size INTEGER, checked REAL, used REAL
)
"""
MONTH = 30 * 86400.0


@dataclass(frozen=True)
class KeptAnswer:
    """An answer that was kept, and when its server last confirmed it."""

    answer: WebAnswer
    checked: float

    @property
    def age(self) -> float:
        """Seconds since then; a clock that was set back makes it old, not young."""
        seconds = time.time() - self.checked
        return seconds if seconds >= 0 else MONTH

    def is_fresh(self, max_age: float | None, default: float) -> bool:
        """Return whether it needs no question: *max_age* counts before what its server said, that before *default*."""
        if max_age is not None:
            return self.age < max_age
        return self.age < _lifetime(self.answer.headers, default)

    def conditions(self) -> dict[str, str]:
        """Return the headers that ask for a newer one only; what no header can hold is not sent back."""
        asked = {"If-None-Match": "etag", "If-Modified-Since": "last-modified"}
        marks = {header: self.answer.headers.get(name, "") for header, name in asked.items()}
        return {header: mark for header, mark in marks.items() if mark and mark.isascii() and mark.isprintable()}


class PageCache:
    """One SQLite file; a key is a digest, so that addresses with tokens in them are not lying about."""

    def __init__(self, directory: Path, max_bytes: int, scope: object) -> None:
        """Keep up to *max_bytes* in *directory*; what was fetched with another *scope*, a JSON value, is not found.

        Raises:
            OSError: The directory cannot be used.
            sqlite3.Error: Nor can the file.
        """
        self._max_bytes = max_bytes
        self._scope = json.dumps(scope).encode()
        self._lock = threading.Lock()
        self._file = _private_file(directory)
        with suppress(sqlite3.DatabaseError):
            self._connection = _open(self._file)
            return
        self._file.unlink(missing_ok=True)  # torn, or not ours: what was in it can be fetched again
        self._connection = _open(self._file)

    def get(self, url: str) -> KeptAnswer | None:
        """Return what was kept for *url*."""
        key = self._key(url)
        with self._lock, suppress(sqlite3.Error, ValueError):
            row = self._connection.execute("SELECT headers, body, checked FROM pages WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            self._connection.execute("UPDATE pages SET used = ? WHERE key = ?", (time.time(), key))
            return KeptAnswer(WebAnswer(url, 200, "OK", json.loads(row[0]), bytes(row[1]), cached=True), row[2])
        return None

    def put(self, answer: WebAnswer) -> None:
        """Keep *answer*, unless it or its size forbids that; the least used make room."""
        if not _may_be_kept(answer) or len(answer.body) > self._max_bytes // 4:
            return
        headers = {name: answer.headers[name] for name in KEPT_HEADERS if name in answer.headers}
        now, size = time.time(), len(answer.body) + 1024
        row = (self._key(answer.url), json.dumps(headers), answer.body, size, now, now)
        with self._lock, suppress(sqlite3.Error):
            self._connection.execute("REPLACE INTO pages VALUES (?, ?, ?, ?, ?, ?)", row)
            self._make_room()

    def confirm(self, kept: KeptAnswer, headers: Mapping[str, str]) -> WebAnswer:
        """Return the kept answer, with what its server now says about it."""
        newer = {name: headers[name] for name in KEPT_HEADERS if name in headers and name != "content-type"}
        answer = replace(kept.answer, headers={**kept.answer.headers, **newer})
        self.put(answer)
        return answer

    def _make_room(self) -> None:
        (size,) = self._connection.execute("SELECT coalesce(sum(size), 0) FROM pages").fetchone()
        if size <= self._max_bytes:
            return
        for key, freed in self._connection.execute("SELECT key, size FROM pages ORDER BY used").fetchall():
            self._connection.execute("DELETE FROM pages WHERE key = ?", (key,))
            size -= freed
            if size <= self._max_bytes * 3 // 4:
                return

    def _key(self, url: str) -> bytes:
        return hashlib.sha256(self._scope + b"\n" + url.encode()).digest()


def cache_directory() -> Path:
    """Return where this user's caches are."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if given.startswith("/") else Path.home() / ".cache"
    return base / "onetool-run" / "web"


def _private_file(directory: Path) -> Path:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = directory.stat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o077):
        raise PermissionError(f"'{directory}' is not private to this user")
    file = directory / "pages.sqlite"
    if file.is_symlink():
        raise PermissionError(f"'{file}' is a link")
    os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    return file


def _open(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=2.0, check_same_thread=False, isolation_level=None)
    try:
        connection.execute("PRAGMA auto_vacuum = FULL")  # only counts before anything else is there
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(SCHEMA)
        with closing(connection.execute("SELECT count(size) FROM pages")) as counted:
            counted.fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _may_be_kept(answer: WebAnswer) -> bool:
    control = _directives(answer.headers)
    return answer.status == 200 and "no-store" not in control and "*" not in answer.headers.get("vary", "")


def _lifetime(headers: Mapping[str, str], default: float) -> float:
    control = _directives(headers)
    if "no-cache" in control:
        return -1.0
    if "max-age" in control:
        with suppress(ValueError):
            return min(float(int(control["max-age"].strip('"'))), MONTH)
        return -1.0
    if "expires" in headers:
        with suppress(ValueError, TypeError, KeyError, OverflowError):
            lasts = parsedate_to_datetime(headers["expires"]) - parsedate_to_datetime(headers["date"])
            return min(lasts.total_seconds(), MONTH)
        return -1.0
    return default


def _directives(headers: Mapping[str, str]) -> dict[str, str]:
    parts = (part.strip().partition("=") for part in headers.get("cache-control", "").lower().split(","))
    return {name: value for name, _, value in parts}

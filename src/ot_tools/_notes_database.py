"""The notes of one principal in a SQLite file: a full-text index that holds their texts, and beside it their data."""

from __future__ import annotations

import re
import sqlite3
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ot.files.shared_database import BUSY_SECONDS, open_shared_database

VERSION = 1
TABLES = (
    "CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT NOT NULL, chars INTEGER NOT NULL,"
    " created REAL NOT NULL, updated REAL NOT NULL)",
    "CREATE INDEX notes_by_time ON notes (place, updated)",
    "CREATE TABLE note_tags (note INTEGER NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (note, tag)) WITHOUT ROWID",
    "CREATE VIRTUAL TABLE note_texts USING fts5 (text, tokenize = 'porter unicode61 remove_diacritics 2')",
)
"""No triggers: with trusted_schema off, SQLite does not let them write to a full-text index."""
TERM = re.compile(r'"([^"]*)"|(\S+)')
SNIPPET_TOKENS = 32
SNIPPET_CHARS = 400
BEFORE_CHARS = 100
MARK = "\x02"
"""Stands before each match in what FTS5 cuts out, until the place of the first one is known."""
START_CHARS = 200


@dataclass(frozen=True, slots=True)
class Row:
    """One note; ``text`` is what was asked for: all of it, its start, or where it matches."""

    id: int
    place: str
    chars: int
    created: float
    updated: float
    text: str
    score: float
    tags: list[str]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which notes: those of *places* with all *tags*, last written from *since* and before *until*."""

    places: Sequence[str]
    tags: Sequence[str] = ()
    since: float = float("-inf")
    until: float = float("inf")

    @property
    def condition(self) -> str:
        tagged = f"(SELECT count(*) FROM note_tags t WHERE t.note = n.id AND t.tag IN ({_marks(self.tags)})) = ?"
        return f"n.place IN ({_marks(self.places)}) AND {tagged} AND n.updated >= ? AND n.updated < ?"

    @property
    def values(self) -> tuple[Any, ...]:
        return (*self.places, *self.tags, len(self.tags), self.since, self.until)


@contextmanager
def open_notes(path: Path, *, writes: bool = False, max_bytes: int | None = None) -> Generator[Notes]:
    """Give the notes in *path*, in one transaction; only whoever *writes* makes the file.

    Raises:
        OSError: They cannot be used; the text says why, and what to do.
    """
    try:
        with closing(_connection(path, writes=writes)) as connection:
            if max_bytes is not None:
                (page,) = connection.execute("PRAGMA page_size").fetchone()
                connection.execute(f"PRAGMA max_page_count = {max(1, max_bytes // page)}")
            connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            yield Notes(connection)  # closed before its COMMIT, a transaction is rolled back
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise OSError(_problem(error, path)) from None


class Notes:
    """Reads and writes notes inside a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Use *connection*."""
        self._run = connection.execute

    def count(self) -> int:
        """Return how many notes there are, wherever they belong."""
        return self._run("SELECT count(*) FROM notes").fetchone()[0]

    def add(self, place: str, text: str, tags: Iterable[str]) -> int:
        """Keep a new note, and return its id."""
        now = time.time()
        row = (place, len(text), now, now)
        id = self._run("INSERT INTO notes (place, chars, created, updated) VALUES (?, ?, ?, ?)", row).lastrowid
        assert id is not None
        self._run("INSERT INTO note_texts (rowid, text) VALUES (?, ?)", (id, text))
        self._set_tags(id, tags)
        return id

    def change(self, id: int, text: str | None, tags: Iterable[str] | None) -> None:
        """Give a note another text, other tags, or both."""
        if text is not None:
            self._run("UPDATE note_texts SET text = ? WHERE rowid = ?", (text, id))
            self._run("UPDATE notes SET chars = ? WHERE id = ?", (len(text), id))
        if tags is not None:
            self._set_tags(id, tags)
        self._run("UPDATE notes SET updated = ? WHERE id = ?", (time.time(), id))

    def delete(self, id: int) -> None:
        """Delete a note."""
        for table, key in (("notes", "id"), ("note_texts", "rowid"), ("note_tags", "note")):
            self._run(f"DELETE FROM {table} WHERE {key} = ?", (id,))

    def get(self, id: int, places: Sequence[str]) -> Row | None:
        """Return one note of *places*, with its whole text."""
        return next(self._rows("text", f"n.id = ? AND n.place IN ({_marks(places)})", (id, *places)), None)

    def latest(self, chosen: Chosen, most: int) -> list[Row]:
        """Return the notes that were written last, with the start of each text."""
        condition = f"{chosen.condition} ORDER BY n.updated DESC, n.id DESC LIMIT ?"
        return [*self._rows(f"substr(text, 1, {START_CHARS})", condition, (*chosen.values, most))]

    def search(self, query: str, chosen: Chosen, most: int) -> list[Row]:
        """Return the best notes with all words of *query*; else with any of them; else with their letters somewhere."""
        pieces = _pieces(query)
        terms = _terms(pieces)
        for joined in (" ", " OR ") if len(terms) > 1 else (" ",):
            if terms and (found := self._matching(joined.join(terms), chosen, most)):
                return self._score(found, terms if joined == " OR " else ())
        return self._containing(pieces, chosen, most)

    def tags(self, chosen: Chosen) -> list[tuple[str, int]]:
        """Return each tag and how many notes have it, the most used first."""
        sql = "SELECT tag, count(*) FROM note_tags JOIN notes n ON n.id = note WHERE {} GROUP BY tag ORDER BY 2 DESC, 1"
        return self._run(sql.format(chosen.condition), chosen.values).fetchall()

    def _score(self, found: Sequence[Row], terms: Sequence[str]) -> list[Row]:
        """Return *found* with scores from 0 to 1: the part of *terms* that a note has, at most halved by its rank.

        BM25 alone tells little: where there are few notes it is tiny.
        """
        ids, best = [row.id for row in found], found[0].score
        sql = f"SELECT rowid FROM note_texts WHERE note_texts MATCH ? AND rowid IN ({_marks(ids)})"
        had = Counter(id for term in terms for (id,) in self._run(sql, (term, *ids)))
        parts = {id: had[id] / len(terms) if terms else 1.0 for id in ids}
        scored = [replace(row, score=parts[row.id] * (1 + row.score / best) / 2) for row in found]
        return sorted(scored, key=lambda row: -row.score)

    def _matching(self, match: str, chosen: Chosen, most: int) -> list[Row]:
        cut = f"snippet(note_texts, 0, '{MARK}', '', ' … ', {SNIPPET_TOKENS})"
        condition = f"note_texts MATCH ? AND {chosen.condition} ORDER BY bm25(note_texts), n.id DESC LIMIT ?"
        found = self._rows(cut, condition, (match, *chosen.values, most), score="-bm25(note_texts)")
        return [replace(row, text=_shorten(row.text)) for row in found]

    def _containing(self, pieces: Sequence[str], chosen: Chosen, most: int) -> list[Row]:
        """Find what is not a word of its own: signs, and part of a text in a script without spaces."""
        around = f"substr(text, max(1, instr(text, ?) - {BEFORE_CHARS}), {SNIPPET_CHARS})"
        contained = " AND ".join(["instr(text, ?)"] * len(pieces))
        condition = f"{contained} AND {chosen.condition} ORDER BY n.updated DESC, n.id DESC LIMIT ?"
        return [*self._rows(around, condition, (pieces[0], *pieces, *chosen.values, most))]

    def _rows(self, text: str, condition: str, values: Sequence[Any], score: str = "1.0") -> Iterator[Row]:
        columns = f"n.id, n.place, n.chars, n.created, n.updated, {text}, {score}"
        sql = f"SELECT {columns} FROM note_texts JOIN notes n ON n.id = note_texts.rowid WHERE {condition}"
        for row in self._run(sql, values).fetchall():
            tags = self._run("SELECT tag FROM note_tags WHERE note = ? ORDER BY tag", (row[0],))
            yield Row(*row, tags=[tag for (tag,) in tags])

    def _set_tags(self, id: int, tags: Iterable[str]) -> None:
        self._run("DELETE FROM note_tags WHERE note = ?", (id,))
        for tag in tags:
            self._run("INSERT INTO note_tags (note, tag) VALUES (?, ?)", (id, tag))


def _connection(path: Path, *, writes: bool) -> sqlite3.Connection:
    if writes or path.exists():
        return open_shared_database(path, partial(_make_tables, path))
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _make_tables(path, connection)
    return connection


def _make_tables(path: Path, connection: sqlite3.Connection) -> None:
    if _version(path, connection) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    if _version(path, connection) < VERSION:  # nobody else has made them meanwhile
        for table in TABLES:
            connection.execute(table)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _version(path: Path, connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise OSError(
            f"the notes in {path} were written by a newer release of OneTool: use that, or move the file away"
        )
    return version


def _pieces(query: str) -> list[str]:
    """Return the words and the phrases of *query*; where it is quotes alone, these."""
    found = (phrase.strip() or word.strip('"') or word for phrase, word in TERM.findall(query))
    return [*dict.fromkeys(filter(None, found))] or [query]


def _terms(pieces: Iterable[str]) -> list[str]:
    """Return *pieces* as FTS5 takes them: text in quotes, which has no syntax."""
    # A sign by itself is not a word, and would match nothing.
    words = (piece.replace('"', " ") for piece in pieces if any(map(str.isalnum, piece)))
    return [f'"{word}"' for word in words]


def _shorten(marked: str) -> str:
    """Return at most SNIPPET_CHARS of what FTS5 cut out, with the first match: the words before it may be long."""
    first, text = marked.find(MARK), marked.replace(MARK, "")
    start = max(0, min(first - BEFORE_CHARS, len(text) - SNIPPET_CHARS))
    return text[start : start + SNIPPET_CHARS]


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _problem(error: sqlite3.Error, path: Path) -> str:
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"another process has been writing the notes in {path} for {BUSY_SECONDS:g} s: try again"
    if code == sqlite3.SQLITE_FULL:
        return (
            f"there is no room for more in {path}: delete notes, or raise tools.memory.max_bytes (or the disk is full)"
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return (
            f"the notes in {path} are damaged ({error}): restore the file from a backup, or move it away, with those"
            " beside it that end in -wal and -shm, to start over"
        )
    if "fts5" in str(error):
        return f"this Python's SQLite cannot search texts ({error}): run OneTool on a Python whose SQLite has FTS5"
    return f"the notes in {path} cannot be used: {error}"

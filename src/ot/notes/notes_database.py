"""The notes of one principal in a SQLite file: a full-text index that holds their texts, and beside it their data."""

from __future__ import annotations

import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ot.files.shared_database import BUSY_SECONDS, open_shared_database
from ot.notes.kept_notes import Chosen, Row, TooManyNotes
from ot.notes.note_images import NoteImage, keep_images

FILE = "notes.db"
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


class FileNotes:
    """The notes of one principal in a file; each method is one transaction."""

    def __init__(self, path: Path, max_bytes: int | None = None) -> None:
        """Keep them in *path*, which is made with the first note and is not to grow beyond *max_bytes*."""
        self._path = path
        self._max_bytes = max_bytes

    def add(self, place: str, text: str, tags: Sequence[str], most: int) -> Row:
        """Keep a new note, and return it."""
        with open_notes(self._path, writes=True, max_bytes=self._max_bytes) as notes:
            if notes.count() >= most:
                raise TooManyNotes(most)
            row = notes.get(notes.add(place, text, tags), [place])
            assert row
            return row

    def change(
        self, id: int, places: Sequence[str], edit: Callable[[Row], str | None], tags: Sequence[str] | None
    ) -> Row | None:
        """Change a note of *places*; nothing if it is not there."""
        with open_notes(self._path, writes=True, max_bytes=self._max_bytes) as notes:
            if (before := notes.get(id, places)) is None:
                return None
            notes.change(id, edit(before), tags)
            return notes.get(id, places)

    def delete(self, ids: Sequence[int], places: Sequence[str]) -> int | None:
        """Delete all of *ids*, or none, and return the first that is not there."""
        with open_notes(self._path, writes=True) as notes:  # what is full must still be able to shrink
            missing = next((id for id in ids if notes.get(id, places) is None), None)
            for id in ids if missing is None else ():
                notes.delete(id)
            return missing

    def get(self, id: int, places: Sequence[str]) -> Row | None:
        """Return one note of *places*, with its whole text."""
        with open_notes(self._path) as notes:
            return notes.get(id, places)

    def latest(self, chosen: Chosen, most: int) -> list[Row]:
        """Return the notes that were written last, with the start of each text."""
        with open_notes(self._path) as notes:
            return notes.latest(chosen, most)

    def search(self, query: str, chosen: Chosen, most: int) -> list[Row]:
        """Return the best notes with all words of *query*; else with any of them; else with their letters somewhere."""
        with open_notes(self._path) as notes:
            return notes.search(query, chosen, most)

    def tags(self, chosen: Chosen) -> list[tuple[str, int]]:
        """Return each tag and how many notes have it, the most used first."""
        with open_notes(self._path) as notes:
            return notes.tags(chosen)


@contextmanager
def open_notes(path: Path, *, writes: bool = False, max_bytes: int | None = None) -> Generator[Notes]:
    """Give the notes in *path*, in one transaction; only whoever *writes* makes the file.

    Raises:
        OSError: They cannot be used; the text says why, and what to do.
    """
    with ExitStack() as kept:
        try:
            with closing(_connection(path, writes=writes)) as connection:
                if max_bytes is not None:
                    (page,) = connection.execute("PRAGMA page_size").fetchone()
                    connection.execute(f"PRAGMA max_page_count = {max(1, max_bytes // page)}")
                connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                yield (notes := Notes(connection))  # closed before its COMMIT, a transaction is rolled back
                keep_images(kept, notes.before, notes.copy)
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise OSError(_problem(error, path)) from None


@contextmanager
def notes_in_memory(rows: Iterable[Row]) -> Generator[Notes]:
    """Give notes that are kept elsewhere, to be searched like those of a file."""
    with closing(_in_memory()) as connection:
        notes = Notes(connection)
        for row in rows:
            notes.put(row)
        yield notes


def words_of(text: str) -> list[tuple[str, int]]:
    """Return each word of *text* in the form that is looked up, and its place among the words."""
    return _words(text)[0] if text else []


def read_terms(pieces: Iterable[str]) -> list[list[str]]:
    """Return the words of each of *pieces* in the form that is looked up; those that have none are left out."""
    wanted = [piece for piece in pieces if any(map(str.isalnum, piece))]
    return [[word for word, _ in words] for words in _words(*wanted) if words]


def _words(*texts: str) -> list[list[tuple[str, int]]]:
    with closing(_in_memory()) as connection:
        connection.execute("CREATE VIRTUAL TABLE words USING fts5vocab (note_texts, instance)")
        for number, text in enumerate(texts):
            connection.execute("INSERT INTO note_texts (rowid, text) VALUES (?, ?)", (number, text))
        found: list[list[tuple[str, int]]] = [[] for _ in texts]
        rows: list[tuple[int, str, int]]
        rows = connection.execute('SELECT doc, term, "offset" FROM words ORDER BY doc, "offset"').fetchall()
        for number, word, at in rows:
            found[number].append((word, at))
        return found


class Notes:
    """Reads and writes notes inside a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Use *connection*."""
        self._run = connection.execute
        self.before: dict[int, NoteImage] = {}
        """What each note was, as ``copy`` returns it, that is changed in this transaction."""

    def count(self) -> int:
        """Return the number of notes in all scopes."""
        return self._run("SELECT count(*) FROM notes").fetchone()[0]

    def add(self, place: str, text: str, tags: Iterable[str]) -> int:
        """Keep a new note, and return its id."""
        now = time.time()
        row = (place, len(text), now, now)
        id = self._run("INSERT INTO notes (place, chars, created, updated) VALUES (?, ?, ?, ?)", row).lastrowid
        assert id is not None
        self.before[id] = None
        self._run("INSERT INTO note_texts (rowid, text) VALUES (?, ?)", (id, text))
        self._set_tags(id, tags)
        return id

    def put(self, row: Row) -> None:
        """Keep a note as it is elsewhere, under its own id."""
        columns = (row.id, row.place, row.chars, row.created, row.updated)
        self._run("INSERT INTO notes (id, place, chars, created, updated) VALUES (?, ?, ?, ?, ?)", columns)
        self._run("INSERT INTO note_texts (rowid, text) VALUES (?, ?)", (row.id, row.text))
        self._set_tags(row.id, row.tags)

    def change(self, id: int, text: str | None, tags: Iterable[str] | None) -> None:
        """Give a note another text, other tags, or both."""
        self._keep(id)
        if text is not None:
            self._run("UPDATE note_texts SET text = ? WHERE rowid = ?", (text, id))
            self._run("UPDATE notes SET chars = ? WHERE id = ?", (len(text), id))
        if tags is not None:
            self._set_tags(id, tags)
        self._run("UPDATE notes SET updated = ? WHERE id = ?", (time.time(), id))

    def delete(self, id: int) -> None:
        """Delete a note."""
        self._keep(id)
        for table, key in (("notes", "id"), ("note_texts", "rowid"), ("note_tags", "note")):
            self._run(f"DELETE FROM {table} WHERE {key} = ?", (id,))

    def get(self, id: int, places: Sequence[str]) -> Row | None:
        """Return one note of *places*, with its whole text."""
        return next(self._rows("text", f"n.id = ? AND n.place IN ({_marks(places)})", (id, *places)), None)

    def copy(self, id: int) -> NoteImage:
        """Return all of a note as plain data, if there is one."""
        (place,) = self._run("SELECT place FROM notes WHERE id = ?", (id,)).fetchone() or (None,)
        row = self.get(id, (place,)) if place else None
        return row and {"place": place, "text": row.text, "tags": row.tags, "at": [row.created, row.updated]}

    def restore(self, id: int, note: NoteImage) -> None:
        """Make a note what ``copy`` returned."""
        self.delete(id)
        if note is not None:
            text, (created, updated) = note["text"], note["at"]
            self.put(Row(id, note["place"], len(text), created, updated, text, 0.0, note["tags"]))

    def _keep(self, id: int) -> None:
        if id not in self.before:
            self.before[id] = self.copy(id)

    def latest(self, chosen: Chosen, most: int) -> list[Row]:
        """Return the notes that were written last, with the start of each text."""
        condition = f"{_condition(chosen)} ORDER BY n.updated DESC, n.id DESC LIMIT ?"
        return [*self._rows(f"substr(text, 1, {START_CHARS})", condition, (*_values(chosen), most))]

    def search(self, query: str, chosen: Chosen, most: int) -> list[Row]:
        """Return the best notes with all words of *query*; else with any of them; else with their letters somewhere."""
        pieces = split_query(query)
        terms = _terms(pieces)
        for joined in (" ", " OR ") if len(terms) > 1 else (" ",):
            if terms and (found := self._matching(joined.join(terms), chosen, most)):
                return self._score(found, terms if joined == " OR " else ())
        return self._containing(pieces, chosen, most)

    def tags(self, chosen: Chosen) -> list[tuple[str, int]]:
        """Return each tag and how many notes have it, the most used first."""
        sql = "SELECT tag, count(*) FROM note_tags JOIN notes n ON n.id = note WHERE {} GROUP BY tag ORDER BY 2 DESC, 1"
        return self._run(sql.format(_condition(chosen)), _values(chosen)).fetchall()

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
        condition = f"note_texts MATCH ? AND {_condition(chosen)} ORDER BY bm25(note_texts), n.id DESC LIMIT ?"
        found = self._rows(cut, condition, (match, *_values(chosen), most), score="-bm25(note_texts)")
        return [replace(row, text=_shorten(row.text)) for row in found]

    def _containing(self, pieces: Sequence[str], chosen: Chosen, most: int) -> list[Row]:
        """Find what is not a word of its own: signs, and part of a text in a script without spaces."""
        around = f"substr(text, max(1, instr(text, ?) - {BEFORE_CHARS}), {SNIPPET_CHARS})"
        contained = " AND ".join(["instr(text, ?)"] * len(pieces))
        condition = f"{contained} AND {_condition(chosen)} ORDER BY n.updated DESC, n.id DESC LIMIT ?"
        return [*self._rows(around, condition, (pieces[0], *pieces, *_values(chosen), most))]

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


def _condition(chosen: Chosen) -> str:
    tagged = f"(SELECT count(*) FROM note_tags t WHERE t.note = n.id AND t.tag IN ({_marks(chosen.tags)})) = ?"
    return f"n.place IN ({_marks(chosen.places)}) AND {tagged} AND n.updated >= ? AND n.updated < ?"


def _values(chosen: Chosen) -> tuple[Any, ...]:
    return (*chosen.places, *chosen.tags, len(chosen.tags), chosen.since, chosen.until)


def _connection(path: Path, *, writes: bool) -> sqlite3.Connection:
    if writes or path.exists():
        return open_shared_database(path, partial(_make_tables, path))
    return _in_memory()


def _in_memory() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _make_tables(Path(":memory:"), connection)
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


def split_query(query: str) -> list[str]:
    """Return the words and the phrases of *query*; where it is quotes alone, these."""
    found = (phrase.strip() or word.strip('"') or word for phrase, word in TERM.findall(query))
    return [*dict.fromkeys(filter(None, found))] or [query]


def _terms(pieces: Iterable[str]) -> list[str]:
    """Return *pieces* as FTS5 takes them: text in quotes, which has no syntax."""
    # A sign by itself is not a word, and would match nothing.
    words = (piece.replace('"', " ") for piece in pieces if any(map(str.isalnum, piece)))
    return [f'"{word}"' for word in words]


def excerpt(text: str, piece: str) -> str:
    """Return the part of *text* around the first *piece*."""
    start = max(0, text.find(piece) - BEFORE_CHARS)
    return text[start : start + SNIPPET_CHARS]


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

"""The sample of the notes of the pack ``memory``."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from ot.notes.kept_notes import Chosen
from ot.notes.notes_database import open_notes
from stored_formats.stored_format import StoredFormat

OWN = "name NOT LIKE 'note_texts_%' AND name NOT LIKE 'sqlite_%'"
"""The index keeps tables of its own, in a form that SQLite's release decides."""


def _make_notes(directory: Path) -> None:
    database = directory / "notes.db"
    with open_notes(database, writes=True) as notes:
        notes.add("project /srv/shop", "Deploys go out on Tuesdays", ["decision", "deploy"])
        notes.add("user", "Prefers short answers", [])
        notes.delete(notes.add("user", "Gone", ["gone"]))
    with closing(sqlite3.connect(database)) as connection:
        tables = connection.execute(f"SELECT sql FROM sqlite_schema WHERE {OWN} ORDER BY rowid")
        lines = [f"{sql};" for (sql,) in tables]
        for table, columns in (
            ("notes", "id, place, chars, created, updated"),
            ("note_tags", "note, tag"),
            ("note_texts", "rowid, text"),
        ):
            quoted = " || ', ' || ".join(f"quote({column})" for column in columns.split(", "))
            rows = connection.execute(f"SELECT {quoted} FROM {table} ORDER BY 1")
            lines += [f"INSERT INTO {table} ({columns}) VALUES ({row});" for (row,) in rows]
        (last,) = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'notes'").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    lines += [f"UPDATE sqlite_sequence SET seq = {last} WHERE name = 'notes';", f"PRAGMA user_version = {version};"]
    for file in directory.glob("notes.db*"):
        file.unlink()
    (directory / "notes.sql").write_text("".join(f"{line}\n" for line in lines))


def _read_notes(directory: Path) -> Any:
    database = directory / "notes.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript((directory / "notes.sql").read_text())
    database.chmod(0o600)
    everywhere = Chosen(("project /srv/shop", "user"))
    with open_notes(database, writes=True) as notes:
        listed = [[row.id, row.place, row.text, row.tags, row.created] for row in notes.latest(everywhere, 10)]
        found = [row.id for row in notes.search("deploying", everywhere, 10)]
        return {"listed": listed, "found": found, "next": notes.add("user", "New", [])}


FORMATS = (
    StoredFormat(
        "notes",
        _make_notes,
        _read_notes,
        {
            "listed": [
                [2, "user", "Prefers short answers", [], 1_767_268_800.0],
                [1, "project /srv/shop", "Deploys go out on Tuesdays", ["decision", "deploy"], 1_767_268_800.0],
            ],
            "found": [1],
            "next": 4,
        },
    ),
)

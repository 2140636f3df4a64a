"""NotesOfUndo: looks at the notes of one user by name, and restores them."""

from __future__ import annotations

import json
from pathlib import Path

from ot.files.path_state import PathState
from ot.notes.note_images import KIND, state_of
from ot.notes.notes_database import FILE, open_notes


class NotesOfUndo:
    """The notes in a user's file, as an undo sees them."""

    def __init__(self, directory: Path) -> None:
        """Use the notes in *directory*."""
        self._file = directory / FILE

    def look(self, key: str) -> tuple[PathState, bytes | None]:
        """Return what the note is now."""
        with open_notes(self._file) as notes:
            return state_of(notes.copy(_id_of(key)))

    def restore(self, key: str, data: bytes | None) -> None:
        """Make the note what it was, or delete it."""
        with open_notes(self._file, writes=True) as notes:
            notes.restore(_id_of(key), None if data is None else json.loads(data))


def _id_of(key: str) -> int:
    return int(key.removeprefix(f"{KIND} "))

"""ConnectionNotes: how each client's file was before OneTool was entered, so that its bytes can be restored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ot.config.clients.client_file import MAX_BYTES, FileOnDisk
from ot.config.clients.server_entry import table
from ot.config.paths import Paths
from ot.errors import ConfigError
from ot.files.private_file import read_regular, write_private

FILE = "connections.json"


@dataclass(frozen=True, slots=True)
class Note:
    """What OneTool is called in a file, the hash of the file as it was left, and the copy of it as it was before."""

    name: str
    left: str = ""
    """Empty when somebody else had changed the file, so that no copy is the one to go back to."""
    backup: str = ""
    """Empty while it is not made yet."""
    existed: bool = True
    made_list: bool = False
    """Whether the file had no list of servers."""
    taken_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """The servers that were taken out, each with the copy that still has it."""
    private: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """The same of the lists of single directories, by directory."""


class ConnectionNotes:
    """The notes about all files, in the user's directory."""

    def __init__(self, paths: Paths) -> None:
        """Keep them in the directory of *paths*."""
        self._file = paths.global_dir / FILE

    def of(self, path: Path) -> Note | None:
        """Return the note about the file at *path*; one that cannot be understood is none."""
        found = table(self._read().get(str(path)))
        try:
            return Note(**found) if found else None
        except TypeError:
            return None

    def after_change(self, file: FileOnDisk, new: bytes, made: Note, *, is_new: bool) -> Note:
        """Return the note for a file that is about to hold *new*, and would have *made* if it never had one."""
        old = self.of(file.path)
        left = hashlib.sha256(new).hexdigest()
        if is_new or old is None:
            return replace(made, left=left if is_new else "")
        # Entered before: the copy from before that is still what to go back to, if only OneTool has written since.
        as_left = self.is_as_left(old, file)
        places = {**old.private, **made.private}
        both = {place: {**old.private.get(place, {}), **made.private.get(place, {})} for place in places}
        taken_out = {**old.taken_out, **made.taken_out}
        return replace(old, left=left if as_left else "", taken_out=taken_out, private=both)

    def is_as_left(self, note: Note, file: FileOnDisk) -> bool:
        """Return whether nobody else has changed *file* since."""
        return file.data is not None and note.left == hashlib.sha256(file.data).hexdigest()

    def can_restore(self, note: Note) -> bool:
        """Return whether the file as it was before is still known."""
        return not note.existed or Path(note.backup).is_file()

    def before(self, note: Note) -> bytes | None:
        """Return the file as it was before; nothing where there was none.

        Raises:
            ConfigError: The copy is gone.
        """
        if not note.existed:
            return None
        try:
            return read_regular(Path(note.backup), MAX_BYTES, follow=False).data
        except OSError as error:
            raise ConfigError(f"the copy cannot be read: {error.strerror}", file=Path(note.backup)) from None

    def keep(self, path: Path, note: Note | None, backup: Path | None) -> None:
        """Remember *note* about the file at *path*, or forget what was known of it."""
        notes = {key: value for key, value in self._read().items() if key != str(path)}
        if note:
            made = str(backup) if backup else ""
            taken_out = {name: copy or made for name, copy in note.taken_out.items()}
            # Most notes have no such servers, and an older version reads those that do not name them.
            private = {
                place: {name: copy or made for name, copy in gone.items()} for place, gone in note.private.items()
            }
            kept = {**asdict(note), "backup": note.backup or made, "taken_out": taken_out, "private": private}
            notes[str(path)] = {key: value for key, value in kept.items() if key != "private" or value}
        write_private(self._file, json.dumps(notes, indent=2) + "\n")

    def _read(self) -> dict[str, Any]:
        try:
            return table(json.loads(read_regular(self._file, MAX_BYTES, follow=False).data))
        except (OSError, ValueError):
            return {}

"""KeptRun: what one run changed, and what was there before, read from the file that it wrote for an undo."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Self

from ot.files.path_state import PathState

FORMAT = 1
WHOLE, GAPS = b" ", b"!"
"""The first byte of such a file: whether it tells of every change of its run."""


@dataclass(slots=True)
class KeptPath:
    """What was at a path before its run, and what the run left there."""

    path: str
    before: PathState
    why: str = ""
    """Why it cannot be restored; empty when it can."""
    left: list[PathState] = field(default_factory=list[PathState])
    """One of these: several when nobody knows whether the last change was made."""
    mixed: bool = False
    """Whether somebody else changed it between two changes of the run."""
    place: tuple[int, int] | None = None
    """Where its bytes begin in the file, and how many they are."""

    def read_bytes(self, file: BinaryIO) -> bytes | None:
        """Return the bytes that were there, from the file of its run; nothing where it had none."""
        if self.place is None:
            return None
        file.seek(self.place[0])
        return file.read(self.place[1])


@dataclass(slots=True)
class KeptRun:
    """The file of a run: a line of JSON before each change, with the bytes that were there, and one after it."""

    about: Mapping[str, Any]
    """The run, its directory, and the moment of its first change."""
    has_gaps: bool
    paths: dict[str, KeptPath] = field(default_factory=dict[str, KeptPath])
    count: int = 0
    end: int = 0
    """Where what was written whole ends: a process that is killed may leave half a record."""

    @classmethod
    def read(cls, file: BinaryIO) -> Self:
        """Read the file of a run.

        Raises:
            EOFError: Nothing was written whole.
            ValueError: It is not one, or one of another release.
        """
        has_gaps, first = file.read(1) == GAPS, file.readline()
        if not first.endswith(b"\n"):
            raise EOFError
        about: dict[str, Any] = json.loads(first)
        if about["format"] != FORMAT:
            raise ValueError("it was written by another release of OneTool")
        kept, begun = cls(about, has_gaps, end=file.tell()), dict[int, tuple[KeptPath, PathState]]()
        while (line := file.readline()).endswith(b"\n"):
            record, at = json.loads(line), file.tell()
            if "done" in record:
                one, after = begun.pop(record["done"])
                one.left = one.left[:-1] if "failed" in record else [after._replace(mode=record["mode"])]
            else:
                if size := record.get("bytes", 0):
                    file.seek(at + size)
                    if file.read(1) != b"\n":
                        break
                begun[record["n"]] = kept._take(record, at)
            kept.end = file.tell()
        return kept

    def _take(self, record: Mapping[str, Any], at: int) -> tuple[KeptPath, PathState]:
        path, after = record["path"], PathState.of_json(record["after"])
        if (one := self.paths.get(path)) is None:
            before = PathState.of_json(record["before"])
            place = (at, record["bytes"]) if "bytes" in record else None
            one = self.paths[path] = KeptPath(path, before, record.get("why", ""), [before], place=place)
        one.left.append(after)
        one.mixed = one.mixed or "mixed" in record
        self.count = record["n"] + 1
        return one, after

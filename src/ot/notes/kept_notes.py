"""KeptNotes: the seam at which notes are kept, for one principal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol


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


class TooManyNotes(ValueError):
    """There are as many notes as one may have."""


class KeptNotes(Protocol):
    """The notes of one principal. Every method may block, raises OSError with what to do, and is done or not at all."""

    def add(self, place: str, text: str, tags: Sequence[str], most: int) -> Row:
        """Keep a new note, and return it; raise TooManyNotes where there are *most* already, in all places."""
        ...

    def change(
        self, id: int, places: Sequence[str], edit: Callable[[Row], str | None], tags: Sequence[str] | None
    ) -> Row | None:
        """Give a note of *places* the text that *edit* makes of it, other *tags*, or both; nothing if it is not there.

        *edit* is called again where another process has changed the note meanwhile.
        """
        ...

    def delete(self, ids: Sequence[int], places: Sequence[str]) -> int | None:
        """Delete notes of *places*: all of them, or none, and return the first that is not there."""
        ...

    def get(self, id: int, places: Sequence[str]) -> Row | None:
        """Return one note of *places*, with its whole text."""
        ...

    def latest(self, chosen: Chosen, most: int) -> list[Row]:
        """Return the notes that were written last, with the start of each text."""
        ...

    def search(self, query: str, chosen: Chosen, most: int) -> list[Row]:
        """Return the best notes with all words of *query*; else with any of them; else with their letters somewhere."""
        ...

    def tags(self, chosen: Chosen) -> list[tuple[str, int]]:
        """Return each tag and how many notes have it, the most used first."""
        ...


type OpenNotes = Callable[[str, int], KeptNotes | None]
"""Opens the notes of a principal, of at most so many bytes; nothing where each has a file."""

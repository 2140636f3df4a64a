"""EarlierPrograms: what a caller ran lately without a session, to tell when a program counts on its variables."""

from __future__ import annotations

from collections import deque

from ot.runtime.program import Program

MOST_SEATS = 64
MOST_PROGRAMS = 5
MAX_CHARACTERS = 10_000


class EarlierPrograms:
    """The last few programs of each caller; a bounded number of callers."""

    def __init__(self) -> None:
        """Begin with none."""
        self._by_seat: dict[str, deque[Program]] = {}

    def note(self, seat: str, program: Program) -> None:
        """Take a program that has run."""
        if len(program.source) > MAX_CHARACTERS:
            return
        programs = self._by_seat.pop(seat, None) or deque(maxlen=MOST_PROGRAMS)
        programs.append(program)
        self._by_seat[seat] = programs
        if len(self._by_seat) > MOST_SEATS:
            del self._by_seat[next(iter(self._by_seat))]

    def assigned(self, seat: str, name: str) -> bool:
        """Return whether one of them gave *name* a meaning."""
        return any(name in program.assigns for program in self._by_seat.get(seat, ()))

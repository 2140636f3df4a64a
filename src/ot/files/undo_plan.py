"""UndoPlan: what an undo of a run would restore, and what it leaves alone; and the restoring itself."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ot.files.guarded_directory import GuardedDirectory
from ot.files.kept_run import KeptPath
from ot.files.no_links import path_of_descriptor
from ot.files.path_guard import PathGuard
from ot.files.path_state import NOTHING, PathState, look_at
from ot.files.run_writes import current_writes

MOST_COMPARED = 64 << 10
"""Bytes of a file whose difference is shown line by line."""
MOST_LINES, MOST_SHOWN = 40, 20
"""Lines of a difference, and paths whose difference is shown."""
OWNER = 0o700


class NotesToRestore(Protocol):
    """Looks at what is kept under other names than paths, and restores it."""

    def look(self, key: str) -> tuple[PathState, bytes | None]:
        """Return what has this name, with its bytes."""
        ...

    def restore(self, key: str, data: bytes | None) -> None:
        """Give the name these bytes again, or nothing; raise OSError where that fails."""
        ...


@dataclass(slots=True)
class UndoStep:
    """What is to be done about one path."""

    one: KeptPath
    present: PathState = NOTHING
    is_same: bool = False
    """Whether it is already as it was before the run."""
    why: str = ""
    """Why it is left alone."""
    difference: str = ""

    @property
    def is_restored(self) -> bool:
        """Whether it is to be restored, or has been."""
        return not (self.is_same or self.why)

    @property
    def is_path(self) -> bool:
        """Whether it is a path, and no note."""
        return self.one.path.startswith("/")


type Do = Callable[[UndoStep, GuardedDirectory, str], None]


@dataclass(slots=True)
class UndoPlan:
    """What is to be done about each path that a run changed."""

    guard: PathGuard
    notes: NotesToRestore
    file: BinaryIO
    """The file of the run."""
    steps: list[UndoStep] = field(default_factory=list[UndoStep])

    def look(self, paths: Iterable[KeptPath]) -> None:
        """Compare all *paths* with what the run left there."""
        self.steps = [self._judge(one) for one in paths]
        for step in [step for step in self.steps if step.why][:MOST_SHOWN]:
            with suppress(OSError, UnicodeDecodeError):
                step.difference = self._difference(step)

    def _judge(self, one: KeptPath) -> UndoStep:
        try:
            step = UndoStep(one, self._look(one.path)[0])
        except OSError as error:
            return UndoStep(one, why=str(error))
        if one.before.with_hash(one.read_bytes(self.file)).matches(step.present):
            step.is_same = True
        elif one.why:
            step.why = f"what was there was not kept: {one.why}"
        elif one.mixed:
            step.why = "something else changed it while the run did"
        elif not any(left.matches(step.present) for left in one.left):
            known = all(left.is_known or left is one.before for left in one.left)
            step.why = (
                "it is not as the run left it"
                if known
                else "it was too large to know what the run left, or was moved there and not kept"
            )
        elif step.is_path:
            step.why = self.guard.why_not(one.path, write=True) or self._why_no_link(one)
        return step

    def _why_no_link(self, one: KeptPath) -> str:
        """Return why a link is not made again: it leads to where no program may read."""
        target = os.path.realpath(Path(one.path).parent / one.before.content)
        why = self.guard.why_not(target) if one.before.kind == "link" else ""
        return why and f"it was a symbolic link to {one.before.content!r}: {why}"

    def _look(self, path: str, most: int = -1) -> tuple[PathState, bytes | None]:
        if not path.startswith("/"):
            return self.notes.look(path)
        try:
            with self._place(path, write=False) as (directory, name):
                return look_at(directory.fileno(), name, most)
        except (FileNotFoundError, NotADirectoryError):
            return NOTHING, None

    @contextmanager
    def _place(self, path: str, *, write: bool = True) -> Generator[tuple[GuardedDirectory, str]]:
        place = self.guard.place_to_change(path) if write else self.guard.place_to_look(path, follow=False)
        with place as (directory, name):
            if Path(path_of_descriptor(directory.fileno()), name) != Path(path):
                raise PermissionError("there is a symbolic link on the way now")
            yield directory, name

    def _difference(self, step: UndoStep) -> str:
        """Return what an undo would have to change: line by line where both are text."""
        lines = [f"now {step.present.describe()}, before the run {step.one.before.describe()}"]
        now, before = self._look(step.one.path, MOST_COMPARED)[1] or b"", step.one.read_bytes(self.file) or b""
        if max(len(now), len(before)) <= MOST_COMPARED and b"\0" not in now + before:
            texts = (now.decode().splitlines(), before.decode().splitlines())
            lines += islice(difflib.unified_diff(*texts, "now", "before the run", lineterm="", n=1), MOST_LINES)
        return "\n".join(lines)

    # ---------------------------------------------------------------- restoring

    def restore(self) -> None:
        """Restore what can be restored; the step of anything else says why not.

        Raises:
            AsksFirst: The user has to agree to some names first; nothing has been changed.
        """
        chosen = [step for step in self.steps if step.is_restored]
        files = sorted((step for step in chosen if step.is_path), key=lambda step: step.one.path.count("/"))
        self.guard.require_agreed([step.one.path for step in files if step.one.before != NOTHING])
        if images := current_writes().images:
            images.expected = {step.one.path: step.present for step in chosen}
        for step in chosen:
            if not step.is_path:
                self._try(step, lambda step: self.notes.restore(step.one.path, step.one.read_bytes(self.file)))
        directories = [step for step in files if step.one.before.kind == "directory"]
        kept = [step for step in directories if step.present.kind == "directory"]
        gone = [step for step in files if step.present.kind not in ("nothing", step.one.before.kind)]
        self._each(kept, _open_up)
        self._each(gone[::-1], lambda step, directory, name: directory.remove(name))
        self._each([step for step in files if step not in kept and step.one.before != NOTHING], self._make)
        self._each(directories[::-1], _close_again)

    def _make(self, step: UndoStep, directory: GuardedDirectory, name: str) -> None:
        before = step.one.before
        if before.kind == "directory":
            directory.make_child(name)
            _open_up(step, directory, name)
        elif before.kind == "link":
            directory.make_link(name, before.content)
        else:
            data = step.one.read_bytes(self.file) or b""
            current_writes().spend(len(data))
            with directory.replace_file(name, before.mode) as file:
                file.write(data)

    def _each(self, steps: Sequence[UndoStep], do: Do) -> None:
        def work(step: UndoStep) -> None:
            with self._place(step.one.path) as (directory, name):
                do(step, directory, name)

        for step in steps:
            if not step.why:  # an earlier part of it has failed
                self._try(step, work)

    def _try(self, step: UndoStep, work: Callable[[UndoStep], None]) -> None:
        try:
            work(step)
        except OSError as error:
            step.why = f"it could not be restored: {error}"

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data: what is restored, what is as it was already, and what is left alone."""
        return {
            "restored": [step.one.path for step in self.steps if step.is_restored],
            "same": [step.one.path for step in self.steps if step.is_same],
            "left": [
                {"path": step.one.path, "why": step.why, "difference": step.difference}
                for step in self.steps
                if step.why
            ],
        }


def _open_up(step: UndoStep, directory: GuardedDirectory, name: str) -> None:
    """Let what a directory holds be changed, until it gets its own mode."""
    directory.change(name, (step.one.before.mode or 0) | OWNER, widen=True)


def _close_again(step: UndoStep, directory: GuardedDirectory, name: str) -> None:
    directory.change(name, step.one.before.mode, widen=True)

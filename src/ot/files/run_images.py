"""RunImages: writes down what was at each path before a run changed it, and what the run leaves there, for an undo.

Each change is written down before it is made: after a crash at any moment the file tells what the run may have done.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from threading import RLock
from typing import Any, BinaryIO

from ot.files.kept_run import FORMAT, GAPS, WHOLE, KeptPath, KeptRun
from ot.files.no_links import NO_LINK, make_private, path_of_descriptor
from ot.files.path_state import PathState, look_at, new_hash
from ot.files.private_file import try_lock, write_all

logger = logging.getLogger(__name__)

FOLDER = "undo"
"""Where the files of runs are in the user's own directory."""
ENDING = ".undo"
RUN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}\Z")
CLEAN_SECONDS = 3600.0
DAY = 86_400.0
NONE_KEPT = "it changed no file and no note, or that was too long ago, or there was no room for it"

type Look = Callable[[int], tuple[PathState, bytes | None]]
"""Returns what is there now, with its bytes if there are at most so many; for less than nothing with its hash."""
type After = Callable[[PathState, bytes | None], PathState]
"""Returns what the change makes of what is there."""


@dataclass(frozen=True, slots=True)
class ImageBounds:
    """How much is kept for an undo, how long, and whether it survives a loss of power, too."""

    file_bytes: int = 8 << 20
    run_bytes: int = 64 << 20
    total_bytes: int = 512 << 20
    days: int = 30
    power: bool = False


class RunImages:
    """Writes the file of one run, on whatever thread; it is made with the first change."""

    def __init__(self, store: ImageStore, file: Path, about: Mapping[str, Any]) -> None:
        """Write into *file*, which begins with what is said *about* the run."""
        self._store, self._bounds, self._file, self._about = store, store.bounds, file, about
        self._lock, self._depth = RLock(), 0
        self._kept = KeptRun(about, has_gaps=False)
        self._growing: dict[str, tuple[blake2b, tuple[int, ...]]] = {}
        """By file that was written at its end, the hash to go on from, as long as the file looks as it did then."""
        self._fd, self._is_over = -1, False
        self.expected: Mapping[str, PathState] = {}
        """What must be at a path when this run changes it first; anything else raises OSError."""

    @contextmanager
    def change(
        self, directory: int, name: str, after: After, *, reads: bool = False, is_new: bool = False
    ) -> Generator[None]:
        """Keep what *name* is in an open directory; the block makes of it what comes *after*.

        *reads* says that this depends on its bytes, *is_new* that its mode is known once it has been made.
        """

        def look(most: int) -> tuple[PathState, bytes | None]:
            return look_at(directory, name, most)

        see = (lambda: look_at(directory, name, 0)[0]) if is_new else None
        with self.change_of(_path_of(directory, name), look, after, reads=reads, see=see):
            yield

    @contextmanager
    def change_of(
        self, key: str, look: Look, after: After, *, reads: bool = False, see: Callable[[], PathState] | None = None
    ) -> Generator[None]:
        """Keep as above what *look* finds, under the name *key*; *see* tells the mode of what was made."""
        with self._hold():
            one, data, record = self._kept.paths.get(key), None, dict[str, Any]()
            if self._fd < 0 or (one and one.why):
                self._kept.has_gaps = self._kept.has_gaps or self._fd < 0
                yield
                return
            most = self._bounds.file_bytes if one else min(self._bounds.file_bytes, max(self._room, 0))
            state, found = look(most if reads or not one else -1)
            if see and state.kind != "nothing":  # it cannot be made
                yield
                return
            new = after(state, found)
            if one or key in self.expected:
                now = state.with_hash(found) if found is not None or state.is_known else look(-1)[0]
                if not one and not self.expected[key].matches(now):
                    raise OSError("something else changed it meanwhile")
                is_ours = not one or any(left.matches(now) or not left.is_known for left in one.left)
                record = {} if is_ours else {"mixed": True}
            if one is None:
                one = KeptPath(key, state, self._why_not(state, found), [state])
                data = None if one.why else found
                record = {"before": state} | ({"why": one.why} if one.why else {})
                record |= {} if data is None else {"bytes": len(data)}
            with self._one_change(one, record, data, new, see):
                yield

    @contextmanager
    def write_in_place(self, directory: int, name: str, at: int, written: bytes) -> Generator[None]:
        """Keep as ``change`` a file into which the block writes bytes at a place that is not behind its end."""

        def after(state: PathState, data: bytes | None) -> PathState:
            size = max(state.size, at + len(written))
            if data is None:
                return state._replace(size=size, content="")
            hashed = new_hash(data[:at] + written + data[at + len(written) :])
            grown.extend([hashed] if size == at + len(written) else [])
            return state._replace(size=size, content=hashed.hexdigest())

        key, grown = _path_of(directory, name), list[blake2b]()
        with self._hold():
            one, (hash, seen) = self._kept.paths.get(key), self._growing.pop(key, (None, ()))
            if one and hash and at == one.left[-1].size and seen == _look_of(directory, name):
                # Else a file that is written line by line would be read again with each of them.
                hash.update(written)
                grown.append(hash)
                new = one.left[-1]._replace(size=at + len(written), content=hash.hexdigest())
                change = self._one_change(one, {}, None, new)
            else:
                change = self.change(directory, name, after, reads=True)
            with change:
                yield
            if grown:
                self._growing[key] = grown[0], _look_of(directory, name)

    @contextmanager
    def _one_change(
        self,
        one: KeptPath,
        record: Mapping[str, Any],
        data: bytes | None,
        new: PathState,
        see: Callable[[], PathState] | None = None,
    ) -> Generator[None]:
        """Write down that the block is about to leave something *new*, and that it has."""
        number, self._kept.count = self._kept.count, self._kept.count + 1
        if not self._append({"n": number, "path": one.path, **record, "after": new}, data):
            one.why = "no room"  # nothing more can be known of it
        if self._bounds.power:
            os.fsync(self._fd)
        self._kept.paths[one.path] = one
        one.left.append(new)  # until it is done, nobody knows which
        try:
            yield
        except OSError:
            self._append({"done": number, "failed": True})
            one.left[:] = [one.left[0].with_hash(data), *one.left[1:-1]]
            raise
        new = new._replace(mode=see().mode) if see else new
        self._append({"done": number, "mode": new.mode})
        one.left = [new]

    def _why_not(self, state: PathState, data: bytes | None) -> str:
        """Return why what is there cannot be kept; nothing when it can."""
        if state.kind == "other":
            return "it was neither a file nor a directory nor a link"
        if state.kind == "file" and state.size > self._bounds.file_bytes:
            return "it was too large to be kept (undo.file_bytes)"
        if state.size > self._room:
            return "so much had been kept of the run already (undo.run_bytes)"
        return "it could not be read" if state.kind == "file" and data is None else ""

    @property
    def _room(self) -> int:
        return self._bounds.run_bytes - self._kept.end

    def is_lost(self, directory: int, name: str) -> bool:
        """Return whether nothing could be kept of what *name* was before the run."""
        one = self._kept.paths.get(_path_of(directory, name))
        return one is None or bool(one.why)

    def _open(self) -> None:
        """Go on with the file of the run, or begin it; where that fails, its changes are not kept."""
        try:
            self._store.prepare(self._file.parent)
            self._fd = os.open(self._file, os.O_RDWR | os.O_CREAT | NO_LINK | os.O_CLOEXEC, 0o600)
            if not try_lock(self._fd):
                raise OSError("another process has it open")
            has_gaps = self._kept.has_gaps
            if os.fstat(self._fd).st_size:
                with suppress(EOFError), os.fdopen(os.dup(self._fd), "rb") as file:
                    self._kept = KeptRun.read(file)
                self._cut()
            if not self._kept.end and not self._append(self._about, mark=WHOLE):
                raise OSError("there is no room for it")
            if has_gaps:
                os.pwrite(self._fd, GAPS, 0)
        except (OSError, ValueError) as error:
            logger.warning("what a run changes is not kept for an undo: %s", error)
            self._close()

    def _append(self, record: Mapping[str, Any], data: bytes | None = None, mark: bytes = b"") -> bool:
        """Write a record; where that fails, mark the file, in room that it has already, and return False."""
        line = mark + json.dumps(record, separators=(",", ":")).encode()
        whole = b"\n".join([line, data, b""] if data else [line, b""])
        try:
            write_all(self._fd, whole)
        except OSError:
            with suppress(OSError):
                self._cut()
                os.pwrite(self._fd, GAPS, 0)
            return False
        self._kept.end += len(whole)
        self._store.written += len(whole)
        return True

    def _cut(self) -> None:
        """Cut off what was not written whole."""
        os.ftruncate(self._fd, self._kept.end)
        os.lseek(self._fd, self._kept.end, os.SEEK_SET)

    @contextmanager
    def _hold(self) -> Generator[None]:
        """Let no other thread change anything meanwhile: what is written down must be what is done."""
        try:
            with self._lock:
                self._depth += 1
                try:
                    if self._fd < 0:
                        self._open()
                    yield
                finally:
                    self._depth -= 1
        finally:
            if self._is_over:
                self.close()

    def close(self) -> None:
        """Let go of the file: the run is over, and only calls that were given up may still change something."""
        self._is_over = True
        if self._lock.acquire(blocking=False):  # else whoever holds it comes here next
            if not self._depth:
                self._close()
            self._lock.release()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class ImageStore:
    """Where the files of runs are kept: each principal's are apart."""

    def __init__(self, place: Callable[[str], Path], bounds: ImageBounds) -> None:
        """Keep those of a principal in the directory that *place* returns, within *bounds*."""
        self._place = place
        self.bounds = bounds
        self.written = 0
        """How many bytes were written since it was last cleaned up."""
        self._clean_at: dict[Path, float] = {}

    def images_of(self, principal: str, run: str, directory: str) -> RunImages | None:
        """Return what keeps the images of a run that works in *directory*; nothing where none are kept."""
        if not self.bounds.run_bytes:
            return None
        about = {"format": FORMAT, "run": run, "directory": directory, "at": time.time()}
        return RunImages(self, self._file_of(principal, run), about)

    def _file_of(self, principal: str, run: str) -> Path:
        if not RUN_ID.match(run):
            raise ValueError(f"{run[:100]!r} is not the id of a run")
        return self._place(principal) / f"{run}{ENDING}"

    def find_run(self, principal: str, run: str) -> KeptRun | None:
        """Return what is kept of a run, if anything is, even while it is under way."""
        with suppress(OSError, ValueError, EOFError), self._file_of(principal, run).open("rb") as file:
            return KeptRun.read(file)
        return None

    def list_runs(self, principal: str, most: int) -> list[KeptRun]:
        """Return what is kept of the latest runs, the last one first."""
        files: list[tuple[float, str]] = []
        for file in self._place(principal).glob(f"*{ENDING}"):
            with suppress(OSError):  # removed meanwhile
                files.append((file.stat().st_mtime, file.stem))
        latest = (self.find_run(principal, run) for _, run in sorted(files, reverse=True)[:most])
        return [kept for kept in latest if kept]

    @contextmanager
    def open_run(self, principal: str, run: str) -> Generator[tuple[KeptRun, BinaryIO]]:
        """Give what is kept of a run, and its file, while no other process writes it.

        Raises:
            LookupError: Nothing is kept of it.
            ValueError: It is under way, or kept in another form.
        """
        try:
            with self._file_of(principal, run).open("rb") as file:
                if not try_lock(file.fileno()):
                    raise ValueError(f"run {run} is under way: wait for its end, or cancel it")
                yield KeptRun.read(file), file
        except (FileNotFoundError, EOFError):
            raise LookupError(f"nothing is kept of a run {run!r} of yours: {NONE_KEPT}") from None

    def prepare(self, directory: Path) -> None:
        """Make the directory; now and then remove what is too old, and the oldest beyond the bound."""
        now, left = time.time(), self.bounds.total_bytes
        make_private(directory)
        if now < self._clean_at.get(directory, 0.0) and self.written < left // 8:
            return
        self._clean_at[directory], self.written = now + CLEAN_SECONDS, 0
        found = [(path.stat(), path) for path in directory.glob(f"*{ENDING}")]
        for status, path in sorted(found, key=lambda one: -one[0].st_mtime):
            left -= status.st_size
            if left < 0 or status.st_mtime < now - self.bounds.days * DAY:
                with suppress(OSError), path.open("rb") as file:
                    if try_lock(file.fileno()):  # no run that is under way
                        path.unlink()


def _path_of(directory: int, name: str) -> str:
    return f"{path_of_descriptor(directory).rstrip('/')}/{name}"


def _look_of(directory: int, name: str) -> tuple[int, ...]:
    found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

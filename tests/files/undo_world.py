"""Random programs over a small tree and a few notes, with strangers and kills, and what must hold after their undo."""

from __future__ import annotations

import os
import pickle
import stat
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import Context
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from ot.execution import tool_context
from ot.execution.tool_context import ToolContext
from ot.files.path_guard import PathGuard
from ot.files.run_images import ImageBounds, ImageStore
from ot.files.run_writes import RunWrites
from ot.introspect.run_undo import RunUndo
from ot.notes.notes_database import FILE, open_notes
from ot.notes.notes_of_undo import NotesOfUndo
from ot_tools import _program_files, file, memory

ME = "me"
NAMES = ("a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/f", "link", "far")
TEXTS = ("", "one\n", "two\n", "one\ntwo\n", "\0\1", "long " * 40)
HOOKS = (
    "write", "pwrite", "replace", "rename", "mkdir", "rmdir", "unlink", "symlink", "ftruncate", "fchmod",
    "open", "stat", "fstat", "fsync",
)  # fmt: skip
"""The system's functions in which a process may be killed."""
BOUNDS = ImageBounds(file_bytes=150, run_bytes=2000)

type Tree = dict[str, Any]
type Step = Callable[[], object]


class World:
    """A directory in which programs and strangers work, and beside it what OneTool keeps."""

    def __init__(self, directory: Path, random: Random) -> None:
        """Fill *directory* with something."""
        self.random = random
        self.root, self.user = directory / "work", directory / "home"
        self.root.mkdir()
        self.user.mkdir()
        self.guard = PathGuard((self.root,), hidden=(self.user,))
        self.store = ImageStore(lambda principal: self.user / "undo", BOUNDS)
        self.notes = self.user / "data" / "memory"
        self.undo = RunUndo(self.store, self.guard, lambda principal: NotesOfUndo(self.notes), "")
        for name in NAMES[:9]:
            if random.random() < 0.6:
                with suppress(OSError):
                    self._fill(self.root / name)
        if random.random() < 0.3:
            with suppress(OSError):
                (self.root / "link").symlink_to("a")
                (self.root / "far").symlink_to("/etc/hostname")
        self.has_notes = random.random() < 0.25
        with self.run("before"):
            for text in TEXTS[1:3] if self.has_notes else ():
                memory.write(text=text, tags=["t"])

    def _fill(self, path: Path) -> None:
        if path.name in "def":
            path.mkdir(mode=self.random.choice((0o755, 0o750)))
        else:
            path.write_text(self.random.choice(TEXTS))
            path.chmod(self.random.choice((0o644, 0o640, 0o755)))

    @contextmanager
    def run(self, id: str) -> Generator[None]:
        """Let calls be those of the run *id*."""
        writes = RunWrites()
        writes.make_images = lambda: None if id == "before" else self.store.images_of(ME, id, "")
        with tool_context.use(ToolContext(self.guard, self.root, user_dir=self.user, writes=writes)):
            yield
        writes.close()

    def tree(self) -> Tree:
        """Return all that is there, with modes, and the notes."""
        found: Tree = {}
        for path in sorted(self.root.rglob("*")):
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            what = ("link", str(path.readlink())) if path.is_symlink() else (mode, path.is_dir() or path.read_bytes())
            if not path.name.startswith(".tmp."):  # which a process that is killed while it writes leaves behind
                found[str(path)] = what
        if not self.has_notes:
            return found
        with open_notes(self.notes / FILE) as notes:
            found |= {f"note {id}": note for id in range(1, 12) if (note := notes.copy(id))}
        return found

    # ---------------------------------------------------------------- what programs do

    def program(self) -> list[tuple[str, Step]]:
        """Return the steps of a program, each with who takes it: it, or a stranger meanwhile."""
        count = self.random.randint(1, 8)
        strange = self.random.random() < 0.3
        return [
            ("stranger", self.stranger()) if strange and self.random.random() < 0.25 else ("run", self._step())
            for _ in range(count)
        ]

    def _step(self) -> Step:
        pick = self.random.choice
        path, other, text = pick(NAMES), pick(NAMES), pick(TEXTS)
        data, id = text.encode(), self.random.randint(1, 5)
        at = pick((None, None, 0, 2, 5, 300))
        steps: tuple[Step, ...] = (
            lambda: file.write(path=path, content=text),
            lambda: file.write(path=path, content=text),
            lambda: file.append(path=path, content=text),
            lambda: file.delete(path=path, recursive=True),
            lambda: file.move(source=path, target=other, overwrite=True),
            lambda: file.copy(source=path, target=other, overwrite=True),
            lambda: file.make_directory(path=path),
            lambda: file.edit(path=path, old="one", new="three"),
            lambda: file.patch(diff=f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-one\n+four\n"),
            lambda: _program_files.begin(path=path, mode=pick("wxa+")),
            lambda: self._write_on(path, data, at),
            lambda: _program_files.write(path=path, data=data, at=at),
            lambda: _program_files.truncate(path=path, size=pick((0, 2, 10, 400))),
            lambda: _program_files.touch(path=path, mode=pick((0o600, 0o640, 0o500))),
            lambda: _program_files.remove(path=path, directory=pick((True, False))),
            lambda: _program_files.rename(source=path, target=other),
        )
        of_notes: tuple[Step, ...] = (
            lambda: memory.write(text=text or "note", tags=["x"]),
            lambda: memory.update(id=id, text=text or "more", append=True),
            lambda: memory.delete(ids=[id]),
        )
        return pick(of_notes if self.has_notes and self.random.random() < 0.6 else steps)

    def _write_on(self, path: str, data: bytes, at: int | None) -> None:
        _program_files.begin(path=path, mode="w")
        for part in (data, b"x", data):
            _program_files.write(path=path, data=part, at=at)

    def stranger(self) -> Step:
        """Return what another program does, which asks nobody."""
        pick = self.random.choice
        path, text, id = self.root / pick(NAMES[:9]), pick(TEXTS), self.random.randint(1, 4)

        def note() -> None:
            with open_notes(self.notes / FILE, writes=True) as notes:
                notes.change(id, text or "theirs", ["theirs"])

        steps: tuple[Step, ...] = (
            lambda: path.write_text(f"{text}!"),
            lambda: path.write_text(text),
            path.unlink,
            path.rmdir,
            path.mkdir,
            lambda: path.chmod(pick((0o700, 0o644, 0o750))),
            lambda: path.rename(self.root / pick(NAMES[:9])),
        )
        return partial(Context().run, note) if self.has_notes and self.random.random() < 0.3 else pick(steps)

    # ---------------------------------------------------------------- processes that are killed

    def in_child(self, work: Callable[[Callable[[object], object]], object], kill_at: int) -> list[Any]:
        """Do *work* in another process, which dies in one of the system's functions; return what it told until then."""
        reading, writing = os.pipe()
        if not (child := os.fork()):
            code = 1
            try:
                os.close(reading)
                told = os.fdopen(writing, "wb", 0)
                kill_in(kill_at, self.random.random() < 0.5)
                work(lambda found: told.write(pickle.dumps(found)))
                code = 0
            except BaseException:  # noqa: BLE001 - whatever it is, this process must not go on with the tests
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(writing)
        found: list[Any] = []
        with os.fdopen(reading, "rb") as told, suppress(EOFError, pickle.UnpicklingError):
            while True:
                found.append(pickle.load(told))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (0, 9)
        return found


def kill_in(countdown: int, after: bool) -> None:
    """Let this process die in the call of one of the HOOKS with that number, before or *after* it has done its work."""
    left = [countdown]

    def hooked(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                if name == "write" and not after:
                    function(args[0], args[1][: len(args[1]) // 2])
                elif after:
                    with suppress(OSError):
                        function(*args, **kwargs)
                os._exit(9)
            return function(*args, **kwargs)

        return call

    if countdown:
        for name in HOOKS:
            function = getattr(os, name)
            setattr(os, name, hooked(name, function))
            if function in os.supports_dir_fd:
                os.supports_dir_fd.add(getattr(os, name))

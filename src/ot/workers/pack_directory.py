"""PackDirectory: a private copy of a pack's files, under the hash of their content."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path, PurePosixPath

from ot.files.no_links import make_private
from ot.files.private_file import try_lock, write_new, write_private

STAMP = ".ready.json"
LOCK_PAUSE = 0.05


@asynccontextmanager
async def hold_lock(path: Path) -> AsyncGenerator[None]:
    """Keep every other server out of the same block for the same lock file; the system ends it with the process."""
    make_private(path.parent)
    with path.open("ab") as file:
        while not try_lock(file.fileno()):  # noqa: ASYNC110 - no event tells when another process is done
            await asyncio.sleep(LOCK_PAUSE)
        yield


class PackDirectory:
    """Where a pack runs: never changed once it is there, for a worker may be running from it."""

    def __init__(self, packs: Path, files: Mapping[str, bytes], main: str) -> None:
        """Give *files*, by relative names, a directory below *packs*.

        Raises:
            ValueError: A name leads out of the directory, or *main* is not among the files.
        """
        for name in files:
            check_name(name)
        if main not in files:
            raise ValueError(f"'{main}' is not among its files")
        self.key = content_hash(files, main)
        self.path = packs / self.key
        self.main = self.path / main
        self._files = files

    @property
    def script_lock(self) -> Path:
        """The versions that were chosen for the pack's dependencies."""
        return self.main.with_name(f"{self.main.name}.lock")

    @property
    def brought_lock(self) -> bool:
        """Whether the versions came with the pack."""
        return self.script_lock.relative_to(self.path).as_posix() in self._files

    def hold_lock(self) -> AbstractAsyncContextManager[None]:
        """Keep every other server out of the same block for the same content."""
        return hold_lock(self.path.with_suffix(".lock"))

    def intact(self) -> bool:
        """Return whether every file is there as it was given."""
        try:
            return all((self.path / name).read_bytes() == data for name, data in self._files.items())
        except OSError:
            return False

    def write(self) -> None:
        """Put the files there, all or none, or raise OSError; call it under the lock."""
        fresh = self._other()
        for name, data in self._files.items():
            write_new(fresh / name, data)
        if self.path.exists():  # someone has changed it: what is trusted is what was given
            self.path.rename(self._other())
        fresh.rename(self.path)
        for stale in self.path.parent.glob(f".{self.key}.*"):
            shutil.rmtree(stale, ignore_errors=True)

    def stamp(self, python: Path) -> None:
        """Note that the environment is complete, and which interpreter has it."""
        write_private(self.path / STAMP, json.dumps({"python": str(python)}))

    def read_stamped_python(self) -> Path | None:
        """Return the interpreter that was noted, whether or not it is still there."""
        try:
            return Path(json.loads((self.path / STAMP).read_bytes())["python"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _other(self) -> Path:
        return self.path.with_name(f".{self.key}.{secrets.token_hex(8)}")


def content_hash(files: Mapping[str, bytes], main: str) -> str:
    """Return a hash of these files."""
    digest = hashlib.sha256(main.encode())
    for name in sorted(files):
        digest.update(hashlib.sha256(name.encode()).digest() + hashlib.sha256(files[name]).digest())
    return digest.hexdigest()[:32]


def check_name(name: str) -> None:
    """Check the relative name of a file; raise ValueError if it leads elsewhere, or is reserved."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts or set(name) & set("\\:\0"):
        raise ValueError(f"the file name '{name}' does not stay in the pack's directory")
    if path.name == STAMP:
        raise ValueError(f"the file name '{STAMP}' is reserved")

"""Trust: which projects' .onetool directories the user has allowed, file by file."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ot.config.inventory import Inventory, take_inventory
from ot.config.snapshot import Snapshot, take_snapshot
from ot.config.workspace_trust import changes
from ot.errors import TrustError
from ot.files.private_file import FileRead, hold_lock, read_regular, write_private

TRUST_FILE = "trust.json"
MAX_BYTES = 64 << 20

type TrustState = Literal["untrusted", "changed", "trusted"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a directory may be used, what is not as it was trusted, and the very bytes that were judged."""

    state: TrustState
    changes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    snapshot: Snapshot | None = field(default=None, repr=False)


class _Written(BaseModel):
    """A part of the record; a key that it does not know damages it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Record(_Written):
    """What the user has trusted of one directory, and when."""

    time: str
    files: Mapping[str, str]


class ServerHere(_Written):
    """One server that may be started in a directory: the sum of what was written of it, and of what it obeys there."""

    written: str
    files: Mapping[str, str]


class TrustedWorkspace(_Written):
    """The servers that the user lets start in one directory, and since when."""

    time: str
    servers: Mapping[str, ServerHere]


@dataclass(frozen=True, slots=True)
class Before:
    """A directory as it was when it was trusted."""

    time: str
    snapshot: Snapshot = field(repr=False)


class _Book(_Written):
    version: Literal[1] = 1
    projects: Mapping[str, Record] = Field(default_factory=dict)
    workspaces: Mapping[str, TrustedWorkspace] = Field(default_factory=dict)


class Trust:
    """The user's record of trusted directories; a record that cannot be read trusts nothing."""

    def __init__(self, global_dir: Path, clock: Callable[[], float] = time.time) -> None:
        self._file = global_dir / TRUST_FILE
        self._seen = SeenText(global_dir)
        self._clock = clock

    def state(self, project_dir: Path) -> Verdict:
        """Return whether *project_dir* may be used as it is now; one never trusted is not even read."""
        book, warnings = self._read()
        record = book.projects.get(_real(project_dir))
        if record is None:
            return Verdict("untrusted", (), warnings)
        snapshot = take_snapshot(project_dir, of_project=True)
        different = (*snapshot.problems, *changes(record.files, snapshot.hashes))
        return Verdict("changed" if different else "trusted", different, warnings, snapshot)

    def for_this_run(self, project_dir: Path) -> Verdict:
        """Trust *project_dir* as it is now without recording that: for CI.

        Raises:
            TrustError: The directory holds something that cannot be trusted.
        """
        snapshot = take_snapshot(project_dir, of_project=True)
        _refuse(project_dir, snapshot.problems)
        return Verdict("trusted", snapshot=snapshot)

    def trust(self, inventory: Inventory) -> None:
        """Allow the files of *inventory*: those that the user was shown, not what is there by now.

        Raises:
            TrustError: The directory holds something that cannot be trusted.
        """
        _refuse(inventory.root, inventory.problems)
        record = Record(time=self._now(), files=dict(inventory.hashes))
        with hold_lock(self._file):
            self._seen.keep(_real(inventory.root), inventory.snapshot.contents, without=inventory.secrets_file)
            book = self._read()[0]
            self._write(book.model_copy(update={"projects": {**book.projects, _real(inventory.root): record}}))

    def hashes(self, project_dir: Path) -> Mapping[str, str] | None:
        """Return the hashes of *project_dir*'s files, of an empty one none; nothing where they are not trusted."""
        if not project_dir.exists() or not any(project_dir.iterdir()):
            return {}
        verdict = self.state(project_dir)
        return verdict.snapshot.hashes if verdict.state == "trusted" and verdict.snapshot else None

    def renew(
        self, project_dir: Path, before: Mapping[str, str], written: Mapping[str, str], new: Sequence[str]
    ) -> bool:
        """Trust *project_dir* again if it has the files of *before*, those with the texts *written*, and *new* ones."""
        inventory = take_inventory(project_dir)
        own = {name: inventory.hashes[name] for name in new if name in inventory.hashes}
        sums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in written.items()}
        if inventory.hashes != {**own, **before, **sums}:
            return False
        self.trust(inventory)
        return True

    def servers_in(self, workspace: Path) -> Mapping[str, ServerHere]:
        """Return the servers that may be started in *workspace*, by name."""
        found = self._read()[0].workspaces.get(_real(workspace))
        return found.servers if found else {}

    def trust_servers_in(self, workspace: Path, servers: Mapping[str, ServerHere]) -> None:
        """Let *servers* start in *workspace* while what they obey there is as it was shown, and no others."""
        record = TrustedWorkspace(time=self._now(), servers=servers)
        with hold_lock(self._file):
            book = self._read()[0]
            self._write(book.model_copy(update={"workspaces": {**book.workspaces, _real(workspace): record}}))

    def untrust(self, project_dir: Path) -> bool:
        """Forget *project_dir* and the servers that may start beside it, and say whether either was known."""
        with hold_lock(self._file):
            book = self._read()[0]
            projects, workspaces = dict(book.projects), dict(book.workspaces)
            known = projects.pop(_real(project_dir), None), workspaces.pop(_real(project_dir.parent), None)
            if any(known):
                self._write(book.model_copy(update={"projects": projects, "workspaces": workspaces}))
                self._seen.forget(_real(project_dir))
        return any(known)

    def before(self, project_dir: Path) -> Before | None:
        """Return *project_dir* as it was trusted last, as far as its texts were kept; nothing if it never was."""
        directory = _real(project_dir)
        record = self._read()[0].projects.get(directory)
        if record is None:
            return None
        return Before(record.time, Snapshot(project_dir, record.files, self._seen.read(directory, record.files)))

    def list(self) -> Mapping[Path, Record]:
        """Return the trusted projects, by directory."""
        return {Path(directory): record for directory, record in sorted(self._read()[0].projects.items())}

    def list_workspaces(self) -> Mapping[Path, TrustedWorkspace]:
        """Return the directories in which servers may start."""
        return {Path(directory): record for directory, record in sorted(self._read()[0].workspaces.items())}

    def _read(self) -> tuple[_Book, tuple[str, ...]]:
        try:
            found = read_regular(self._file, MAX_BYTES, follow=True)
        except FileNotFoundError:
            return _Book(), ()
        except OSError as error:
            return _Book(), (f"{self._file} cannot be read, so no project is trusted: {error.strerror or error}",)
        return self._parse(found)

    def _parse(self, found: FileRead) -> tuple[_Book, tuple[str, ...]]:
        if found.writable_by_others:
            return _Book(), (f"{self._file} can be written by other users, so no project is trusted",)
        try:
            return _Book.model_validate_json(found.data), ()
        except ValidationError:
            return _Book(), (f"{self._file} is damaged, so no project is trusted: run 'onetool trust' again",)

    def _write(self, book: _Book) -> None:
        write_private(self._file, book.model_dump_json(indent=1) + "\n")

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds")


def _real(directory: Path) -> str:
    return os.path.realpath(directory)


def _refuse(directory: Path, problems: Sequence[str]) -> None:
    if problems:
        raise TrustError("\n".join([f"{directory} cannot be trusted", *problems]))


# ---------------------------------------------------------------- the texts of what was seen

FOLDER = "seen"
MAX_FILE_BYTES = 64 << 10
KEPT_BYTES = 1 << 20
MOST = 500


class SeenText:
    """One file a project in the user's directory; what is too large, or no text, is not kept."""

    def __init__(self, global_dir: Path) -> None:
        self._folder = global_dir / FOLDER

    def keep(self, directory: str, contents: Mapping[str, bytes], *, without: str) -> None:
        """Keep the texts of *directory*, but not the file *without*, which holds secrets."""
        texts: dict[str, str] = {}
        left = KEPT_BYTES
        for name, data in contents.items():
            if name != without and len(data) <= min(MAX_FILE_BYTES, left):
                with suppress(UnicodeDecodeError):
                    texts[name] = data.decode()
                    left -= len(data)
        write_private(self._file(directory), json.dumps({"directory": directory, "files": texts}))
        for outdated in sorted(self._folder.glob("*.json"), key=lambda file: file.lstat().st_mtime)[:-MOST]:
            outdated.unlink(missing_ok=True)

    def read(self, directory: str, hashes: Mapping[str, str]) -> dict[str, bytes]:
        """Return those texts of *directory* that have the hashes under which they were trusted."""
        try:
            found: Any = json.loads(read_regular(self._file(directory), 8 * KEPT_BYTES, follow=False).data)
            files = cast("dict[str, str]", found["files"])
            texts = {name: text.encode() for name, text in files.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}
        return {name: data for name, data in texts.items() if hashes.get(name) == hashlib.sha256(data).hexdigest()}

    def forget(self, directory: str) -> None:
        """Remove what is kept of *directory*."""
        self._file(directory).unlink(missing_ok=True)

    def _file(self, directory: str) -> Path:
        return self._folder / f"{hashlib.sha256(directory.encode(errors='surrogateescape')).hexdigest()[:32]}.json"

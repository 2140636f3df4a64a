"""TokenStore: where the record of one account is: in the system's keyring, else in a file that only its owner reads."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, cast

from ot.files.no_links import NO_LINK, make_private
from ot.files.private_file import read_regular, try_lock, write_private
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.system_keyring import KeyringUnavailable, SystemKeyring
from ot.proxied.auth.token_record import TokenRecord, TokenRecords

MAX_BYTES = 1 << 20
LOCK_SECONDS = 45.0
"""Longer than another process may take to renew the same login."""
POLL_SECONDS = 0.02

type Kept = Literal["file", "keyring"]


class RecordUnreadable(Exception):
    """There is a record, but it cannot be read; the text says why."""


class RecordsUnreachable(OSError):
    """Where records are kept does not answer now; the login may well be good."""


def token_store(account: ServerAccount, keyring: SystemKeyring | None = None) -> TokenRecords:
    """Return the store of *account*'s record."""
    return account.shared(account) if account.shared else TokenStore(account, keyring)


class TokenStore:
    """The record of one account. Every method may block: call it in a thread.

    Beside a keyring stands a file without secrets. It says that there is a record, and changes with it: to see that
    another process has renewed the login costs one look at a file, not a question to the keyring.
    """

    def __init__(self, account: ServerAccount, keyring: SystemKeyring | None = None) -> None:
        """Read nothing yet."""
        self._account = account
        self._file = account.directory / f"{account.key}.json"
        self._keyring = keyring or SystemKeyring()
        self._seen: tuple[int, int, int] | None = None
        self._record: TokenRecord | None = None

    def read(self) -> TokenRecord | None:
        """Return the record, or nothing; its secrets are redacted from this moment.

        Raises:
            RecordUnreadable: There is one, but it cannot be read.
        """
        try:
            found = self._file.stat()
        except FileNotFoundError:
            self._seen = self._record = None
            return None
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            self._record, self._seen = self._account.note(self._read_anew()), seen
        return self._record

    def write(self, record: TokenRecord) -> None:
        """Keep *record*: it is on disk, or in the keyring, when this returns.

        Raises:
            OSError: It cannot be written; what was there is as it was.
        """
        self._account.note(record)
        kept = self._read_kept() or ("keyring" if self._keyring.is_usable() else "file")
        if kept == "keyring" and not self._into_keyring(record):
            kept = "file"
        self._write_file(kept, record)
        self._seen = None

    def delete(self) -> None:
        """Forget the record."""
        if self._read_kept() == "keyring":
            with suppress(KeyringUnavailable):
                self._keyring.delete(self._account.key)
        self._file.unlink(missing_ok=True)
        self._seen = self._record = None

    @property
    def place(self) -> str:
        """Where the record is, or would be, for a person."""
        return "the system's keyring" if self._read_kept() == "keyring" else str(self._file)

    @contextmanager
    def lock(self, seconds: float = LOCK_SECONDS) -> Generator[None]:
        """Keep every other process and thread from renewing this login meanwhile.

        Raises:
            TimeoutError: Another one does not let go of it.
        """
        make_private(self._file.parent)
        fd = os.open(self._file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | NO_LINK, 0o600)
        try:
            until = time.monotonic() + seconds
            while not try_lock(fd):
                if time.monotonic() > until:
                    raise TimeoutError(f"another process has been renewing the login for {seconds:g} s")
                time.sleep(POLL_SECONDS)
            yield
        finally:
            os.close(fd)

    # ---------------------------------------------------------------- where it is

    def _document(self) -> dict[str, Any]:
        try:
            found = json.loads(read_regular(self._file, MAX_BYTES, follow=False).data)
            return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise RecordUnreadable(f"{self._file}: {error}") from None

    def _read_kept(self) -> Kept | None:
        try:
            return self._document().get("kept")
        except RecordUnreadable:
            return None

    def _read_anew(self) -> TokenRecord | None:
        document = self._document()
        if document.get("kept") != "keyring":
            return TokenRecord.from_json(document.get("record"))
        try:
            text = self._keyring.read(self._account.key)
        except KeyringUnavailable as error:
            raise RecordUnreadable(f"the system's keyring cannot be read: {error}") from None
        return TokenRecord.from_text(text) if text else None

    def _into_keyring(self, record: TokenRecord) -> bool:
        try:
            self._keyring.write(self._account.key, json.dumps(record.to_json()))
        except KeyringUnavailable:
            return False  # Windows takes no more than 2,560 bytes, for example
        return True

    def _write_file(self, kept: Kept, record: TokenRecord) -> None:
        about = {"server": self._account.server, "url": self._account.url, "kept": kept, "written": time.time_ns()}
        held = {"record": record.to_json()} if kept == "file" else {}
        _require_private(self._file.parent)
        write_private(self._file, json.dumps(about | held))


def _require_private(directory: Path) -> None:
    """Make *directory* for its owner alone, also where it was there before."""
    make_private(directory)
    directory.chmod(0o700)

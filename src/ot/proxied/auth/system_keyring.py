"""The system's keyring, where there is a real one: tried out before it is relied on, and given a deadline."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

SERVICE = "onetool"
SECONDS = 10.0
"""A keyring may ask a person to unlock it; where nobody is there, it would wait for ever."""
NOT_REAL = ("keyring.backends.fail", "keyring.backends.null", "keyrings.alt")
"""Backends that keep nothing, or keep it in a plain file of their own."""
CHAIN = "keyring.backends.chainer"


class KeyringUnavailable(Exception):
    """The keyring cannot be used; the text says why."""


class SystemKeyring:
    """Reads, writes and deletes values by key. Every method may block: call it in a thread."""

    def __init__(self, find: Callable[[], Any] | None = None) -> None:
        """Look for nothing yet; *find* returns the library's backend."""
        self._find = find or _library_backend
        self._backend: Any = None

    def is_usable(self) -> bool:
        """Return whether a value that is written can be read and deleted again."""
        key, value = f"probe-{secrets.token_hex(8)}", secrets.token_hex(16)
        try:
            self.write(key, value)
            found = self.read(key)
            self.delete(key)
        except KeyringUnavailable:
            return False
        return found == value

    def read(self, key: str) -> str | None:
        """Return the value under *key*, or nothing; raise KeyringUnavailable if it cannot be asked."""
        return self._ask(lambda backend: backend.get_password(SERVICE, key))

    def write(self, key: str, value: str) -> None:
        """Put *value* under *key*; raise KeyringUnavailable if it does not take the value."""
        self._ask(lambda backend: backend.set_password(SERVICE, key, value))

    def delete(self, key: str) -> None:
        """Forget the value under *key*; raise KeyringUnavailable if it cannot be asked, or has none."""
        self._ask(lambda backend: backend.delete_password(SERVICE, key))

    def _ask(self, work: Callable[[Any], Any]) -> Any:
        answers: SimpleQueue[tuple[Any, Exception | None]] = SimpleQueue()

        def ask() -> None:
            try:
                answers.put((work(self._get_backend()), None))
            except Exception as error:  # noqa: BLE001 - backends are other people's code, and raise anything
                answers.put((None, error))

        threading.Thread(target=ask, daemon=True, name="keyring").start()
        try:
            value, error = answers.get(timeout=SECONDS)
        except Empty:
            raise KeyringUnavailable(f"it did not answer within {SECONDS:g} s: is it locked?") from None
        if error:
            raise KeyringUnavailable(str(error) or type(error).__name__)
        return value

    def _get_backend(self) -> Any:
        if self._backend is None:
            self._backend = _real(self._find())
        return self._backend


def _library_backend() -> Any:
    import keyring  # noqa: PLC0415 - costs a tenth of a second, and only some have a login

    return keyring.get_keyring()


def _real(backend: Any) -> Any:
    """Return the backend that really keeps something, of a chain the first such, or raise KeyringUnavailable."""
    within = backend.backends if type(backend).__module__.startswith(CHAIN) else [backend]
    for one in within:
        if not type(one).__module__.startswith(NOT_REAL):
            return one
    raise KeyringUnavailable("this system has no keyring")

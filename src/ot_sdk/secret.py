"""Secret: a value that does not show itself. Redactor: takes known values out of what leaves a worker."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

SHORTEST = 6
"""Shorter values are not redacted: they would be found in half of all words."""


class Secret:
    """A value that only ``reveal()`` shows: not text, not formatting, not JSON, not a pickle."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: Any) -> Secret:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")


class Redactor:
    """Replaces the values of secrets by ``[secret:NAME]``."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names = {value: name for name, value in secrets.items() if len(value) >= SHORTEST}
        self._raw = {value.encode(errors="surrogatepass"): name.encode() for value, name in self._names.items()}
        # The longest first: one secret may be the beginning of another.
        self._pattern = re.compile("|".join(map(re.escape, sorted(self._names, key=len, reverse=True))) or "(?!)")
        self._raw_pattern = re.compile(b"|".join(map(re.escape, sorted(self._raw, key=len, reverse=True))) or b"(?!)")

    @property
    def idle(self) -> bool:
        """True when there is nothing to redact."""
        return not self._names

    def text(self, text: str) -> str:
        """Return *text* without the values."""
        return text if self.idle else self._pattern.sub(lambda found: f"[secret:{self._names[found[0]]}]", text)

    def data(self, data: bytes) -> bytes:
        """Return *data* without the values."""
        return data if self.idle else self._raw_pattern.sub(lambda found: b"[secret:%b]" % self._raw[found[0]], data)

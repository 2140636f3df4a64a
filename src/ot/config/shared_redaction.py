"""SharedRedaction: takes the secrets of all workspaces of one host out of the log that they share."""

from __future__ import annotations

from collections import Counter

from ot.config.secrets import IssuedSecrets, NamedValues, Secrets
from ot_sdk.redaction import Redactor

KEPT = 32
"""What is still to be written may be of a workspace that has closed."""


class SharedRedaction:
    """Knows the secrets of every workspace that is open, and of the last that have closed, each value once.

    It is for the log alone: in a reply, what is redacted for one client would let another guess it.
    """

    def __init__(self, issued: IssuedSecrets) -> None:
        """Know what is *issued* to anybody."""
        self._issued = issued
        self._open: dict[object, NamedValues] = {}
        self._closed: list[NamedValues] = []
        self._holders = Counter[NamedValues]()
        self._redactor = Redactor()

    def put(self, workspace: object, secrets: Secrets) -> None:
        """Take out *secrets*, which *workspace* has from now on in the place of those that it had."""
        new, old = secrets.named_values, self._open.get(workspace)
        if new != old:
            self._open[workspace] = new
            self._count({new: 1} if old is None else {new: 1, old: -1})

    def drop(self, workspace: object) -> None:
        """Note that *workspace* has closed."""
        if (closed := self._open.pop(workspace, None)) is None:
            return
        if closed in self._closed:  # commands come and go with the same secrets
            self._closed.remove(closed)
            self._count({closed: -1})
        self._closed.append(closed)
        if len(self._closed) > KEPT:
            self._count({self._closed.pop(0): -1})

    def _count(self, changes: dict[NamedValues, int]) -> None:
        known = set(self._holders)
        self._holders.update(changes)
        self._holders = +self._holders
        if known != set(self._holders):
            # Replaced as a whole: the log is written on a thread.
            self._redactor = Redactor(pair for values in self._holders for pair in values)

    def redact(self, text: str) -> str:
        """Return *text* with every value that any workspace knows replaced by ``[secret:NAME]``; for any thread."""
        return self._redactor.text(self._issued.redactor.text(text))

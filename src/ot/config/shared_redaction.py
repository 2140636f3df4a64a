"""SharedRedaction: takes the secrets of all workspaces of one host out of the log that they share."""

from __future__ import annotations

from collections.abc import Callable

from ot.config.secrets import Secrets

KEPT = 32
"""What is still to be written may be of a workspace that has closed."""


class SharedRedaction:
    """Knows the secrets of every workspace that is open, and of the last that have closed.

    It is for the log alone: in a reply, what is redacted for one client would let another guess it.
    """

    def __init__(self) -> None:
        """Know of none yet."""
        self._open: dict[object, Callable[[], Secrets]] = {}
        self._closed: list[Secrets] = []

    def add(self, workspace: object, secrets: Callable[[], Secrets]) -> None:
        """Take out what *secrets* returns, asked anew for every text: a reload may bring new ones."""
        self._open[workspace] = secrets

    def drop(self, workspace: object) -> None:
        """Note that *workspace* has closed."""
        if known := self._open.pop(workspace, None):
            closed = known()
            # Replaced as a whole: the log is written on a thread. Commands come and go with the same secrets.
            self._closed = [*(one for one in self._closed if not one.redacts_same(closed)), closed][-KEPT:]

    def redact(self, text: str) -> str:
        """Return *text* with every value that any workspace knows replaced by ``[secret:NAME]``; for any thread."""
        for secrets in (*(known() for known in tuple(self._open.values())), *self._closed):
            text = secrets.redact(text)
        return text

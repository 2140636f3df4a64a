"""DecliningClients: clients that decline questions by themselves, faster than anybody could read them."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from ot.proxied.catalogue_files import write_json

logger = logging.getLogger(__name__)

FILE = "declining-clients.json"
TIMES = 2
"""How often in a row a client must have done it to be named: somebody may once hit a key by accident."""
MOST = 100


class DecliningClients:
    """Counts, by a client's name and version, how often in a row it declined too fast; kept for the next process."""

    def __init__(self, directory: Path) -> None:
        """Keep them in the user's *directory*."""
        self.file = directory / FILE

    def counts(self) -> dict[str, int]:
        """Return the counts; what cannot be read counts as nothing, and is learned again."""
        try:
            found: Any = json.loads(self.file.read_text(encoding="utf-8"))["clients"]
            return {str(name): int(count) for name, count in found.items()}
        except (OSError, ValueError, LookupError, AttributeError, TypeError):
            return {}

    def note(self, client: str, *, declined: bool) -> None:
        """Take note that *client* *declined* a question by itself, or that a person has answered."""
        counts = self.counts()
        if not declined and client not in counts:
            return
        before = counts.pop(client, 0)
        if declined:
            counts[client] = before + 1
        try:
            write_json(self.file, {"version": 1, "clients": dict(list(counts.items())[-MOST:])})
        except OSError as error:
            logger.warning("how %s answers could not be remembered: %s", client, error)

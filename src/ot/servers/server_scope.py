"""Which clients use the same server, where several share one OneTool."""

from __future__ import annotations

import re
from typing import Literal

from ot.config.models import Server

type Scope = Literal["workspace", "shared", "private"]
"""Those that work in one directory, all of them, or each its own."""

STATEFUL = re.compile(r"playwright|puppeteer|selenium|browser|chrome-devtools|sequential-?thinking", re.IGNORECASE)
"""Names of servers that go on where the last call left off: a browser has one page open."""
ADVICE = "leave scope out, and clients that work in one directory share it"


def scope_of(server: Server) -> Scope:
    """Return what the settings say; without a word, a server that is known to keep state is private."""
    if server.scope:
        return server.scope
    named = any(STATEFUL.search(text) for text in (server.command, server.url, *server.args))
    return "private" if named else "workspace"

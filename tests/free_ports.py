"""Ports for servers that cannot be told to choose one: they are nobody else's, also a while after they were chosen.

A port that the system chose and that is let go of may be anybody's in the next moment: the system gives it to whoever
asks next. These are below those that it gives, and each process of the tests has its own.
"""

from __future__ import annotations

import itertools
import os
import random
import socket

FIRST, EACH, PROCESSES = 12_000, 1_000, 20
"""All are below 32,768, where the system's begin."""
_own = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % PROCESSES
_turns = itertools.count(random.randrange(EACH))


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nobody listens."""
    for turn in itertools.islice(_turns, EACH):
        port = FIRST + _own * EACH + turn % EACH
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:  # another program's
                continue
            return port
    raise RuntimeError("no port is free")

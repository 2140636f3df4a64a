"""Which server a client is given next, and when: the shared one if it is there within a while, else one of its own."""

from __future__ import annotations

import os
import time
from _socket import socket

from ot.relay.place import Hangs, NotNow, Unshared
from ot.relay.servers import Servers, say

MOST_ENDS, ENDS_SECONDS = 3, 60.0
"""A shared server that ends so often in that time is left alone for a while."""
SHARED_SECONDS = 5.0
"""For so long, and up to twice as long, the shared server is tried again before the client is served alone."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 2.0
"""Between two tries, twice as long each time."""
LAST_TRIES = 2
"""So many servers of the client's own are tried, before what it asked is answered with an error."""
ALONE_SECONDS, LONGEST_ALONE = 15.0, 600.0
"""How long a client is served alone before it looks for the shared server; twice as long the next time."""

SHARED, ALONE, SUCCESSOR = "shared", "alone", "successor"


def at_random(seconds: float) -> float:
    """Return *seconds*, or up to twice as many: clients that lost the same server do not all act at once."""
    return seconds * (1 + os.urandom(1)[0] / 256)


class Tries:
    """The tries of one client to get a server, from when it has none until one works."""

    def __init__(self, servers: Servers) -> None:
        """Choose among *servers*."""
        self._servers = servers
        self.kind = SHARED
        """What the server is that was tried last."""
        self.is_shareable = True
        self._ends: list[float] = []
        self._shared_until: float | None = None
        """Until when the shared server is tried; nothing while a server works."""
        self._count = self._last_count = 0
        self._has_given_up = False
        self._alone_seconds = ALONE_SECONDS

    def first_server(self) -> tuple[socket, socket] | None:
        """Return the shared server if it can be reached at once, for a client that has asked nothing yet.

        Raises:
            Unshared, OSError: It cannot be used from here.
        """
        now = time.monotonic()
        try:
            return self._join_shared()
        except NotNow as error:
            say(str(error))
            self._count, self._shared_until = 1, now + at_random(SHARED_SECONDS)
        except Hangs as error:
            say(str(error))
            self._count, self._shared_until = 1, now
        return None

    def next_server(self) -> tuple[socket, socket]:
        """Return the descriptors of the next server for requests and answers; it may not work yet.

        Raises:
            Unshared, OSError: It cannot be started or reached.
        """
        now = time.monotonic()
        if self._shared_until is None:
            self._shared_until = self._begin(now)
        self._count += 1
        is_late = self._count > 1 and now >= self._shared_until
        if self._servers.replaced():
            self.kind = SUCCESSOR
            self._last_count += is_late
            return self._servers.successor()
        if self.is_shareable and not is_late:
            try:
                return self._join_shared()
            except NotNow:
                raise
            except Hangs as error:
                say(str(error))
                self._shared_until = now
            except Unshared as error:
                say(str(error))
                self.is_shareable = False
        if self.kind != ALONE:
            say(f"served alone {'for a while' if self.is_shareable else 'from now on'}")
        self.kind = ALONE
        self._last_count += 1
        return self._servers.alone()

    def _begin(self, now: float) -> float:
        """Return until when the shared server is tried."""
        self._ends = [*(then for then in self._ends if now - then < ENDS_SECONDS), now]
        self._count = self._last_count = 0
        if self._has_given_up:  # who was given nothing last time does not wait as long again
            return now
        if len(self._ends) >= MOST_ENDS:
            say("the shared server ended too often")
            self._count = 1
            return now
        return now + at_random(SHARED_SECONDS)

    def _join_shared(self) -> tuple[socket, socket]:
        server = self._servers.join_shared()
        self.kind = SHARED
        return server, server

    def pause(self, *, is_urgent: bool) -> float | None:
        """Return for how long to wait after a try that failed; nothing where no further one is to be made now."""
        if not is_urgent:
            self._shared_until = None
            return None
        if self._last_count < LAST_TRIES and not (self._has_given_up and self._last_count):
            return at_random(min(FIRST_PAUSE * 2 ** (self._count - 1), LONGEST_PAUSE))
        self._has_given_up, self._shared_until = True, None
        return None

    def succeed(self) -> float | None:
        """Take note that the server works, and return when to look for the shared one, if it is another."""
        self._shared_until, self._has_given_up = None, False
        if self.kind != ALONE or not self.is_shareable:
            return None
        seconds = at_random(self._alone_seconds)
        self._alone_seconds = min(2 * self._alone_seconds, LONGEST_ALONE)
        return seconds

    def rejoin_shared(self) -> tuple[socket, socket] | None:
        """Return the shared server for a client that is served alone, if it answers by now; else it is started.

        Raises:
            Unshared, OSError: It cannot be started or reached.
        """
        if self._servers.replaced():
            self.kind = SUCCESSOR
            return self._servers.successor()
        if server := self._servers.join_shared_if_ready():
            self.kind = SHARED
            say("served by the shared server again")
            return server, server
        return None

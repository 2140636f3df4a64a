"""ServerFeeds: the shared servers of this user that are watched, each on a connection of its own."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ot.cli.answer import AskedQuestion, find_questions
from ot.cli.sharing.running_servers import open_feed
from ot.relay.place import Unshared, private_directory

AGAIN_SECONDS = 30.0
"""After which a server is asked again that did not answer: it may take seconds not to."""

type Event = dict[str, Any]


@dataclass
class _Feed:
    connection: socket.socket
    pid: int
    rest: bytes = b""

    def fileno(self) -> int:
        return self.connection.fileno()


@dataclass
class ServerFeeds:
    """Those that tell now; others are looked for again and again."""

    feeds: dict[Path, _Feed] = field(default_factory=dict[Path, _Feed])
    unheard: dict[Path, tuple[str, float]] = field(default_factory=dict[Path, tuple[str, float]])
    """Why a server does not tell, and when it is asked again."""
    _asked: set[str] = field(default_factory=set[str])

    def look(self) -> Iterator[Event]:
        """Connect to the servers that are new, and yield what they say of themselves."""
        try:
            found = {Path(path) for path in Path(private_directory()).glob("*.sock")}
        except (Unshared, OSError) as error:
            self.unheard = {Path(): (str(error), 0.0)}
            return
        now = time.monotonic()
        waiting = {path for path, (_, again) in self.unheard.items() if again > now}
        self.unheard = {path: why for path, why in self.unheard.items() if path in found}
        for path in sorted(found - self.feeds.keys() - waiting):
            try:
                connection, state = open_feed(path)
            except ConnectionRefusedError:
                continue  # one that was killed has left it
            except (OSError, ValueError, Unshared) as error:
                self.unheard[path] = (str(error) or type(error).__name__, now + AGAIN_SECONDS)
                continue
            connection.setblocking(False)
            self.unheard.pop(path, None)
            self.feeds[path] = _Feed(connection, state["pid"])
            yield {"event": "server", "at": time.time(), "server": state["pid"], **state}

    def read(self, ready: _Feed) -> Iterator[Event]:
        """Yield what a server that is *ready* tells."""
        try:
            part = ready.connection.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if not part:
            yield self._close(ready)
            return
        *lines, ready.rest = (ready.rest + part).split(b"\n")
        for line in lines:
            yield {"server": ready.pid, **json.loads(line)}

    def _close(self, feed: _Feed) -> Event:
        feed.connection.close()
        self.feeds = {path: one for path, one in self.feeds.items() if one is not feed}
        return {"event": "gone", "at": time.time(), "server": feed.pid}

    def cancel(self, server: int, run: str, call: int | None) -> bool:
        """Ask a server to cancel a run, or a call of it; return whether it could be asked."""
        for feed in self.feeds.values():
            if feed.pid == server:
                with suppress(OSError):  # it has just ended
                    feed.connection.sendall(json.dumps({"cancel": run, "call": call}).encode() + b"\n")
                    return True
        return False

    def questions(self) -> tuple[list[AskedQuestion], list[Event]]:
        """Return the questions that wait in any server, and an event for each that is new; no connection is kept."""
        with ExitStack() as connections:
            waiting = find_questions(connections)
        new = [asked for asked in waiting if asked.code not in self._asked]
        self._asked = {asked.code for asked in waiting}
        return waiting, [_question(asked) for asked in new]

    def close(self) -> None:
        """Watch none any more."""
        for feed in self.feeds.values():
            feed.connection.close()


def _question(asked: AskedQuestion) -> Event:
    shown = {"code": asked.code, "tool": asked.tool, "whose": asked.whose, "directory": asked.fields["directory"]}
    message = asked.fields["question"]["message"]
    return {"event": "question", "at": asked.fields["since"], "server": 0, **shown, "message": message}

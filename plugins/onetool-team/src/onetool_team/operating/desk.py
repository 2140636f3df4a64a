"""OperatorDesk: what one process of a team's server answers when its operator asks, and ends when told to."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from onetool_team.own_permissions import PermissionBook
from onetool_team.people import TeamFront
from onetool_team.roster.roster import RosterWriter
from ot.brief_repr import brief_text
from ot.host import Host, Watchers
from ot.runtime.run_feed import RunTrail
from ot.version import installed_version

END_SECONDS = 5.0
"""How long runs that were cancelled have, until their workspace is closed all the same."""
MAX_PROGRAM = 200
NO_RUN = "it has ended already"

type Write = Callable[[bytes], bool]


class OperatorDesk:
    """Answers by the name of what is asked; whoever can ask has the keys of the operator, or is the server's user."""

    def __init__(self, host: Host, front: TeamFront, roster: RosterWriter, book: PermissionBook) -> None:
        """Look at *host* and *front*; *book* has what everybody always allowed."""
        self._host = host
        self._front = front
        self._roster = roster
        self._book = book
        self._since = time.time()
        self.state: Callable[[], str] = lambda: "ready"
        """Whether this process takes requests."""
        self.write_audit: Write | None = None
        """Writes a line into the audit log, where there is one."""

    async def answer(self, what: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to *what* is asked."""
        match what:
            case "status":
                await self._front.configuration.refresh()
                return self._status()
            case "runs":
                return {"runs": [self._describe(trail) for trail in self._host.feed.open.values()]}
            case "busy":
                return {"runs": dict(self._roster.last_minute())}
            case "cancel":
                return {"why": self._host.feed.cancel(body["run"]) if body["run"] in self._host.feed.open else NO_RUN}
            case "close":
                return {"runs": await self._close(body["principal"])}
            case "permissions":
                return {"patterns": list(await self._book.forget(body["principal"], body["server"]))}
            case "audit":
                return {"written": bool(self.write_audit and self.write_audit(body["line"].encode()))}
            case _:
                return {"unknown": what}

    def _status(self) -> dict[str, Any]:
        return {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "release": installed_version(),
            "since": self._since,
            "state": self.state(),
            "runs": len(self._host.feed.open),
            "workspaces": len(self._front),
            "settings": asdict(self._front.configuration.used),
        }

    def _describe(self, trail: RunTrail) -> dict[str, Any]:
        program = trail.program.source if trail.program else ".".join(trail.called or ())
        return {
            "id": trail.run_id,
            "principal": trail.caller.principal,
            "client": trail.caller.client,
            "since": time.time() - (time.monotonic() - trail.started),
            "background": trail.seconds is not None,
            "program": brief_text(program, MAX_PROGRAM, self._host.redaction.redact),
        }

    async def _close(self, principal: str) -> int:
        """End what *principal* does here and close the workspace; return how many runs there were."""
        ended = [trail for trail in self._host.feed.open.values() if trail.caller.principal == principal]
        for trail in ended:
            trail.cancel()
        if ended:
            await asyncio.wait([trail.task for trail in ended], timeout=END_SECONDS)
        await self._front.close(principal)
        # What was noted of it meanwhile is written now, so that whoever erases it finds it.
        await self._roster.flush()
        await asyncio.to_thread(self._front.workspace.recorder.flush)
        return len(ended)


def watching_people(watchers: Watchers, roster: RosterWriter) -> Watchers:
    """Return *watchers* with *roster* among them."""
    return replace(watchers, runs=(*watchers.runs, roster))

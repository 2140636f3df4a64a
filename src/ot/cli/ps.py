"""onetool ps: the server that clients share, and who uses it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ot.cli.terminal import columns, echo, echo_json, pluralize
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.cli.sharing.running_servers import RunningServer

UNITS = (("d", 86_400), ("h", 3600), ("min", 60))


def ps(as_json: AsJson = False) -> None:
    """Show the server that your clients share: its clients, where each works, and how many runs are open."""
    from ot.cli.sharing.running_servers import running_servers
    from ot.relay.place import Unshared

    try:
        servers, why = running_servers(), ""
    except Unshared as error:
        servers, why = [], f": {error}"
    if as_json:
        echo_json({"servers": [server.as_json() for server in servers]})
        return
    for server in servers:
        for line in _lines(server):
            echo(line)
    if not servers:
        echo(f"No shared server is running{why}.", err=True)


def _lines(server: RunningServer) -> Iterator[str]:
    if server.silent:
        yield f"{server.socket} does not answer: {server.silent}"
        return
    state = server.state
    clients: Sequence[dict[str, Any]] = state["connections"]
    up = age(state["since"])
    yield f"OneTool {state['build']}, process {state['pid']}, for {up}, {pluralize(len(clients), 'client')}"
    rows = [
        (one["client"] or "unknown", age(one["since"]), pluralize(one["runs"], "run"), at_home(one["cwd"]))
        for one in sorted(clients, key=lambda one: one["since"])
    ]
    yield from (f"  {line}" for line in columns(rows)) if rows else ()


def at_home(path: str) -> str:
    """Return *path* as a user writes it."""
    try:
        return f"~/{Path(path).relative_to(Path.home())}".removesuffix("/.")
    except ValueError:
        return path


def age(since: float) -> str:
    """Return how long ago *since* was, in its largest unit."""
    seconds = max(int(time.time() - since), 0)
    return next((f"{seconds // size} {unit}" for unit, size in UNITS if seconds >= size), f"{seconds} s")

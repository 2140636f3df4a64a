"""Shows what a change does to a client's file, without the secrets that stand around it."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator

from ot.config.clients.client_file import ServerList
from ot.config.clients.client_reading import found_server
from ot.config.clients.connection import ClientChange
from ot.config.clients.known_clients import Client
from ot.config.clients.server_entry import Surroundings
from ot.config.clients.server_secrets import SECRET_NAME, SECRET_VALUE

LONGEST = 300
ASSIGNED = re.compile(r"""(?P<key>"[^"]*+"|(?<![\w.-])[\w.-]++)(?P<between>\s*+[:=]\s*+)"(?:[^"\\]|\\.)*+\"""")
HIDDEN = "********"


def secret_values(client: Client, listed: ServerList, around: Surroundings) -> set[str]:
    """Return the secrets that the servers in a client's list hold in plain text."""
    place = client.own_file(around)
    found = (found_server(client, name, given, place, around) for name, given in listed.servers.items())
    return {value for server in found for value in server.secrets.values()}


def diff_lines(change: ClientChange, secrets: Iterable[str]) -> list[str]:
    """Return the difference that *change* makes, as a unified one."""
    old, new = ((data or b"").decode().splitlines() for data in (change.file.data, change.new))
    path = str(change.file.path)
    lines = list(difflib.unified_diff(old, new, f"{path} (now)", f"{path} (then)", n=2, lineterm=""))
    if any(len(line) > LONGEST for line in lines):
        lines = list(_summary(change))
    return [_without_secrets(line, secrets) for line in lines]


def _summary(change: ClientChange) -> Iterator[str]:
    """Yield the change of a file that is one long line."""
    yield f"{change.file.path}: a file with very long lines, of which this is changed:"
    yield f"+{change.name}: {json.dumps(change.entry)}" if change.entry else f"-{change.name}"
    yield from (f"-{name}" for name in change.taken_out)


def _without_secrets(line: str, secrets: Iterable[str]) -> str:
    for value in sorted(secrets, key=len, reverse=True):
        line = line.replace(json.dumps(value, ensure_ascii=False)[1:-1], HIDDEN).replace(value, HIDDEN)
    return SECRET_VALUE.sub(HIDDEN, ASSIGNED.sub(_hidden_value, line))


def _hidden_value(found: re.Match[str]) -> str:
    return f'{found["key"]}{found["between"]}"{HIDDEN}"' if SECRET_NAME.search(found["key"]) else found[0]

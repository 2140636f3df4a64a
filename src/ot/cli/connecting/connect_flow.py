"""Plans the changes of clients' files, shows them, asks, and writes them: for connect, disconnect and init."""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from ot.cli.connecting.client_screen import (
    ClientPlan,
    cost_rows,
    describe_change,
    sentence,
    show_starts,
    start_row,
    stays_line,
    tell_what_is_shared,
    why_it_stays,
)
from ot.cli.exit_codes import DENIED
from ot.cli.terminal import confirm, echo
from ot.config.clients.client_file import ServerList, private_list, read_from_disk, server_list
from ot.config.clients.client_reading import read_server
from ot.config.clients.connection import (
    ClientChange,
    EntryWanted,
    own_name_in,
    plan_connect,
    plan_disconnect,
    write_change,
)
from ot.config.clients.connection_notes import ConnectionNotes
from ot.config.clients.held_servers import HeldServers, find_held_servers
from ot.config.clients.known_clients import CLIENTS, Client
from ot.config.clients.server_entry import Surroundings
from ot.config.clients.server_secrets import SECRET_NAME, SECRET_VALUE
from ot.config.clients.take_over import surroundings
from ot.config.paths import Paths
from ot.errors import ConfigError

if TYPE_CHECKING:
    from ot.cli.diagnosis.starts import StartOutcome


@dataclass(frozen=True, slots=True)
class HowToWrite:
    """What the options say about showing and asking."""

    dry_run: bool = False
    yes: bool = False
    as_json: bool = False

    @property
    def asks(self) -> bool:
        """Whether somebody may be asked more than whether to write."""
        return sys.stdin.isatty() and not (self.dry_run or self.yes or self.as_json)


@dataclass(frozen=True)
class _Looked:
    """What a client's file lists, and what of it OneTool has: for every directory, and for this one."""

    client: Client
    listed: ServerList
    everywhere: HeldServers
    private: HeldServers

    @property
    def held(self) -> dict[str, str]:
        """What OneTool has, by the names there; of two of one name, that of this directory is marked."""
        return {**self._mark_private(self.private.here), **self.everywhere.here}

    @property
    def lacking(self) -> dict[str, str]:
        """Why OneTool does not have the others."""
        return {**self._mark_private(self.private.lacking), **self.everywhere.lacking}

    def _mark_private(self, private: Mapping[str, str]) -> dict[str, str]:
        return {f"{name} (private)" if name in self.listed.servers else name: text for name, text in private.items()}

    def names(self, *, but: str) -> tuple[str, ...]:
        private = (*self.private.here, *self.private.lacking)
        return tuple(name for name in (*self.listed.servers, *private) if name != but)


@dataclass(frozen=True)
class ConnectFlow:
    """What working on the files of clients needs, and what went wrong with some of them."""

    paths: Paths
    how: HowToWrite
    problems: list[str] = field(default_factory=list[str])
    starts: dict[str, StartOutcome] = field(default_factory=dict[str, "StartOutcome"])
    """How servers started that were started for this."""
    told: set[str] = field(default_factory=set[str])
    """What was said already of servers that stay."""

    @property
    def around(self) -> Surroundings:
        """The machine, its user and the project."""
        return surroundings(self.paths.cwd)

    @property
    def notes(self) -> ConnectionNotes:
        """How files were before."""
        return ConnectionNotes(self.paths)

    def connect(self, names: Sequence[str], wanted: EntryWanted, *, take_out: bool | None) -> list[dict[str, Any]]:
        """Add OneTool to the clients named *names*, and return what was done and what it costs.

        Only servers that start here are taken out of a client.
        """
        looked = [found for name in names if (found := self._attempt(partial(self._look, CLIENTS[name])))]
        if take_out or (take_out is None and self.how.asks):
            self._start_all({here for found in looked for here in found.held.values()})
        plans = [
            plan for found in looked if (plan := self._attempt(partial(self._plan_change, found, wanted, take_out)))
        ]
        told = self._carry_out([plan.change for plan in plans], "connected")
        stays = [{"stays": dict(plan.stays)} for plan in plans]
        costs = cost_rows(plans, self.paths)
        return [each | left | row for each, left, row in zip(told, stays, costs, strict=True)]

    def start(self, servers: Mapping[tuple[str, str], str]) -> list[dict[str, Any]]:
        """Start *servers*, the names here by client and name there, say what each offers, and return it."""
        self._start_all(servers.values())
        rows = [start_row(self.starts[name], self.paths) for name in dict.fromkeys(servers.values())]
        if not self.how.as_json:
            show_starts(rows)
            for (client, name), here in servers.items():
                if self.starts[here].state != "started":
                    self._tell_stays(CLIENTS[client], name, why_it_stays(CLIENTS[client], self.starts[here]))
        return rows

    def _start_all(self, names: Collection[str]) -> None:
        from ot.cli.diagnosis.starts import start_new_servers
        from ot.cli.terminal.event_loop import run_async
        from ot.config.load import load_config
        from ot.config.trust import Trust

        if new := [name for name in dict.fromkeys(names) if name not in self.starts]:
            if not self.how.as_json and not sys.stderr.isatty():  # there, each is named as it starts
                echo(f"starting {', '.join(new)} ...", err=True)
            loaded = load_config(self.paths, Trust(self.paths.global_dir))
            self.starts.update(run_async(start_new_servers(loaded, self.paths, new)))

    def _tell_stays(self, client: Client, name: str, why: str) -> None:
        line = stays_line(client, name, why)
        if line not in self.told and not self.how.as_json:
            echo(line)
        self.told.add(line)

    def disconnect(self, names: Sequence[str], name: str) -> list[dict[str, Any]]:
        """Remove OneTool from the clients named *names*, and return what was done."""
        work = [partial(plan_disconnect, CLIENTS[each], self.around, self.notes, name) for each in names]
        return self._carry_out([change for each in work if (change := self._attempt(each))], "disconnected")

    def _attempt[T](self, work: Callable[[], T]) -> T | None:
        """Return the value of *work*; a faulty client file does not stop the other clients."""
        try:
            return work()
        except ConfigError as error:
            self.problems.append(str(error))
            echo(f"onetool: {error}", err=True)
            return None

    def _look(self, client: Client) -> _Looked:
        listed = server_list(client, read_from_disk(client.own_file(self.around).file), self.around)
        own = private_list(client, listed, self.around)
        everywhere = find_held_servers(client, listed, self.around, self.paths)
        private = find_held_servers(client, own, self.around, self.paths, private=True) if own else HeldServers()
        return _Looked(client, listed, everywhere, private)

    def _plan_change(self, found: _Looked, wanted: EntryWanted, take_out: bool | None) -> ClientPlan:
        client, asked = found.client, take_out is None
        works = {name: here for name, here in found.held.items() if self._starts(here)}
        if asked and found.held:
            take_out = self._wants_out(client, works if self.how.asks else found.held)
        stays = self._stays(found) if take_out else {}
        for name, why in stays.items():
            self._tell_stays(client, name, why)
        gone, private = (
            [name for name, here in held.here.items() if take_out and self._starts(here)]
            for held in (found.everywhere, found.private)
        )
        change = plan_connect(client, self.around, wanted, self.notes, gone, private)
        own = own_name_in(client, found.listed)
        return ClientPlan(change, found.names(but=own), found.held, bool(own), stays)

    def _starts(self, name: str) -> bool:
        return name in self.starts and self.starts[name].state == "started"

    def _stays(self, found: _Looked) -> dict[str, str]:
        """Return why the servers stay in the client that do."""
        failing = {name: here for name, here in found.held.items() if not self._starts(here)}
        failed = {name: why_it_stays(found.client, self.starts[here]) for name, here in failing.items()}
        return {**found.lacking, **failed}

    def _wants_out(self, client: Client, held: Mapping[str, str]) -> bool:
        if not held:
            return True  # nothing would be taken out, but why is said
        said = f"OneTool also has {len(held)} of the servers in {client.title}: {', '.join(held)}."
        if self.how.asks:
            return confirm(f"{said} Take them out of {client.title}?", "remove")
        echo(f"{said} To remove them there, add --take-out.", err=True)
        return False

    def _carry_out(self, changes: Sequence[ClientChange], done: str) -> list[dict[str, Any]]:
        """Show *changes*, ask, write them, and return what was done."""
        diffs = [self._diff(change) if change.changes else [] for change in changes]
        if not self.how.as_json:
            for line in (line for diff in diffs for line in diff):
                echo(line)
            tell_what_is_shared(changes)
        pending = any(change.changes for change in changes) and not self.how.dry_run
        if pending and not (self.how.yes or confirm("Write this?", "write")):
            echo("Nothing was written.", err=True)
            raise typer.Exit(DENIED)
        return [self._write_change(change, done, diff) for change, diff in zip(changes, diffs, strict=True)]

    def _diff(self, change: ClientChange) -> list[str]:
        listed = server_list(change.client, change.file, self.around)
        return diff_lines(change, secret_values(change.client, listed, self.around))

    def _write_change(self, change: ClientChange, done: str, diff: list[str]) -> dict[str, Any]:
        backup, failed = None, len(self.problems)
        if change.changes and not self.how.dry_run:
            backup = self._attempt(partial(write_change, change, self.paths, self.notes))
        written = not self.how.dry_run and len(self.problems) == failed
        told = describe_change(change, done, backup, diff, written=written)
        if not self.how.as_json:
            echo(sentence(told, change))
        return told


# ---------------------------------------------------------------- the difference

LONGEST = 300
ASSIGNED = re.compile(r"""(?P<key>"[^"]*+"|(?<![\w.-])[\w.-]++)(?P<between>\s*+[:=]\s*+)"(?:[^"\\]|\\.)*+\"""")
HIDDEN = "********"


def secret_values(client: Client, listed: ServerList, around: Surroundings) -> set[str]:
    """Return the secrets that the servers in a client's list hold in plain text."""
    place = client.own_file(around)
    found = (read_server(client, name, given, place, around) for name, given in listed.servers.items())
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
    return SECRET_VALUE.sub(HIDDEN, ASSIGNED.sub(_hide_value, line))


def _hide_value(found: re.Match[str]) -> str:
    return f'{found["key"]}{found["between"]}"{HIDDEN}"' if SECRET_NAME.search(found["key"]) else found[0]

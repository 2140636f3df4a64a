"""Plans the changes of clients' files, shows them, asks, and writes them: for connect, disconnect and init."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import typer

from ot.cli.connecting.client_diff import diff_lines, secret_values
from ot.cli.connecting.client_screen import ClientPlan, cost_rows, sentence, tell_what_is_shared, told_of
from ot.cli.exit_codes import DENIED
from ot.cli.terminal import confirm, echo
from ot.config.clients.client_file import read_from_disk, server_list
from ot.config.clients.connection import (
    ClientChange,
    EntryWanted,
    own_name_in,
    plan_connect,
    plan_disconnect,
    write_change,
)
from ot.config.clients.connection_notes import ConnectionNotes
from ot.config.clients.held_servers import held_servers
from ot.config.clients.known_clients import CLIENTS, Client
from ot.config.clients.server_entry import Surroundings
from ot.config.clients.take_over import surroundings
from ot.config.paths import Paths
from ot.errors import ConfigError


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
class ConnectFlow:
    """What working on the files of clients needs, and what went wrong with some of them."""

    paths: Paths
    how: HowToWrite
    problems: list[str] = field(default_factory=list[str])

    @property
    def around(self) -> Surroundings:
        """The machine, its user and the project."""
        return surroundings(self.paths.cwd)

    @property
    def notes(self) -> ConnectionNotes:
        """How files were before."""
        return ConnectionNotes(self.paths)

    def connect(self, names: Sequence[str], wanted: EntryWanted, *, take_out: bool | None) -> list[dict[str, Any]]:
        """Add OneTool to the clients called *names*, and return what was done and what it costs."""
        work = [partial(self._planned, CLIENTS[name], wanted, take_out) for name in names]
        plans = [plan for each in work if (plan := self._attempt(each))]
        told = self._carry_out([plan.change for plan in plans], "connected")
        return [each | row for each, row in zip(told, cost_rows(plans, self.paths), strict=True)]

    def disconnect(self, names: Sequence[str], name: str) -> list[dict[str, Any]]:
        """Remove OneTool from the clients called *names*, and return what was done."""
        work = [partial(plan_disconnect, CLIENTS[each], self.around, self.notes, name) for each in names]
        return self._carry_out([change for each in work if (change := self._attempt(each))], "disconnected")

    def _attempt[T](self, work: Callable[[], T]) -> T | None:
        """Return what *work* returns; what is wrong with one client's file keeps no other from being done."""
        try:
            return work()
        except ConfigError as error:
            self.problems.append(str(error))
            echo(f"onetool: {error}", err=True)
            return None

    def _planned(self, client: Client, wanted: EntryWanted, take_out: bool | None) -> ClientPlan:
        listed = server_list(client, read_from_disk(client.own_file(self.around).file), self.around)
        held = held_servers(client, listed, self.around, self.paths)
        if take_out is None and held:
            take_out = self._wants_out(client, held)
        change = plan_connect(client, self.around, wanted, self.notes, held if take_out else ())
        own = own_name_in(client, listed)
        return ClientPlan(change, tuple(name for name in listed.servers if name != own), held, bool(own))

    def _wants_out(self, client: Client, held: Mapping[str, str]) -> bool:
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
        return [self._written(change, done, diff) for change, diff in zip(changes, diffs, strict=True)]

    def _diff(self, change: ClientChange) -> list[str]:
        listed = server_list(change.client, change.file, self.around)
        return diff_lines(change, secret_values(change.client, listed, self.around))

    def _written(self, change: ClientChange, done: str, diff: list[str]) -> dict[str, Any]:
        backup, failed = None, len(self.problems)
        if change.changes and not self.how.dry_run:
            backup = self._attempt(partial(write_change, change, self.paths, self.notes))
        written = not self.how.dry_run and len(self.problems) == failed
        told = told_of(change, done, backup, diff, written=written)
        if not self.how.as_json:
            echo(sentence(told, change))
        return told

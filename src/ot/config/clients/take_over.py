"""What would be taken over from other clients, as a plan that can be shown before anything is written."""

from __future__ import annotations

import keyword
import os
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from ot.config.clients.client_reading import FoundInFile, FoundRule, read_file
from ot.config.clients.known_clients import CLIENTS, Client
from ot.config.clients.server_entry import (
    ClientFile,
    FoundServer,
    Scope,
    Surroundings,
    fill_in,
    free_name,
    name_of_same,
    own_name,
    read_inside,
    started_alike,
    texts,
    why_taken,
)
from ot.config.clients.server_secrets import with_own_secrets
from ot.config.models import PolicyRule
from ot.config.project_rules import AS_WRITTEN, is_filled_in
from ot.config.setting_types import pack_name
from ot.files.private_file import read_regular

MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """The servers that were found, with those that cannot be taken; the policy's patterns; and what was read.

    ``denied`` are the patterns that the repository's own files deny: they go to the project's policy.
    """

    servers: tuple[FoundServer, ...]
    rules: tuple[tuple[PolicyRule, str], ...]
    denied: tuple[str, ...]
    files: tuple[Path, ...]
    problems: tuple[str, ...]

    @property
    def taken(self) -> tuple[FoundServer, ...]:
        """The servers that would be written."""
        return tuple(server for server in self.servers if not server.skipped)


def surroundings(cwd: Path) -> Surroundings:
    """Return those of this process."""
    return Surroundings(Path.home(), cwd, os.environ, sys.platform)


@dataclass(frozen=True, slots=True)
class Configured:
    """What a configuration has already: its servers, its secrets, and the patterns of its policy."""

    servers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    patterns: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ServerNames:
    """What servers are called: the names that programs use already, and those that the user chose."""

    packs: Mapping[str, str] = field(default_factory=dict[str, str])
    """What each name stands for."""
    chosen: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names that the user chose, by the client's."""


def plan_of(
    names: Iterable[str], around: Surroundings, here: Mapping[Scope, Configured], called: ServerNames | None = None
) -> Plan:
    """Plan what to take over from the clients *names* into the configurations that are *here*.

    Where the project's is not among them, all that is the user's own goes to the user's.
    """
    found: list[FoundInFile] = []
    files: list[Path] = []
    said: list[FoundRule] = []
    for client in (CLIENTS[name] for name in names):
        of_client: list[FoundInFile] = []
        for place in client.places(around):
            data, problem = _read(place, around)
            if data is not None:
                files.append(place.file)
                of_client.append(_try_read(client, data, place, around))
            elif problem:
                of_client.append(FoundInFile(problems=(problem,)))
        found += _switch_off(of_client)
        said += [rule for file in of_client for rule in file.rules]
    all_found = [_fit(_place(server, here)) for file in found for server in file.servers]
    # The user's own first: a repository's server of the same name must not stand in its place.
    in_order = sorted(all_found, key=lambda server: server.place.repository)
    servers = tuple(_Naming(here, called or ServerNames()).name_servers(in_order))
    servers = tuple(_with_own_secrets(servers, {scope: dict(known.secrets) for scope, known in here.items()}))
    own = [rule for rule in said if not rule.place.repository]
    brought = [rule for rule in said if rule.place.repository and "project" in here]
    known = [name for configured in here.values() for name in configured.servers]
    rules = tuple(_patterns(own, servers, known, here["user"]))
    denied = tuple(
        pattern
        for _, pattern in _patterns(brought, servers, known, here.get("project"))
        if ("deny", pattern) not in rules
    )
    return Plan(servers, rules, denied, tuple(files), tuple(problem for file in found for problem in file.problems))


def _switch_off(found: Sequence[FoundInFile]) -> Iterator[FoundInFile]:
    """Yield what a client's files say, with the servers off that any of them switches off.

    A repository's files switch off what came with the repository, and nothing of the user's.
    """
    off = {(own_name(name), file.repository) for file in found for name in file.off}
    for file in found:
        yield replace(file, servers=tuple(_unless_off(server, off) for server in file.servers))


def _unless_off(server: FoundServer, off: Collection[tuple[str, bool]]) -> FoundServer:
    is_off = (server.name, False) in off or (server.place.repository and (server.name, True) in off)
    if not is_off or not server.entry:
        return server
    notes = (*server.notes, "disabled there, so disabled here too")
    return replace(server, entry={**server.entry, "enabled": False}, notes=notes)


def _place(server: FoundServer, here: Collection[Scope]) -> FoundServer:
    if server.place.scope in here:
        return server
    if server.place.repository:
        return replace(server, skipped="it is the repository's, which does not go into your own configuration")
    return replace(server, place=replace(server.place, scope="user"))


def _fit(server: FoundServer) -> FoundServer:
    """Return *server*, or why a project cannot have it."""
    if server.skipped or server.place.scope == "user":
        return server
    filled = [key for key in AS_WRITTEN if any(map(is_filled_in, _texts_of(server.entry.get(key))))]
    why = f"its {' and '.join(filled)} would take a secret, which a project's server may only in env and headers"
    return replace(server, skipped=f"{why}: add it to your own configuration with onetool add") if filled else server


def _texts_of(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else texts(value)


def _read(place: ClientFile, around: Surroundings) -> tuple[bytes | None, str]:
    try:
        if place.repository:
            return read_inside(place.file, around.cwd, MAX_BYTES), ""
        return read_regular(place.file, MAX_BYTES, follow=True).data, ""
    except (FileNotFoundError, NotADirectoryError):
        linked = place.repository and os.path.lexists(place.file)
        return None, f"{place.file} is behind a link and was not read" if linked else ""
    except OSError as error:
        return None, f"{place.file} cannot be read: {error.strerror or error}"


def _try_read(client: Client, data: bytes, place: ClientFile, around: Surroundings) -> FoundInFile:
    try:
        return replace(read_file(client, data, place, around), repository=place.repository)
    except (ValueError, RecursionError) as error:
        return FoundInFile(problems=(f"{place.file} cannot be understood: {error}",))


class _Naming:
    """Gives every server a name of its own, which hides nothing that a program means by it already."""

    def __init__(self, here: Mapping[Scope, Configured], called: ServerNames) -> None:
        self._here = here
        self._chosen = called.chosen
        self._packs = called.packs
        self._servers = {
            pack_name(name): "another server" for configured in here.values() for name in configured.servers
        }

    def name_servers(self, found: Iterable[FoundServer]) -> Iterator[FoundServer]:
        """Yield every server once; one that is here already is skipped."""
        seen: list[FoundServer] = []
        for server in found:
            if server.skipped:
                yield server
            elif held := self._find_held(server):
                why = f"it is in your configuration already, as {held}"
                yield replace(server, held_as=held, skipped=why)
            elif same := next((other for other in seen if _same(other, server)), None):
                why = f"the same as {same.name} of {same.client}"
                yield replace(server, held_as=same.name, skipped=why)
            else:
                seen.append(self._rename(server))
                yield seen[-1]

    def _find_held(self, server: FoundServer) -> str:
        configured = self._here[server.place.scope]
        return name_of_same(server, configured.servers, configured.secrets)

    def _rename(self, server: FoundServer) -> FoundServer:
        wanted = server.name
        if chosen := self._chosen.get(server.original):
            # Whoever chooses a name may hide a pack by it, but not another server.
            name, why = self._number(chosen), ""
        else:
            why = why_taken(wanted, self._packs) or self._servers.get(wanted, "")
            name = self._number(free_name(wanted, self._packs), own_name(f"{wanted}_{server.client}"))
        self._servers[name] = "another server"
        if name == wanted:
            return server
        other = f"; choose another with --name {shlex.quote(server.original)}=NAME"
        note = f"called '{name}' here: " + ("as you chose" if chosen else f"'{wanted}' is {why} already{other}")
        return replace(server, name=name, notes=(*server.notes, note))

    def _number(self, *names: str) -> str:
        numbered = (f"{names[0]}_{number}" for number in count(2))
        return next(name for name in chain(names, numbered) if name not in self._servers)


def _same(one: FoundServer, other: FoundServer) -> bool:
    if one.original != other.original:
        return False
    if other.place.repository:  # it is started in the project, so more than the directory would differ
        return all(one.entry.get(key) == other.entry.get(key) for key in ("command", "args", "url"))
    return started_alike(one.entry, one.secrets, fill_in(other.entry, other.secrets))


def _with_own_secrets(servers: Iterable[FoundServer], kept: Mapping[Scope, dict[str, str]]) -> Iterator[FoundServer]:
    for server in servers:
        if server.skipped:
            yield server
            continue
        known = kept[server.place.scope]
        entry, secrets = with_own_secrets(server.name, server.entry, server.secrets, known)
        known.update(secrets)
        yield replace(server, secrets=secrets, entry=entry)


def _patterns(
    rules: Iterable[FoundRule], servers: Collection[FoundServer], known: Collection[str], here: Configured | None
) -> Iterator[tuple[PolicyRule, str]]:
    """Yield the new rules about servers that are here afterwards, each pattern once and the strictest first."""
    order: Sequence[PolicyRule] = ("deny", "ask", "allow")
    # What the user has said here already stays said.
    seen = set(here.patterns if here else ())
    for rule in sorted(rules, key=lambda found: order.index(found.rule)):
        for server in _find_meant(rule, servers, known):
            pattern = f"{pack_name(server)}.{_tool_name(rule.tool)}"
            if pattern not in seen:
                seen.add(pattern)
                yield rule.rule, pattern


def _find_meant(rule: FoundRule, servers: Collection[FoundServer], known: Collection[str]) -> list[str]:
    """Return the names here of the servers that *rule* is about."""
    name, client = own_name(rule.server), rule.place.client
    here = [server for server in servers if server.held_as or not server.skipped]
    of_client = [server for server in here if server.client == client and own_name(server.original) == name]
    if of_client:
        exact = [server for server in of_client if server.original == rule.server]
        return [server.held_as or server.name for server in exact or of_client]
    # Another client's server of the same name is another one: what is allowed there is not allowed here.
    others = () if rule.rule == "allow" else (server.name for server in here if not server.skipped)
    return [name] if name in {pack_name(other) for other in (*known, *others)} else []


def _tool_name(tool: str) -> str:
    """Return the name of a tool, or of a pattern of tools, in its pack."""
    name = re.sub(r"[^\w*]", "_", tool)
    return f"_{name}" if name[:1].isdigit() else f"{name}_" if keyword.iskeyword(name) else name

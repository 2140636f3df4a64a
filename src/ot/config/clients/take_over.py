"""What would be taken over from other clients, as a plan that can be shown before anything is written."""

from __future__ import annotations

import json
import keyword
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ot.config.clients.client_reading import FoundInFile, FoundRule, read_file
from ot.config.clients.known_clients import CLIENTS, Client
from ot.config.clients.server_entry import ClientFile, FoundServer, Scope, Surroundings, own_name, read_inside, texts
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


def plan_of(
    names: Iterable[str], around: Surroundings, known: Collection[str], secrets: Mapping[Scope, Mapping[str, str]]
) -> Plan:
    """Return what the clients called *names* have to give to a configuration that has the servers *known*.

    *secrets* are those kept already, by where they are kept; where a project's are not named, all goes to the user's.
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
                of_client.append(_understood(client, data, place, around))
            elif problem:
                of_client.append(FoundInFile(problems=(problem,)))
        found += _switched_off(of_client)
        said += [rule for file in of_client for rule in file.rules]
    all_found = [_fit(_placed(server, secrets)) for file in found for server in file.servers]
    # The user's own first: a repository's server of the same name must not stand in its place.
    servers = tuple(_without_clashes(sorted(all_found, key=lambda server: server.place.repository), known))
    servers = tuple(_with_own_secrets(servers, {scope: dict(kept) for scope, kept in secrets.items()}))
    own = [rule for rule in said if not rule.place.repository]
    brought = [rule for rule in said if rule.place.repository and "project" in secrets]
    rules = tuple(_patterns(own, servers, known))
    denied = tuple(pattern for _, pattern in _patterns(brought, servers, known) if ("deny", pattern) not in rules)
    return Plan(servers, rules, denied, tuple(files), tuple(problem for file in found for problem in file.problems))


def _switched_off(found: Sequence[FoundInFile]) -> Iterator[FoundInFile]:
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


def _placed(server: FoundServer, kept: Collection[Scope]) -> FoundServer:
    if server.place.scope in kept:
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


def _understood(client: Client, data: bytes, place: ClientFile, around: Surroundings) -> FoundInFile:
    try:
        return replace(read_file(client, data, place, around), repository=place.repository)
    except (ValueError, RecursionError) as error:
        return FoundInFile(problems=(f"{place.file} cannot be understood: {error}",))


def _without_clashes(found: Sequence[FoundServer], known: Collection[str]) -> Iterator[FoundServer]:
    """Yield every server once: the same one again is skipped, another one of the same name gets another name."""
    packs = {pack_name(name) for name in known}
    seen: dict[str, FoundServer] = {}
    for server in found:
        if server.skipped:
            yield server
        elif same := next((other for other in seen.values() if _same(other, server)), None):
            yield replace(server, skipped=f"the same as {same.name} of {same.client}")
        elif server.name in known:
            yield replace(server, skipped="a server of this name is in your configuration already")
        else:
            name = server.name if pack_name(server.name) not in packs else f"{server.name}-{server.client}"
            if pack_name(name) in packs:
                yield replace(server, skipped="its name is taken twice already")
                continue
            notes = server.notes if name == server.name else (*server.notes, f"called '{name}' here: the name is taken")
            packs.add(pack_name(name))
            seen[name] = replace(server, name=name, notes=notes)
            yield seen[name]


def _same(one: FoundServer, other: FoundServer) -> bool:
    keys = ("command", "args", "url")
    mine, its = ([json.dumps(server.entry.get(key)) for key in keys] for server in (one, other))
    return mine == its and one.name == other.name


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
    rules: Iterable[FoundRule], servers: Collection[FoundServer], known: Collection[str]
) -> Iterator[tuple[PolicyRule, str]]:
    """Yield the rules about servers that are here afterwards, each pattern once and the strictest first."""
    order: Sequence[PolicyRule] = ("deny", "ask", "allow")
    seen: set[str] = set()
    for rule in sorted(rules, key=lambda found: order.index(found.rule)):
        server = _meant(rule, servers, known)
        pattern = f"{pack_name(server)}.{_tool_name(rule.tool)}"
        if server and pattern not in seen:
            seen.add(pattern)
            yield rule.rule, pattern


def _meant(rule: FoundRule, servers: Collection[FoundServer], known: Collection[str]) -> str:
    """Return what the server that *rule* is about is called here, or nothing when it is not here."""
    name, client = own_name(rule.server), rule.place.client
    taken = [server for server in servers if not server.skipped]
    for server in (server for server in servers if server.client == client and server.entry):
        is_here = not server.skipped or any(_same(server, other) for other in taken)
        if is_here and server.name in (name, f"{name}-{client}"):
            return server.name
    # Another client's server of the same name is another one: what is allowed there is not allowed here.
    others = [] if rule.rule == "allow" else [server.name for server in taken]
    return name if pack_name(name) in {pack_name(other) for other in (*known, *others)} else ""


def _tool_name(tool: str) -> str:
    """Return what a tool, or a pattern of tools, is called in its pack."""
    name = re.sub(r"[^\w*]", "_", tool)
    return f"_{name}" if name[:1].isdigit() else f"{name}_" if keyword.iskeyword(name) else name

"""Adds OneTool to a client's own file, and removes it again: planned, shown by the caller, then written."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from ot.config.clients.client_file import FileOnDisk, ServerList, private_list, read_from_disk, server_list
from ot.config.clients.client_reading import value_at
from ot.config.clients.connection_notes import ConnectionNotes, Note
from ot.config.clients.known_clients import CLIENTS, Client
from ot.config.clients.server_entry import Surroundings, is_onetool, table
from ot.config.edit_config import keep_backup
from ot.config.paths import Paths
from ot.errors import ConfigError
from ot.files.private_file import hold_lock

NAME = "onetool"


@dataclass(frozen=True, slots=True)
class ClientChange:
    """What a client's file holds and what it would hold; ``new`` is nothing where the file would be removed."""

    client: Client
    file: FileOnDisk
    new: bytes | None = field(repr=False)
    name: str = NAME
    """What OneTool is called in the file."""
    entry: Mapping[str, Any] = field(default_factory=dict[str, Any])
    taken_out: tuple[str, ...] = ()
    put_back: tuple[str, ...] = ()
    note: Note | None = None
    """How this is undone; nothing where it is undone already."""

    @property
    def changes(self) -> bool:
        """Whether anything would be written."""
        return self.new != self.file.data


@dataclass(frozen=True, slots=True)
class EntryWanted:
    """What OneTool's entry should be: its command, variables for it, and its name if it is not the usual one."""

    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    name: str = ""


def is_installed(client: Client, around: Surroundings) -> bool:
    """Return whether the client is on this machine: its file, its own directory or its command is there."""
    file = client.own_file(around).file
    own_directory = file.parent != around.home and file.parent.is_dir()
    has_command = bool(client.program) and shutil.which(client.program, path=around.environ.get("PATH"))
    return file.exists() or own_directory or bool(has_command)


def installed_clients(around: Surroundings) -> list[str]:
    """Return the names of the clients that are on this machine."""
    return [name for name, client in CLIENTS.items() if is_installed(client, around)]


# ---------------------------------------------------------------- planning


def plan_connect(
    client: Client,
    around: Surroundings,
    asked: EntryWanted,
    notes: ConnectionNotes,
    taken_out: Iterable[str] = (),
    private: Iterable[str] = (),
) -> ClientChange:
    """Return the change that adds OneTool to the own file of *client*, and removes the servers *taken_out* from it.

    Of the servers that it lists for the working directory alone, those called *private* are removed.

    Raises:
        ConfigError: The file cannot be read, is malformed, or has another server of the same name.
    """
    file = read_from_disk(client.own_file(around).file)
    listed = server_list(client, file, around)
    name = asked.name or own_name_in(client, listed) or NAME
    entry = client.own_entry(asked.command, asked.env)
    is_new = name not in listed.servers
    changed = listed.put(name, value=entry) if is_new else _update_entry(client, listed, name, entry)
    gone = tuple(server for server in taken_out if server in listed.servers and server != name)
    for server in gone:
        changed = changed.remove(server)
    private = tuple(private)
    if private and (own := private_list(client, changed, around)):
        for server in private:
            own = own.remove(server)
        changed = own.below()
    changed = _allow(client, changed, name, allowed=True)
    new = changed.encoded
    made = Note(
        name,
        existed=file.data is not None,
        made_list=not listed.has_list,
        taken_out=dict.fromkeys(gone, ""),
        private={str(around.cwd): dict.fromkeys(private, "")} if private else {},
    )
    note = notes.after_change(file, new, made, is_new=is_new)
    return ClientChange(client, file, new, name, entry, (*gone, *private), note=note)


def plan_disconnect(client: Client, around: Surroundings, notes: ConnectionNotes, name: str = "") -> ClientChange:
    """Return the change that removes OneTool: the old bytes where nobody has changed the file, else the one entry.

    Servers that connecting removed are put back.

    Raises:
        ConfigError: The file cannot be read, or is malformed.
    """
    file = read_from_disk(client.own_file(around).file)
    note = notes.of(file.path)
    if note and notes.is_as_left(note, file) and notes.can_restore(note):
        return ClientChange(client, file, notes.before(note), note.name)
    listed = server_list(client, file, around)
    found = own_name_in(client, listed, name or (note.name if note else NAME))
    is_undone = not found and not (note and (note.taken_out or note.private))
    if is_undone or (name and found != name):
        return ClientChange(client, file, file.data)
    left = _allow(client, listed.remove(found), found, allowed=False) if found else listed
    left, back = _with_entries(client, left, note.taken_out if note else {}, around)
    left = left.without_list() if note and note.made_list and not left.servers else left
    private: Mapping[str, Mapping[str, str]] = note.private if note else {}
    for directory, copies in private.items():
        own, more = _with_entries(client, left.below(client.projects, directory), copies, around)
        left, back = own.below(), (*back, *more)
    return ClientChange(client, file, left.encoded, found, put_back=back)


def _allow(client: Client, listed: ServerList, name: str, *, allowed: bool) -> ServerList:
    """Return the file with *name* among the servers that the client may use, or not, where it says which those are."""
    known = value_at(listed.text.data, client.allowed) if client.allowed else None
    if not isinstance(known, list) or (name in known) == allowed:
        return listed
    others = [each for each in cast("list[Any]", known) if each != name]
    new = [*others, name] if allowed else others
    return replace(listed, text=listed.text.put(client.allowed.split("."), new))


def _with_entries(
    client: Client, left: ServerList, copies: Mapping[str, str], around: Surroundings
) -> tuple[ServerList, tuple[str, ...]]:
    """Return a list with the servers that were taken out of it where they were, and which those are.

    A copy that is gone, or does not have its server, gives none back.
    """
    back: list[str] = []
    for name in reversed(list(copies)):
        was = server_list(client, read_from_disk(Path(copies[name])), around).below(*left.above).servers
        if name not in was or name in left.servers:
            continue
        behind = list(was)[list(was).index(name) + 1 :]
        left = left.put(name, value=was[name], before=next((one for one in behind if one in left.servers), ""))
        back.insert(0, name)
    return left, tuple(back)


def own_name_in(client: Client, listed: ServerList, likely: str = NAME) -> str:
    """Return OneTool's name in a client's list, preferring *likely*; nothing if it is not in the list."""
    own = [name for name, entry in listed.servers.items() if is_onetool(client.adapted(table(entry)))]
    return likely if likely in own else own[0] if own else ""


def _update_entry(client: Client, listed: ServerList, name: str, entry: Mapping[str, Any]) -> ServerList:
    """Return the list with our entry as it should be: what else its user wrote in it stays."""
    old = table(listed.servers[name])
    if not is_onetool(client.adapted(old)):
        hint = "give OneTool another name with --name; nothing was changed"
        raise ConfigError(f"there is another server called '{name}'", file=listed.path, hint=hint)
    wanted = {key: _merge_values(old.get(key), value) for key, value in entry.items()}
    differing = {key: value for key, value in wanted.items() if old.get(key) != value}
    try:
        changed = listed
        for key, value in differing.items():
            changed = changed.put(name, key, value=value)
        return changed
    except ConfigError:
        return listed.put(name, value={**old, **differing})


def _merge_values(old: Any, new: Any) -> Any:
    """Return *new*, with more variables and with more patience where the old entry has them; a yes or no stays."""
    if isinstance(new, dict):
        return {**table(old), **table(new)}
    if isinstance(new, bool) and isinstance(old, bool):
        return old
    return max(old, new) if isinstance(new, int) and isinstance(old, int | float) else new


# ---------------------------------------------------------------- writing


def write_change(change: ClientChange, paths: Paths, notes: ConnectionNotes) -> Path | None:
    """Write *change*, and return where the file is kept as it was before; nothing where there was no file.

    Raises:
        ConfigError: It cannot be written, or somebody else has changed the file meanwhile.
    """
    old, suffix = change.file.data, change.file.path.suffix
    try:
        with hold_lock(paths.global_dir / "edit"):
            backup = None if old is None else keep_backup(paths.global_dir, change.client.name, suffix, old.decode())
            change.file.write(change.new)
            notes.keep(change.file.path, change.note, backup)
    except OSError as error:
        raise ConfigError(f"no copy can be kept: {error.strerror or error}", file=paths.global_dir) from None
    return backup

"""DefinitionPins: what a proxied server offered when it was first used, and what is different now."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ot.errors import DefinitionChanged
from ot.files.private_file import hold_lock
from ot.registry.freshness import Stamp, stamp_of
from ot.registry.proxy_target import PROXY, ProxyTarget, ServerIdentity
from ot.registry.tool import Tool
from ot.servers.catalogue_files import read_json, server_file, write_json
from ot.servers.definitions import ServerDefinitions, pinned_part, with_strictest_hints, words_of_change

logger = logging.getLogger(__name__)

type Tools = Mapping[str, Mapping[str, Any]]
"""The approved parts of definitions, by the tool's own name."""

MAX_REPORTED = 20
MOVED = "the server's address changed"
DAMAGED = "the record of what was approved is damaged"


@dataclass(frozen=True)
class Change:
    """One tool that is not as it was approved, or, without a tool, the whole server."""

    server: str
    tool: str
    what: tuple[str, ...]
    old: Mapping[str, Any] | None = field(default=None, repr=False)
    new: Mapping[str, Any] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{self.server}{'.' * bool(self.tool)}{self.tool}: {', '.join(self.what)}"


def describe_changes(changes: Sequence[Change]) -> dict[str, str]:
    """Return what changed, by tool, for a report; ``*`` is the whole server."""
    shown = {change.tool or "*": ", ".join(change.what) for change in changes[:MAX_REPORTED]}
    more = len(changes) - MAX_REPORTED
    return shown | ({"...": f"and {more} more"} if more > 0 else {})


@dataclass(frozen=True)
class PinBook:
    """What is approved under one server's name, by what was written of it, and what was seen last that is not."""

    server: str
    approved: Mapping[str, Tools] = field(default_factory=dict[str, Tools])
    pending_written: str = ""
    pending: Tools = field(default_factory=dict[str, Mapping[str, Any]])
    packs: tuple[str, ...] = ()
    owner: str = ""
    damaged: bool = False
    by_directory: bool = False
    """Whether an older version wrote it, which took one server in two directories for two."""

    @property
    def is_new(self) -> bool:
        """True when nothing is known of the server: whatever it offers is then approved."""
        return not (self.approved or self.pending_written or self.damaged)

    def changes(self, written: str, tools: Tools) -> list[Change]:
        """Return how *tools* of the server so *written* differ from what is approved; lost tools are no danger."""
        if self.is_new:
            return []
        known = self.approved.get(written)
        found = [Change(self.server, "", (MOVED if self.approved else DAMAGED,))] if known is None else []
        base = self.base(written)
        for name, new in tools.items():
            old = base.get(name)
            if old is None and self.approved:
                found.append(Change(self.server, name, ("new tool",), None, new))
            elif old is not None and old != new:
                found.append(Change(self.server, name, words_of_change(old, new), old, new))
        return found

    def base(self, written: str) -> Tools:
        """Return what is approved of the server so *written*; of one that moved, what was approved before."""
        known = self.approved.get(written)
        return known if known is not None else list(self.approved.values())[-1] if self.approved else {}

    def pending_changes(self) -> list[Change]:
        """Return what waits to be approved."""
        return self.changes(self.pending_written, self.pending) if self.pending_written else []

    def approving(self, tools: Iterable[str] | None) -> PinBook:
        """Return the book with what was seen last approved: of all tools, or of some of an address known already."""
        known = self.approved.get(self.pending_written, {})
        chosen = self.pending if tools is None else {name: self.pending[name] for name in tools}
        others = {key: value for key, value in self.approved.items() if key != self.pending_written}
        book = replace(self, approved={**others, self.pending_written: {**known, **chosen}}, damaged=False)
        left = book.changes(self.pending_written, self.pending)
        return book if left else replace(book, pending_written="", pending={})

    def take_over(self, identity: ServerIdentity) -> PinBook:
        """Return the book with what an older version approved, under the server's identity.

        What the user approved last counts, in whichever directory: a change of the definitions still shows.
        """
        if not (self.by_directory and self.approved):
            return replace(self, by_directory=False)
        known = self.approved.get(identity.former, list(self.approved.values())[-1])
        return PinBook(self.server, {identity.written: known}, packs=self.packs, owner=self.owner)


class DefinitionPins:
    """Compares what servers offer with what was approved: at the first use all of it, later what the user approves."""

    def __init__(self, directory: Path) -> None:
        """Keep one file a server in *directory*, and one for each project that has a server of that name."""
        self._directory = directory
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[ServerIdentity, Tools]] = {}
        self._held: dict[str, tuple[Stamp, list[Change], Tools]] = {}

    def observe(self, identity: ServerIdentity, pack: str, definitions: ServerDefinitions) -> list[Change]:
        """Take note of what a server offers now, and return what of it is not approved."""
        server = identity.server
        tools = {str(part["name"]): pinned_part(part) for part in definitions.tools if "name" in part}
        with self._lock:
            identity = self._find_approved_identity(identity)
            is_new = self._seen.get(server) != (identity, tools)
            if is_new:
                self._seen[server] = (identity, tools)
                self._held.pop(server, None)
                try:
                    self._record(identity, pack, tools)
                except (OSError, ValueError) as error:
                    logger.warning("what %s offers could not be remembered: %s", server, error)
        changes = self.list_changes(server)
        for change in changes if is_new else ():
            logger.warning("%s; look at it with: onetool approve %s", change, server)
        return changes

    def list_changes(self, server: str) -> list[Change]:
        """Return what is not approved of what the server offers now; another process may approve it meanwhile."""
        with self._lock:
            return self._compare(server)[0] if server in self._seen else []

    def _compare(self, server: str) -> tuple[list[Change], Tools]:
        """Return what is not approved of what was seen last, and what is approved."""
        identity, tools = self._seen[server]
        stamp = stamp_of(self._file(server, identity.owner))
        kept = self._held.get(server)
        if kept is None or kept[0] != stamp:
            book = self._book(identity)
            kept = self._held[server] = (stamp, book.changes(identity.written, tools), book.base(identity.written))
        return kept[1:]

    def all_changed(self) -> dict[str, list[Change]]:
        """Return what is not approved, by server."""
        return {server: changes for server in sorted(self._seen) if (changes := self.list_changes(server))}

    def require_approved(self, tool: Tool) -> None:
        """Return when *tool* is of no proxied server, or is as it was approved.

        Raises:
            DefinitionChanged: It is not; the text says how to look at it.
        """
        if not tool.source.startswith(PROXY):
            return
        server = tool.source.removeprefix(PROXY)
        for change in self.list_changes(server):
            if change.tool in ("", ProxyTarget.of(tool.target).tool):
                raise DefinitionChanged(tool.full_name, server, change.what)

    def as_approved(self, tool: Tool) -> Tool:
        """Return *tool* with the strictest of the hints that were approved, that its server gives now, and its own."""
        server = tool.source.removeprefix(PROXY)
        if not tool.source.startswith(PROXY) or server not in self._seen:
            return tool
        own = ProxyTarget.of(tool.target).tool
        if not own:  # one of the protocol's own methods, whose hints are ours
            return tool
        with self._lock:
            pinned = self._compare(server)[1]
            if not pinned and not self._held[server][1]:
                return tool  # nothing could be recorded, and nothing counts as changed
            approved = pinned.get(own, {})
            # A tool that is gone from the list keeps its approved hints: removing it must not loosen them.
            now = self._seen[server][1].get(own, approved)
        return with_strictest_hints(tool, approved, now)

    # ---------------------------------------------------------------- what the user approves

    def books(self) -> list[PinBook]:
        """Return what is known of every server, from disk."""
        keys = (_key_of(path) for path in sorted(self._directory.glob("*.pins.json")))
        return [self._read(server, owner) for server, owner in keys if server]

    def approve(self, shown: PinBook, tools: Iterable[str] | None = None) -> None:
        """Approve what *shown* tells, which the user has seen, and not what is there by now."""
        with hold_lock(self._file(shown.server, shown.owner)):
            approved = shown.approving(tools)
            now = self._read(shown.server, shown.owner)
            if (now.pending_written, now.pending) != (shown.pending_written, shown.pending):
                approved = replace(approved, pending_written=now.pending_written, pending=now.pending)
            self._write(approved)

    def _find_approved_identity(self, identity: ServerIdentity) -> ServerIdentity:
        """Return under which identity the server is approved: the operator's, once that one has used it.

        A first use approves for whoever makes it, and for nobody else.
        """
        if not identity.common or self._read(identity.server, "").is_new:
            return identity
        return ServerIdentity(identity.server, identity.common)

    def _record(self, identity: ServerIdentity, pack: str, tools: Tools) -> None:
        with hold_lock(self._file(identity.server, identity.owner)):
            before = self._read(identity.server, identity.owner)
            book = self._book(identity)
            book = replace(book, packs=tuple(dict.fromkeys([*book.packs, pack])))
            if book.is_new:
                book = replace(book, approved={identity.written: tools})
            elif book.changes(identity.written, tools):
                book = replace(book, pending_written=identity.written, pending=tools)
            elif book.pending_written == identity.written:
                book = replace(book, pending_written="", pending={})
            if book != before:
                self._write(book)

    # ---------------------------------------------------------------- files

    def _book(self, identity: ServerIdentity) -> PinBook:
        """Return what is approved of the server, taken over from an older version if need be."""
        book = self._read(identity.server, identity.owner)
        if book.is_new and identity.owner:
            # Older versions kept a project's server beside the user's of the same name.
            shared = self._read(identity.server, "")
            if shared.by_directory and identity.former in shared.approved:
                book = replace(shared, owner=identity.owner)
        return book.take_over(identity)

    def _file(self, server: str, owner: str) -> Path:
        return server_file(self._directory, server, "pins", *((owner,) if owner else ()))

    def _read(self, server: str, owner: str) -> PinBook:
        file = self._file(server, owner)
        try:
            found = read_json(file)
            return _book(server, owner, found) if found is not None else PinBook(server, owner=owner)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # Taken for a first use, a damaged file would approve whatever is offered now.
            logger.warning("%s is damaged, so nothing of %s counts as approved: %s", file, server, error)
            return PinBook(server, owner=owner, damaged=True)

    def _write(self, book: PinBook) -> None:
        write_json(self._file(book.server, book.owner), _plain(book))


def _plain(book: PinBook) -> dict[str, Any]:
    pending = {"written": book.pending_written, "tools": dict(book.pending)} if book.pending_written else None
    version = 1 if book.by_directory else 2
    plain: dict[str, Any] = {"version": version, "server": book.server, "owner": book.owner, "packs": list(book.packs)}
    approved = {written: dict(tools) for written, tools in book.approved.items()}
    return plain | {"approved": approved, "pending": pending}


def _book(server: str, owner: str, plain: Mapping[str, Any]) -> PinBook:
    pending: Mapping[str, Any] = plain["pending"] or {"written": "", "tools": {}}
    approved: Mapping[str, Tools] = {str(key): _tools(value) for key, value in plain["approved"].items()}
    return PinBook(
        server,
        approved,
        str(pending.get("written", pending.get("endpoint"))),
        _tools(pending["tools"]),
        tuple(str(pack) for pack in plain["packs"]),
        owner,
        by_directory=plain.get("version") == 1,
    )


def _tools(value: Mapping[str, Any]) -> Tools:
    return {str(name): dict(part) for name, part in value.items()}


def _key_of(path: Path) -> tuple[str, str]:
    try:
        found = read_json(path) or {}
    except ValueError:
        return "", ""
    return str(found.get("server") or ""), str(found.get("owner") or "")

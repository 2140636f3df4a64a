"""DefinitionPins: what a proxied server offered when it was first used, and what is different now."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ot.config.safe_file import locked
from ot.errors import DefinitionChanged
from ot.registry.definition_diff import pinned_part, with_strictest_hints, words_of_change
from ot.registry.freshness import Stamp, stamp_of
from ot.registry.proxy_target import PROXY, ProxyTarget
from ot.registry.server_definitions import ServerDefinitions
from ot.registry.server_files import read_json, server_file, write_json
from ot.registry.tool import Tool

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


def changed_words(changes: Sequence[Change]) -> dict[str, str]:
    """Return what changed, by tool, for a report; ``*`` is the whole server."""
    shown = {change.tool or "*": ", ".join(change.what) for change in changes[:MAX_REPORTED]}
    more = len(changes) - MAX_REPORTED
    return shown | ({"...": f"and {more} more"} if more > 0 else {})


@dataclass(frozen=True)
class PinBook:
    """What is approved of one server, by address, and what was seen last that is not."""

    server: str
    approved: Mapping[str, Tools] = field(default_factory=dict[str, Tools])
    pending_endpoint: str = ""
    pending: Tools = field(default_factory=dict[str, Mapping[str, Any]])
    packs: tuple[str, ...] = ()
    damaged: bool = False

    @property
    def is_new(self) -> bool:
        """True when nothing is known of the server: whatever it offers is then approved."""
        return not (self.approved or self.pending_endpoint or self.damaged)

    def changes(self, endpoint: str, tools: Tools) -> list[Change]:
        """Return how *tools* at *endpoint* differ from what is approved; tools that are gone are no danger."""
        if self.is_new:
            return []
        known = self.approved.get(endpoint)
        found = [Change(self.server, "", (MOVED if self.approved else DAMAGED,))] if known is None else []
        base = self.base(endpoint)
        for name, new in tools.items():
            old = base.get(name)
            if old is None and self.approved:
                found.append(Change(self.server, name, ("new tool",), None, new))
            elif old is not None and old != new:
                found.append(Change(self.server, name, words_of_change(old, new), old, new))
        return found

    def base(self, endpoint: str) -> Tools:
        """Return what is approved at *endpoint*; of a server that moved, what was approved before."""
        known = self.approved.get(endpoint)
        return known if known is not None else list(self.approved.values())[-1] if self.approved else {}

    def pending_changes(self) -> list[Change]:
        """Return what waits to be approved."""
        return self.changes(self.pending_endpoint, self.pending) if self.pending_endpoint else []

    def approving(self, tools: Iterable[str] | None) -> PinBook:
        """Return the book with what was seen last approved: of all tools, or of some of an address known already."""
        known = self.approved.get(self.pending_endpoint, {})
        chosen = self.pending if tools is None else {name: self.pending[name] for name in tools}
        others = {key: value for key, value in self.approved.items() if key != self.pending_endpoint}
        book = replace(self, approved={**others, self.pending_endpoint: {**known, **chosen}}, damaged=False)
        left = book.changes(self.pending_endpoint, self.pending)
        return book if left else replace(book, pending_endpoint="", pending={})


class DefinitionPins:
    """Compares what servers offer with what was approved: at the first use all of it, later what the user approves."""

    def __init__(self, directory: Path) -> None:
        """Keep one file a server in *directory*."""
        self._directory = directory
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[str, Tools]] = {}
        self._held: dict[str, tuple[Stamp, list[Change], Tools]] = {}

    def observe(self, server: str, pack: str, endpoint: str, definitions: ServerDefinitions) -> list[Change]:
        """Take note of what a server offers now, and return what of it is not approved."""
        tools = {str(part["name"]): pinned_part(part) for part in definitions.tools if "name" in part}
        with self._lock:
            before = self._seen.get(server)
            if before != (endpoint, tools):
                self._seen[server] = (endpoint, tools)
                self._held.pop(server, None)
                self._try_to_record(server, pack, endpoint, tools)
        changes = self.changed(server)
        if before != (endpoint, tools):
            for change in changes:
                logger.warning("%s; look at it with: onetool approve %s", change, server)
        return changes

    def changed(self, server: str) -> list[Change]:
        """Return what is not approved of what the server offers now; another process may approve it meanwhile."""
        with self._lock:
            return self._compared(server)[0] if server in self._seen else []

    def _compared(self, server: str) -> tuple[list[Change], Tools]:
        """Return what is not approved of what was seen last, and what is approved."""
        stamp = stamp_of(self._file(server))
        kept = self._held.get(server)
        if kept is None or kept[0] != stamp:
            endpoint, tools = self._seen[server]
            book = self._read(server)
            kept = self._held[server] = (stamp, book.changes(endpoint, tools), book.base(endpoint))
        return kept[1:]

    def all_changed(self) -> dict[str, list[Change]]:
        """Return what is not approved, by server."""
        return {server: changes for server in sorted(self._seen) if (changes := self.changed(server))}

    def require_approved(self, tool: Tool) -> None:
        """Return when *tool* is of no proxied server, or is as it was approved.

        Raises:
            DefinitionChanged: It is not; the text says how to look at it.
        """
        if not tool.source.startswith(PROXY):
            return
        server = tool.source.removeprefix(PROXY)
        for change in self.changed(server):
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
            approved = self._compared(server)[1].get(own, {})
            # What is gone from the list cannot say anything less strict either.
            now = self._seen[server][1].get(own, approved)
        return with_strictest_hints(tool, approved, now)

    # ---------------------------------------------------------------- what the user approves

    def books(self) -> list[PinBook]:
        """Return what is known of every server, from disk."""
        names = (_server_of(path) for path in sorted(self._directory.glob("*.pins.json")))
        return [self._read(name) for name in names if name]

    def approve(self, shown: PinBook, tools: Iterable[str] | None = None) -> None:
        """Approve what *shown* tells, which the user has seen, and not what is there by now."""
        with locked(self._file(shown.server)):
            approved = shown.approving(tools)
            now = self._read(shown.server)
            if (now.pending_endpoint, now.pending) != (shown.pending_endpoint, shown.pending):
                approved = replace(approved, pending_endpoint=now.pending_endpoint, pending=now.pending)
            self._write(approved)

    def _try_to_record(self, server: str, pack: str, endpoint: str, tools: Tools) -> None:
        try:
            self._record(server, pack, endpoint, tools)
        except (OSError, ValueError) as error:
            logger.warning("what %s offers could not be remembered: %s", server, error)

    def _record(self, server: str, pack: str, endpoint: str, tools: Tools) -> None:
        with locked(self._file(server)):
            book = self._read(server)
            packs = tuple(dict.fromkeys([*book.packs, pack]))
            if book.is_new:
                self._write(PinBook(server, {endpoint: tools}, packs=packs))
            elif book.changes(endpoint, tools):
                self._write(replace(book, pending_endpoint=endpoint, pending=tools, packs=packs))
            elif book.pending_endpoint == endpoint:
                self._write(replace(book, pending_endpoint="", pending={}))

    def _file(self, server: str) -> Path:
        return server_file(self._directory, server, "pins")

    def _read(self, server: str) -> PinBook:
        try:
            found = read_json(self._file(server))
            return _book(server, found) if found is not None else PinBook(server)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # Taken for a first use, a damaged file would approve whatever is offered now.
            logger.warning("%s is damaged, so nothing of %s counts as approved: %s", self._file(server), server, error)
            return PinBook(server, damaged=True)

    def _write(self, book: PinBook) -> None:
        write_json(self._file(book.server), _plain(book))


def _plain(book: PinBook) -> dict[str, Any]:
    pending = {"endpoint": book.pending_endpoint, "tools": dict(book.pending)} if book.pending_endpoint else None
    plain: dict[str, Any] = {"version": 1, "server": book.server, "packs": list(book.packs)}
    approved = {endpoint: dict(tools) for endpoint, tools in book.approved.items()}
    return plain | {"approved": approved, "pending": pending}


def _book(server: str, plain: Mapping[str, Any]) -> PinBook:
    pending: Mapping[str, Any] = plain["pending"] or {"endpoint": "", "tools": {}}
    approved: Mapping[str, Tools] = {str(key): _tools(value) for key, value in plain["approved"].items()}
    packs = tuple(str(pack) for pack in plain["packs"])
    return PinBook(server, approved, str(pending["endpoint"]), _tools(pending["tools"]), packs)


def _tools(value: Mapping[str, Any]) -> Tools:
    return {str(name): dict(part) for name, part in value.items()}


def _server_of(path: Path) -> str:
    try:
        return str((read_json(path) or {}).get("server") or "")
    except ValueError:
        return ""

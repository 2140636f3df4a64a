"""DefinitionPins: what a proxied server offered when it was first used, and what is different now."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ot.errors import DefinitionChanged
from ot.proxied.definitions import ServerDefinitions, pinned_part, with_strictest_hints
from ot.proxied.pin_books import Change, FilePins, PinBook, PinStore, Tools
from ot.registry.proxy_target import PROXY, ProxyTarget, ServerIdentity
from ot.registry.tool import Tool

logger = logging.getLogger(__name__)

MOST_LOOKS = 5
"""Of the operator's book and of one's own, each may have to be read, and then made."""


class DefinitionPins:
    """Compares what servers offer with what was approved: at the first use all of it, later what the user approves."""

    def __init__(self, kept: Path | PinStore) -> None:
        """Keep what is approved in files of a directory, or wherever *kept* has it."""
        self._store = FilePins(kept) if isinstance(kept, Path) else kept
        self._lock = threading.Lock()
        self._given: dict[str, tuple[ServerIdentity, str, Tools]] = {}
        self._seen: dict[str, tuple[ServerIdentity, Tools]] = {}
        self._unsure: set[str] = set()
        """Servers of which it is not known yet what is approved: none of their tools is called."""
        self._held: dict[str, tuple[object, list[Change], Tools]] = {}

    def observe(self, identity: ServerIdentity, pack: str, definitions: ServerDefinitions) -> list[Change]:
        """Take note of what a server offers now, and return what of it is not approved."""
        server = identity.server
        tools = {str(part["name"]): pinned_part(part) for part in definitions.tools if "name" in part}
        with self._lock:
            self._given[server] = (identity, pack, tools)
            is_new = self._note(server)
        changes = self.list_changes(server)
        if is_new and server not in self._unsure:
            _warn(changes)
        return changes

    def _note(self, server: str) -> bool:
        """Record what was given, under the identity that counts, and return whether it was not seen before."""
        given, pack, tools = self._given[server]
        identity = self._find_approved_identity(given)
        is_new = self._seen.get(server) != (identity, tools) or server in self._unsure
        self._unsure.discard(server)
        if is_new:
            self._seen[server] = (identity, tools)
            self._held.pop(server, None)
            # Whose approval counts is not known before the operator's book is.
            if not (given.common and self._store.read(server, "").unread):
                try:
                    self._record(identity, pack, tools)
                except (OSError, ValueError) as error:
                    logger.warning("what %s offers could not be remembered: %s", server, error)
            if self._book(identity).unread:
                self._unsure.add(server)
        return is_new

    @property
    def is_unsure(self) -> bool:
        """Whether it is not known yet what is approved of something that was seen."""
        return bool(self._unsure)

    async def settled(self) -> None:
        """Return once it is known what is approved of all that was seen, or cannot be known now."""
        for _ in range(MOST_LOOKS if self._unsure else 0):
            await self._store.settled()
            with self._lock:
                known = [server for server in tuple(self._unsure) if self._note(server) and server not in self._unsure]
            for server in known:
                _warn(self.list_changes(server))
            if not self._unsure:
                return

    def close(self) -> None:
        """Let go of what is known for the owner of the servers alone."""
        for server, (identity, _) in self._seen.items():
            if identity.owner:
                self._store.drop(server, identity.owner)

    def list_changes(self, server: str) -> list[Change]:
        """Return the server's unapproved definitions; another process may approve them meanwhile."""
        with self._lock:
            return self._compare(server)[0] if server in self._seen else []

    def _compare(self, server: str) -> tuple[list[Change], Tools]:
        """Return the unapproved part of what was seen last, and the approved part."""
        if server in self._unsure:
            self._note(server)
        identity, tools = self._seen[server]
        stamp = self._store.stamp(server, identity.owner)
        kept = self._held.get(server)
        if kept is None or kept[0] != stamp:
            book = self._book(identity)
            kept = self._held[server] = (stamp, book.changes(identity.written, tools), book.base(identity.written))
        return kept[1:]

    def all_changed(self) -> dict[str, list[Change]]:
        """Return the unapproved changes, by server."""
        return {server: changes for server in sorted(self._seen) if (changes := self.list_changes(server))}

    def require_approved(self, tool: Tool) -> None:
        """Check that *tool*, if a proxied server's, is as it was approved.

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
        """Return what is known about every server, from where it is kept."""
        return self._store.books()

    def approve(self, shown: PinBook, tools: Iterable[str] | None = None) -> None:
        """Approve what *shown* tells, which the user has seen, and not what is there by now."""
        approved = shown.approving(tools)

        def make(now: PinBook) -> PinBook:
            if (now.pending_written, now.pending) == (shown.pending_written, shown.pending):
                return approved
            return replace(approved, pending_written=now.pending_written, pending=now.pending)

        self._store.record(shown.server, shown.owner, make)

    def _find_approved_identity(self, identity: ServerIdentity) -> ServerIdentity:
        """Return under which identity the server is approved: the operator's, once that one has used it.

        A first use approves for whoever makes it, and for nobody else.
        """
        if not identity.common or self._store.read(identity.server, "").is_new:
            return identity
        return ServerIdentity(identity.server, identity.common)

    def _record(self, identity: ServerIdentity, pack: str, tools: Tools) -> None:
        def make(before: PinBook) -> PinBook:
            book = self._taken_over(identity, before)
            book = replace(book, packs=tuple(dict.fromkeys([*book.packs, pack])))
            if book.is_new:
                return replace(book, approved={identity.written: tools})
            if book.changes(identity.written, tools):
                return replace(book, pending_written=identity.written, pending=tools)
            if book.pending_written == identity.written:
                return replace(book, pending_written="", pending={})
            return book

        self._store.record(identity.server, identity.owner, make)

    def _book(self, identity: ServerIdentity) -> PinBook:
        """Return the server's approvals, taken over from an older version if need be."""
        return self._taken_over(identity, self._store.read(identity.server, identity.owner))

    def _taken_over(self, identity: ServerIdentity, book: PinBook) -> PinBook:
        if book.is_new and identity.owner:
            # Older versions kept a project's server beside the user's of the same name.
            shared = self._store.read(identity.server, "")
            if shared.by_directory and identity.former in shared.approved:
                book = replace(shared, owner=identity.owner)
        return book.take_over(identity)


def _warn(changes: Iterable[Change]) -> None:
    for change in changes:
        logger.warning("%s; look at it with: onetool approve %s", change, change.server)

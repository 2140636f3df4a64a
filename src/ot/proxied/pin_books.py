"""PinBooks: what is approved of each proxied server, and the seam at which that is kept."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from ot import hooks
from ot.config.paths import Paths
from ot.files.private_file import hold_lock
from ot.proxied.catalogue_files import FOLDER, read_json, server_file, write_json
from ot.proxied.definitions import words_of_change
from ot.registry.freshness import stamp_of
from ot.registry.proxy_target import ServerIdentity
from ot.stores import PINS

logger = logging.getLogger(__name__)

type Tools = Mapping[str, Mapping[str, Any]]
"""The approved parts of definitions, by the tool's own name."""

MAX_REPORTED = 20
MOVED = "the server's address changed"
DAMAGED = "the record of what was approved is damaged"
UNREAD = "what was approved cannot be read now"


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
    """Describe the changes by tool, for a report; ``*`` is the whole server."""
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
    unread: bool = False
    """Whether it is not known yet what is approved: nothing is, as long as that is so."""
    by_directory: bool = False
    """Whether an older version wrote it, which took one server in two directories for two."""

    @property
    def is_new(self) -> bool:
        """True when nothing is known of the server: whatever it offers is then approved."""
        return not (self.approved or self.pending_written or self.damaged or self.unread)

    def changes(self, written: str, tools: Tools) -> list[Change]:
        """Return how *tools* of the server *written* so differ from the approved ones; lost tools are no danger."""
        if self.is_new:
            return []
        known = self.approved.get(written)
        why = UNREAD if self.unread else MOVED if self.approved else DAMAGED
        found = [Change(self.server, "", (why,))] if known is None else []
        base = self.base(written)
        for name, new in tools.items():
            old = base.get(name)
            if old is None and self.approved:
                found.append(Change(self.server, name, ("new tool",), None, new))
            elif old is not None and old != new:
                found.append(Change(self.server, name, words_of_change(old, new), old, new))
        return found

    def base(self, written: str) -> Tools:
        """Return what is approved for the server *written* so; for one that moved, what was approved before."""
        known = self.approved.get(written)
        return known if known is not None else list(self.approved.values())[-1] if self.approved else {}

    def pending_changes(self) -> list[Change]:
        """Return the changes that wait for approval."""
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


type MakeBook = Callable[[PinBook], PinBook]
"""Makes the next book of the one before; it may be called more than once."""


class PinStore(Protocol):
    """Where books are kept, by server and owner: those of whoever configured it have no owner. No method may wait.

    What is not known yet reads as a book that is ``unread``.
    """

    def stamp(self, server: str, owner: str) -> object:
        """Return what is another one whenever the book is."""
        ...

    def read(self, server: str, owner: str) -> PinBook:
        """Return the book."""
        ...

    def record(self, server: str, owner: str, make: MakeBook) -> None:
        """Keep what *make* makes of the book, if it is another one; of several at once, one after the other.

        Raises:
            OSError: It cannot be kept.
            ValueError: It is too large.
        """
        ...

    def drop(self, server: str, owner: str) -> None:
        """Let go of what is known of a book beside where it is kept: nobody uses it here."""
        ...

    def books(self) -> list[PinBook]:
        """Return all of them."""
        ...

    async def settled(self) -> None:
        """Return once what was asked for is read or recorded, or cannot be now."""
        ...


def open_pins(paths: Paths) -> PinStore:
    """Return where the commands of whoever operates this find what is approved: each of its methods may block.

    Raises:
        ConfigError: The configuration cannot be used.
    """
    hook = hooks.hook_named(hooks.STORES, PINS)
    shared: PinStore | None = hook.load()(paths) if hook else None
    return shared or FilePins(paths.global_dir / FOLDER)


class FilePins:
    """Books in files, which processes of one user share."""

    def __init__(self, directory: Path) -> None:
        """Keep one file a server in *directory*, and one for each project that has a server of that name."""
        self._directory = directory

    def stamp(self, server: str, owner: str) -> object:
        """Return what is another one whenever the book is."""
        return stamp_of(self._file(server, owner))

    def read(self, server: str, owner: str) -> PinBook:
        """Return the book."""
        file = self._file(server, owner)
        try:
            found = read_json(file)
            return book_of_json(server, owner, found) if found is not None else PinBook(server, owner=owner)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # Taken for a first use, a damaged file would approve whatever is offered now.
            logger.warning("%s is damaged, so nothing of %s counts as approved: %s", file, server, error)
            return PinBook(server, owner=owner, damaged=True)

    def record(self, server: str, owner: str, make: MakeBook) -> None:
        """Keep what *make* makes of the book, if it is another one."""
        file = self._file(server, owner)
        with hold_lock(file):
            before = self.read(server, owner)
            if (book := make(before)) != before:
                write_json(file, json_of_book(book))

    def drop(self, server: str, owner: str) -> None:
        """Do nothing: files are read when they are needed."""

    def books(self) -> list[PinBook]:
        """Return all of them."""
        keys = (_key_of(path) for path in sorted(self._directory.glob("*.pins.json")))
        return [self.read(server, owner) for server, owner in keys if server]

    async def settled(self) -> None:
        """Return: files are read at once."""

    def _file(self, server: str, owner: str) -> Path:
        return server_file(self._directory, server, "pins", *((owner,) if owner else ()))


def json_of_book(book: PinBook) -> dict[str, Any]:
    """Return *book* as plain data."""
    pending = {"written": book.pending_written, "tools": dict(book.pending)} if book.pending_written else None
    version = 1 if book.by_directory else 2
    plain: dict[str, Any] = {"version": version, "server": book.server, "owner": book.owner, "packs": list(book.packs)}
    approved = {written: dict(tools) for written, tools in book.approved.items()}
    return plain | {"approved": approved, "pending": pending}


def book_of_json(server: str, owner: str, plain: Mapping[str, Any]) -> PinBook:
    """Return the book that was written as *plain*; raise an error of any kind if it is none."""
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

"""What is approved of proxied servers, for all processes of a team: known here, asked for and recorded beside."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onetool_team.ledger.postgres_sessions import Rows
from onetool_team.postgres.team_rows import TeamRows
from onetool_team.state.shared_state import StateUnavailable
from ot.proxied.pin_books import FilePins, MakeBook, PinBook, book_of_json, json_of_book

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
"""How often it is looked for what an operator approved, or another process recorded."""
OVERLAP_SECONDS = 60.0
"""What was committed late has an older time."""
TRIES = 20

type Key = tuple[str, str]
"""A server, and the owner of its book."""

READ = "SELECT revision, book FROM pins WHERE principal = %(who)s AND server = %(server)s"
WRITE = """
INSERT INTO pins (principal, server, revision, book, changed)
VALUES (%(who)s, %(server)s, %(revision)s, %(book)s, clock_timestamp())
ON CONFLICT (principal, server) DO UPDATE
  SET revision = EXCLUDED.revision, book = EXCLUDED.book, changed = EXCLUDED.changed
  WHERE pins.revision IN (%(seen)s, EXCLUDED.revision)
RETURNING revision
"""
"""What another process wrote meanwhile stays. The first to use a server approves it, and nobody a second time."""
ALL = "SELECT principal, server, revision, book FROM pins ORDER BY server, principal"
CHANGED = """
SELECT principal, server, revision, book FROM pins
WHERE changed > clock_timestamp() - %(seconds)s * interval '1 s'
"""
NOBODY = b""
"""In the place of a principal: the book of whoever configured the server."""


@dataclass(frozen=True, slots=True)
class _Known:
    book: PinBook
    revision: uuid.UUID | None
    """None: there is no row yet."""


class PinRows:
    """The rows: whose book it is, of which server and since when is plain; what is approved is sealed."""

    def __init__(self, rows: TeamRows, directory: Path) -> None:
        """Take over what was approved in files of *directory* before there were rows."""
        self._rows = rows
        self._files = FilePins(directory)

    async def read(self, key: Key) -> _Known:
        """Return the book of *key*; raise StateUnavailable if nobody knows now."""
        server, owner = key
        found = await self._rows.rows(READ, who=self._who(owner), server=server)
        if found:
            return self._known(self._who(owner), server, owner, *found[0])
        return _Known(self._files.read(server, owner), None)

    async def write(self, key: Key, book: PinBook, seen: uuid.UUID | None) -> _Known | None:
        """Keep *book*, and return it; nothing if the row is another one than was *seen*."""
        (server, owner), revision = key, uuid.uuid4()
        who = self._who(owner)
        sealed = self._rows.place.seal(_place(who, server, revision), json.dumps(json_of_book(book)))
        given = {"server": server, "revision": revision, "seen": seen, "book": sealed}
        return _Known(book, revision) if await self._rows.rows(WRITE, who=who, **given) else None

    async def make(self, key: Key, make: MakeBook, known: _Known | None = None) -> _Known:
        """Keep what *make* makes of the book, and return what is kept then; *known* may be that already."""
        known = known or await self.read(key)
        for _ in range(TRIES):
            book = make(known.book)
            if book == known.book and (known.revision or book.is_new):
                return known
            if written := await self.write(key, book, known.revision):
                return written
            known = await self.read(key)
        raise StateUnavailable("others change what is approved all the while")

    async def all(self) -> list[PinBook]:
        """Return all books."""
        return [self._known(who, server, "", *row).book for who, server, *row in await self._rows.rows(ALL)]

    async def changed(self, seconds: float) -> Rows:
        """Return the rows that were written within *seconds*."""
        return await self._rows.rows(CHANGED, seconds=seconds)

    def known_of(self, key: Key, revision: uuid.UUID, sealed: bytes) -> _Known:
        """Return what a row holds that is the one of *key*."""
        return self._known(self._who(key[1]), *key, revision, sealed)

    def row_of(self, key: Key) -> tuple[bytes, str]:
        """Return what tells the row of *key* from the others."""
        return self._who(key[1]), key[0]

    def _known(self, who: bytes, server: str, owner: str, revision: uuid.UUID, sealed: bytes) -> _Known:
        text = self._rows.place.try_unseal(_place(who, server, revision), sealed)
        try:
            plain: dict[str, Any] = json.loads(text)
            return _Known(book_of_json(server, owner or str(plain.get("owner") or ""), plain), revision)
        except (AttributeError, KeyError, TypeError, ValueError):
            # Taken for a first use, a forged row would approve whatever is offered now.
            logger.warning("what is approved of %s was not written with state.keys: nothing counts as approved", server)
            return _Known(PinBook(server, owner=owner, damaged=True), revision)

    def _who(self, owner: str) -> bytes:
        return self._rows.who(owner) if owner else NOBODY


class PostgresPins:
    """Books as one process knows them. No method waits; to be made in the event loop that the rows are used in.

    A book that was not read yet is ``unread``, and so is one whose first use is not recorded yet: of processes that
    use a server for the first time at the same moment, one approves it.
    """

    def __init__(self, rows: PinRows) -> None:
        """Know nothing yet."""
        self._rows = rows
        self._loop = asyncio.get_running_loop()
        self._known: dict[Key, _Known] = {}
        self._lock = threading.Lock()
        self._to_do: dict[Key, list[MakeBook]] = {}
        self._working: dict[Key, asyncio.Task[None]] = {}
        self._looking: asyncio.Task[None] | None = None

    def stamp(self, server: str, owner: str) -> object:
        """Return what is another one whenever the book is."""
        key = server, owner
        known = self._known.get(key)
        return None if known is None or self._is_first(key, known) else (known.revision, known.book.is_new)

    def read(self, server: str, owner: str) -> PinBook:
        """Return the book."""
        key = server, owner
        known = self._known.get(key)
        if known is None or self._is_first(key, known):
            self._begin(key)
            return PinBook(server, owner=owner, unread=True)
        return known.book

    def record(self, server: str, owner: str, make: MakeBook) -> None:
        """Keep what *make* makes of the book, a moment later."""
        key = server, owner
        known = self._known.get(key)
        if known and make(known.book) == known.book:
            return
        with self._lock:
            self._to_do.setdefault(key, []).append(make)
        self._begin(key)

    def drop(self, server: str, owner: str) -> None:
        """Know the book no more: nobody uses it here."""
        self._known.pop((server, owner), None)

    def books(self) -> list[PinBook]:
        """Return the books that are known here."""
        return [known.book for known in self._known.values()]

    async def settled(self) -> None:
        """Return once what was asked for is read or recorded, or cannot be now."""
        await asyncio.sleep(0)  # what another thread asked for begins
        while working := list(self._working.values()):
            await asyncio.wait(working)

    def _is_first(self, key: Key, known: _Known) -> bool:
        return known.book.is_new and key in self._to_do

    def _begin(self, key: Key) -> None:
        self._loop.call_soon_threadsafe(self._work_on, key)

    def _work_on(self, key: Key) -> None:
        if key not in self._working:
            self._working[key] = task = asyncio.ensure_future(self._work(key))
            task.add_done_callback(lambda _: self._working.pop(key))
            self._looking = self._looking or asyncio.ensure_future(self._look())

    async def _work(self, key: Key) -> None:
        try:
            known = self._known.get(key) or await self._rows.read(key)
            if known.revision is None:
                # What was approved in files before is in the row from now on, before anything else.
                known = await self._rows.make(key, lambda book: book, known)
            while makes := self._to_do.get(key):
                known = await self._rows.make(key, makes[0], known)
                with self._lock:
                    del makes[0]
                    if not makes:
                        del self._to_do[key]
            self._known[key] = known
        except StateUnavailable as error:
            logger.warning("what is approved of %s is not known now: %s", key[0], error)

    async def _look(self) -> None:
        since = self._loop.time()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            began = self._loop.time()
            with suppress(StateUnavailable):
                await self.look(began - since + OVERLAP_SECONDS)
                since = began

    async def look(self, seconds: float) -> None:
        """Take what was written within *seconds*; raise StateUnavailable if it cannot be read."""
        keys = {self._rows.row_of(key): key for key in self._known}
        for who, server, revision, sealed in await self._rows.changed(seconds):
            key = keys.get((who, server))
            if key and key not in self._working and self._known[key].revision != revision:
                self._known[key] = self._rows.known_of(key, revision, sealed)

    async def aclose(self) -> None:
        """Look no more, and let what is under way come to its end."""
        if self._looking:
            self._looking.cancel()
            await asyncio.wait((self._looking,))
        await self.settled()


def _place(who: bytes, server: str, revision: uuid.UUID) -> str:
    return f"pins/{who.hex()}/{server}/{revision}"

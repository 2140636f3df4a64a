"""KeptData: what each store holds of one person, found and erased; a class for each store."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from onetool_team.erased_rows import erase_rows, read_rows
from onetool_team.ledger.run_records import CountedRecords
from onetool_team.roster.roster import Roster
from onetool_team.state.redis_connection import RedisConnection
from onetool_team.workspaces import PEOPLE, directory_name
from ot.config.load import Loaded
from ot.config.principal import FOLDER, place_of
from ot.files.run_images import FOLDER as UNDO
from ot.stats.schema import SUMS

STATISTICS = ("runs", "calls", "connections", *SUMS)
"""The tables whose rows say whose they are."""
FORGOTTEN = b'{"message": "forgotten"}'
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class KeptThing:
    """Something of a person in one store."""

    store: str
    where: str
    count: int
    size: int = 0
    """In bytes, where the store can tell."""


class KeptData(Protocol):
    """One store, in which there may be something of a person."""

    async def find(self, principal: str) -> list[KeptThing]:
        """Return what it holds of *principal*."""
        ...

    async def erase(self, principal: str) -> None:
        """Let nothing of it be left."""
        ...


class Directories:
    """The workspace of a person, own secrets, and what tools keep of each."""

    def __init__(self, each: Path | None, loaded: Loaded, global_dir: Path) -> None:
        """Look below *each*, where everyone has a directory that lasts, and where the settings keep files."""
        self._each = each
        self._global_dir = global_dir
        self._results = loaded.results_dir

    async def find(self, principal: str) -> list[KeptThing]:
        """Return each directory with its files."""
        return await asyncio.to_thread(self._find, principal)

    def _find(self, principal: str) -> list[KeptThing]:
        return [KeptThing("files", str(path), *count_files(path)) for path in self.places(principal) if path.exists()]

    async def erase(self, principal: str) -> None:
        """Remove the directories."""
        for path in self.places(principal):
            if path.exists():
                await asyncio.to_thread(shutil.rmtree, path)

    def places(self, principal: str) -> list[Path]:
        """Return where directories of *principal* would be."""
        name = directory_name(principal)
        own = hashlib.sha256(principal.encode()).hexdigest()[:32]
        found = [self._each / name] if self._each else []
        found += [self._global_dir / PEOPLE / name]
        found += [place_of(principal, place) for place in (self._results, self._global_dir / UNDO)]
        return [*found, *sorted((self._global_dir / "data").glob(f"*/{FOLDER}/{own}"))]


def count_files(directory: Path) -> tuple[int, int]:
    """Return how many files are below *directory*, and their bytes."""
    sizes = [entry.stat().st_size for entry in _files(directory)]
    return len(sizes), sum(sizes)


def _files(directory: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                yield entry


class StatisticsRows:
    """Rows of the statistics."""

    def __init__(self, file: Path) -> None:
        """Look into *file*."""
        self._file = file

    async def find(self, principal: str) -> list[KeptThing]:
        """Return how many rows there are."""
        number = await asyncio.to_thread(self._count, principal)
        return [KeptThing("statistics", str(self._file), number)] if number else []

    def _count(self, principal: str) -> int:
        if not self._file.exists():
            return 0
        counts = " + ".join(f"(SELECT count(*) FROM {table} WHERE principal = ?)" for table in STATISTICS)
        return read_rows(self._file, f"SELECT {counts}", *[principal] * len(STATISTICS))[0][0]

    async def erase(self, principal: str) -> None:
        """Delete the rows."""
        await asyncio.to_thread(erase_rows, self._file, STATISTICS, principal)


class KeptRecords:
    """Records of a person, as whoever keeps them counts them."""

    def __init__(self, records: CountedRecords, where: str) -> None:
        """Look into *records*."""
        self._records = records
        self._where = where

    async def find(self, principal: str) -> list[KeptThing]:
        """Return how many there are."""
        counts = await self._records.count(principal)
        return [KeptThing(what, self._where, number) for what, number in counts.items() if number]

    async def erase(self, principal: str) -> None:
        """Delete them."""
        await self._records.forget(principal)


class RosterEntry:
    """When a person was seen."""

    def __init__(self, roster: Roster) -> None:
        """Look into *roster*."""
        self._roster = roster

    async def find(self, principal: str) -> list[KeptThing]:
        """Return whether there is an entry."""
        known = [one for one in await self._roster.people() if one.principal == principal]
        return [KeptThing("roster", "the list of people", len(known))] if known else []

    async def erase(self, principal: str) -> None:
        """Delete it."""
        await self._roster.forget(principal)


class SharedKeys:
    """All else in Redis whose key has the person's hidden name, such as counts of the last minute."""

    def __init__(self, connection: RedisConnection, prefix: str, hide: Callable[[str], str]) -> None:
        """Look at the keys that begin with *prefix*."""
        self._connection = connection
        self._prefix = prefix
        self._hide = hide

    async def find(self, principal: str) -> list[KeptThing]:
        """Return each kind of keys."""
        return [KeptThing("redis", key.decode(), 1) for key in await self._keys(principal)]

    async def erase(self, principal: str) -> None:
        """Delete them."""
        if keys := await self._keys(principal):
            await self._connection.answer(cast("Any", self._connection.client).delete(*keys))

    async def _keys(self, principal: str) -> list[bytes]:
        cursor, found = 0, set[bytes]()
        client = cast("Any", self._connection.client)
        while True:
            match = f"{self._prefix}:*{self._hide(principal)}*"
            cursor, keys = await self._connection.answer(client.scan(cursor, match=match, count=AT_ONCE))
            found.update(keys)
            if not cursor:
                return sorted(found)


class LogLines:
    """Lines of a log that name the person: what they said is written over, and lines of others stay where they are."""

    def __init__(self, store: str, files: Callable[[], Sequence[Path]]) -> None:
        """Look into *files*."""
        self._store = store
        self._files = files

    async def find(self, principal: str) -> list[KeptThing]:
        """Return the files that have lines of *principal*."""
        return await asyncio.to_thread(self._find, principal)

    def _find(self, principal: str) -> list[KeptThing]:
        found: list[KeptThing] = []
        for file in self._files():
            if file.exists() and (sizes := [size for _, size in _lines_of(file, principal)]):
                found.append(KeptThing(self._store, str(file), len(sizes), sum(sizes)))
        return found

    async def erase(self, principal: str) -> None:
        """Write over what the lines say."""
        await asyncio.to_thread(self._erase, principal)

    def _erase(self, principal: str) -> None:
        for file in self._files():
            if file.exists():
                # In place: the server goes on appending, and no line of anybody else is touched.
                with file.open("r+b") as opened:
                    for at, size in _lines_of(file, principal):
                        opened.seek(at)
                        opened.write(FORGOTTEN.ljust(size) if size >= len(FORGOTTEN) else b" " * size)


def _lines_of(file: Path, principal: str) -> Iterator[tuple[int, int]]:
    """Yield where lines begin that name *principal*, and how long they are."""
    named = json.dumps(principal)[1:-1].encode()
    pattern = re.compile(rb"(?<![\w|.@-])(?:%s)(?![\w.@-])|%s" % (re.escape(named), directory_name(principal).encode()))
    at = 0
    with file.open("rb") as lines:
        for line in lines:
            if pattern.search(line):
                yield at, len(line.rstrip(b"\n"))
            at += len(line)

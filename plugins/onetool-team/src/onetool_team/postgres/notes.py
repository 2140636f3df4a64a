"""PostgresNotes: the notes of a team's people, found by words that PostgreSQL cannot read."""

from __future__ import annotations

import asyncio
import base64
import hmac
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from typing import Any

from onetool_team.ledger.postgres_sessions import Rows
from onetool_team.postgres.team_rows import TeamRows
from onetool_team.state.shared_state import StateUnavailable
from ot.notes.kept_notes import Chosen, Row, TooManyNotes
from ot.notes.notes_database import START_CHARS, excerpt, notes_in_memory, read_terms, split_query, words_of

logger = logging.getLogger(__name__)

MARGIN_SECONDS = 30.0
"""How long a thread waits for an answer, which may take one busy connection after the other."""
CANDIDATES = 200
"""Of how many notes that match the best are found by what is in them, and not by what PostgreSQL makes of it."""
LOT_BYTES = 4 << 20
"""What is fetched at once of notes that may be large."""
MOST_WORDS = 40_000
"""Different words of one note; more than a tsvector may hold."""
HASH_BYTES = 6
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
TRIES = 20
GONE = "the notes cannot be reached now: {}"
FULL = "there is no room for more notes: delete some, or have tools.memory.max_bytes raised"
BUSY = "other runs change this note all the while: try again"

COLUMNS = "id, place, chars, extract(epoch FROM created)::float8, extract(epoch FROM updated)::float8, revision, note"
MINE = "principal = %(who)s AND place = ANY (%(places)s::text[])"
SIZE = "coalesce(sum(pg_column_size(note) + pg_column_size(words)), 0)"
ADD = f"""
WITH before AS (SELECT id, updated FROM notes WHERE principal = %(who)s AND revision = %(revision)s),
room AS (SELECT count(*) AS many, {SIZE} + %(size)s <= %(most_bytes)s AS has_room FROM notes WHERE principal = %(who)s),
turn AS (INSERT INTO note_ids AS n (principal, last)
  SELECT %(who)s, 1 FROM room WHERE many < %(most)s AND has_room AND NOT EXISTS (SELECT 1 FROM before)
  ON CONFLICT (principal) DO UPDATE SET last = n.last + 1 RETURNING last),
written AS (INSERT INTO notes (principal, id, revision, place, chars, created, updated, tags, words, note)
  SELECT %(who)s, last, %(revision)s, %(place)s, %(chars)s, now(), now(), %(tags)s::text[], %(words)s::tsvector,
    %(note)s FROM turn RETURNING id, updated)
SELECT many, has_room, w.id, extract(epoch FROM w.updated)::float8
FROM room LEFT JOIN (SELECT * FROM written UNION ALL SELECT * FROM before) w ON true
"""
"""Who repeats this after a lost answer finds what was written. Ids begin at 1 for each, and none is used twice."""
CHANGE = f"""
WITH room AS (SELECT {SIZE} + %(size)s <= %(most_bytes)s AS has_room
  FROM notes WHERE principal = %(who)s AND id <> %(id)s),
written AS (UPDATE notes SET revision = %(revision)s, chars = %(chars)s, tags = %(tags)s::text[],
    words = %(words)s::tsvector, note = %(note)s, updated = clock_timestamp()
  WHERE principal = %(who)s AND id = %(id)s AND revision IN (%(seen)s, %(revision)s) AND (SELECT has_room FROM room)
  RETURNING updated)
SELECT has_room, extract(epoch FROM w.updated)::float8 FROM room LEFT JOIN written w ON true
"""
DELETE = f"""
WITH found AS MATERIALIZED (SELECT id FROM notes WHERE {MINE} AND id = ANY (%(ids)s::bigint[]) ORDER BY id FOR UPDATE),
gone AS (DELETE FROM notes WHERE principal = %(who)s AND id IN (SELECT id FROM found)
  AND (SELECT count(*) FROM found) = %(count)s)
SELECT id FROM found
"""
GET = f"SELECT {COLUMNS} FROM notes WHERE {MINE} AND id = %(id)s"
CHOSEN = f"{MINE} AND updated >= %(since)s AND updated < %(until)s"
BY_TIME = "ORDER BY notes.updated DESC, id DESC LIMIT %(most)s"
BY_RANK = "ORDER BY ts_rank(words, %(query)s::tsquery) DESC, notes.updated DESC, id DESC LIMIT %(most)s"
IDS = "SELECT id, pg_column_size(note) FROM notes WHERE"
FETCH = f"SELECT {COLUMNS} FROM notes WHERE principal = %(who)s AND id = ANY (%(ids)s::bigint[])"
TAGS = (
    "SELECT tag, count(*), max(id), max(pg_column_size(note)) FROM notes, unnest(tags) AS t (tag) WHERE {} GROUP BY tag"
)


class PostgresNotes:
    """One principal's notes. Every method blocks: call it in a thread of the process whose *loop* has the rows.

    A word is kept as its hash, with a key of the principal's own: the words of two people cannot be compared.
    """

    def __init__(self, rows: TeamRows, principal: str, most_bytes: int, loop: asyncio.AbstractEventLoop) -> None:
        """Keep at most *most_bytes* in *rows*."""
        self._rows = rows
        self._who = rows.who(principal)
        self._principal = principal
        self._most_bytes = most_bytes
        self._loop = loop

    def add(self, place: str, text: str, tags: Sequence[str], most: int) -> Row:
        """Keep a new note, and return it."""
        written = self._sealed(text, tags)
        ((many, has_room, id, at),) = self._ask(ADD, place=place, most=most, **written)
        if id is None:
            raise OSError(FULL) if not has_room else TooManyNotes(many)
        return Row(id, place, len(text), at, at, text, 1.0, sorted(tags))

    def change(
        self, id: int, places: Sequence[str], edit: Callable[[Row], str | None], tags: Sequence[str] | None
    ) -> Row | None:
        """Change a note of *places*; nothing if it is not there."""
        for _ in range(TRIES):
            found = self._ask(GET, id=id, places=list(places))
            before = self._row(found[0]) if found else None
            if before is None:
                return None
            edited = edit(before)
            text, words = before.text if edited is None else edited, before.tags if tags is None else tags
            ((has_room, at),) = self._ask(CHANGE, id=id, seen=found[0][5], **self._sealed(text, words))
            if not has_room:
                raise OSError(FULL)
            if at is not None:
                return Row(id, before.place, len(text), before.created, at, text, 1.0, sorted(words))
        raise OSError(BUSY)

    def delete(self, ids: Sequence[int], places: Sequence[str]) -> int | None:
        """Delete all of *ids*, or none, and return the first that is not there."""
        given = list(ids)
        found = {id for (id,) in self._ask(DELETE, ids=given, places=list(places), count=len(given))}
        return next((id for id in given if id not in found), None)

    def get(self, id: int, places: Sequence[str]) -> Row | None:
        """Return one note of *places*, with its whole text."""
        found = self._ask(GET, id=id, places=list(places))
        return self._row(found[0]) if found else None

    def latest(self, chosen: Chosen, most: int) -> list[Row]:
        """Return the notes that were written last, with the start of each text."""
        condition, given = self._condition(chosen)
        found = self._ask(f"{IDS} {condition} {BY_TIME}", most=most, **given)
        return [_cut(row, row.text[:START_CHARS]) for row in self._fetch(found)]

    def search(self, query: str, chosen: Chosen, most: int) -> list[Row]:
        """Return the best notes with all words of *query*; else with any of them; else with their letters somewhere."""
        pieces = split_query(query)
        terms = self._terms(pieces)
        condition, given = self._condition(chosen)
        matching = f"{IDS} {condition} AND words @@ %(query)s::tsquery {BY_RANK}"
        for joined in (" & ", " | ") if len(terms) > 1 else (" & ",) if terms else ():
            found = self._ask(matching, query=joined.join(terms), most=max(most, CANDIDATES), **given)
            if rows := list(self._fetch(found)):
                with notes_in_memory(rows) as notes:
                    return notes.search(query, Chosen(chosen.places), most)
        return self._containing(pieces, condition, given, most)

    def tags(self, chosen: Chosen) -> list[tuple[str, int]]:
        """Return each tag and how many notes have it, the most used first."""
        condition, given = self._condition(chosen)
        counted = self._ask(TAGS.format(condition), **given)
        read = self._fetch([(id, size) for *_, id, size in counted])
        names = {hashed: tag for row in read for tag in row.tags for hashed in self._tag_hashes(tag)}
        found = Counter[str]()
        for hashed, count, *_ in counted:
            found[names.get(hashed, "")] += count
        del found[""]
        return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))

    # ---------------------------------------------------------------- what is not a word of its own

    def _containing(self, pieces: Sequence[str], condition: str, given: Mapping[str, Any], most: int) -> list[Row]:
        """Read all notes, the last written first, until there are enough that hold *pieces*."""
        rows = self._fetch(self._ask(f"{IDS} {condition} {BY_TIME}", most=None, **given))
        found = (_cut(row, excerpt(row.text, pieces[0])) for row in rows if all(one in row.text for one in pieces))
        return list(islice(found, most))

    # ---------------------------------------------------------------- hashes

    @cached_property
    def _word_keys(self) -> list[bytes]:
        return [self._own_key(key) for key in self._rows.keys.derive("notes/words")]

    @cached_property
    def _tag_keys(self) -> list[bytes]:
        return [self._own_key(key) for key in self._rows.keys.derive("notes/tags")]

    def _own_key(self, key: bytes) -> bytes:
        return hmac.digest(key, self._principal.encode(errors="surrogatepass"), "sha256")

    def _tag_hashes(self, tag: str) -> list[str]:
        return [_hash(key, tag) for key in self._tag_keys]

    def _terms(self, pieces: Sequence[str]) -> list[str]:
        """Return what tsquery takes for each of *pieces*: one word after the other, by any of our keys."""
        return [
            "(" + " | ".join("(" + " <-> ".join(f"'{_hash(key, word)}'" for word in words) + ")" for key in keys) + ")"
            for keys in (self._word_keys,)
            for words in read_terms(pieces)
        ]

    def _vector(self, text: str) -> str:
        """Return what tsvector takes for *text*."""
        places: dict[str, list[str]] = {}
        for word, at in words_of(text):
            if word in places or len(places) < MOST_WORDS:
                places.setdefault(word, []).append(str(at + 1))
        return " ".join(f"'{_hash(self._word_keys[0], word)}':{','.join(at)}" for word, at in places.items())

    # ---------------------------------------------------------------- how

    def _condition(self, chosen: Chosen) -> tuple[str, dict[str, Any]]:
        given: dict[str, Any] = {"places": list(chosen.places)}
        given |= {"since": _moment(chosen.since, EARLIEST), "until": _moment(chosen.until, LATEST)}
        tagged = {f"tag{n}": self._tag_hashes(tag) for n, tag in enumerate(chosen.tags)}
        return " AND ".join([CHOSEN, *(f"tags && %({name})s::text[]" for name in tagged)]), given | tagged

    def _sealed(self, text: str, tags: Sequence[str]) -> dict[str, Any]:
        revision, words = uuid.uuid4(), self._vector(text)
        note = self._rows.place.seal(self._place(revision), {"text": text, "tags": sorted(tags)})
        size = len(note) + len(words)
        hashed = [self._tag_hashes(tag)[0] for tag in tags]
        given: dict[str, Any] = {"revision": revision, "chars": len(text), "tags": hashed, "words": words}
        return given | {"note": note, "size": size, "most_bytes": self._most_bytes}

    def _place(self, revision: uuid.UUID) -> str:
        return f"notes/{self._who.hex()}/{revision}"

    def _fetch(self, found: Sequence[Sequence[Any]]) -> Iterator[Row]:
        """Yield the notes that can be read of those *found*, each an id and a size, in their order."""
        left = list(found)
        while left:
            lot = [left.pop(0)]
            size = lot[0][1]
            while left and size + left[0][1] <= LOT_BYTES:
                size += left[0][1]
                lot.append(left.pop(0))
            rows = {row[0]: row for row in self._ask(FETCH, ids=[id for id, _ in lot])}
            yield from filter(None, (self._row(rows[id]) for id, _ in lot if id in rows))

    def _row(self, found: Sequence[Any]) -> Row | None:
        id, place, chars, created, updated, revision, sealed = found
        note = self._rows.place.try_unseal(self._place(revision), sealed)
        if note is None:
            logger.warning("note %d of somebody was not written with state.keys, and is not shown", id)
            return None
        return Row(id, place, chars, created, updated, note["text"], 1.0, note["tags"])

    def _ask(self, step: str, **given: Any) -> Rows:
        try:
            return self._wait(self._rows.rows(step, who=self._who, **given))
        except StateUnavailable as error:
            raise OSError(GONE.format(error)) from None

    def _wait(self, asked: Coroutine[Any, Any, Rows]) -> Rows:
        """Return the result of a coroutine on the loop, from another thread."""
        answer = asyncio.run_coroutine_threadsafe(asked, self._loop)
        try:
            return answer.result(MARGIN_SECONDS)
        except TimeoutError:
            answer.cancel()
            raise OSError(GONE.format("there is no answer")) from None


def _cut(row: Row, text: str) -> Row:
    return Row(row.id, row.place, row.chars, row.created, row.updated, text, row.score, row.tags)


def _hash(key: bytes, text: str) -> str:
    return base64.urlsafe_b64encode(hmac.digest(key, text.encode(), "sha256")[:HASH_BYTES]).decode()


def _moment(seconds: float, edge: datetime) -> datetime:
    """Return an instant; a range without an end has *edge*."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return edge

"""Remember: keep notes and find them again by words, tags and time; per project or user."""

from __future__ import annotations

# ruff: noqa: E402 - a pack file opens with its name and its tools
pack = "memory"

__all__ = ["delete", "list", "read", "search", "tags", "update", "write"]
__ot_destructive__ = ["delete"]
__ot_read_only__ = ["list", "read", "search", "tags"]

from builtins import list as List  # this module's own list() takes the name
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, TypedDict

from pydantic import BaseModel, ConfigDict, Field

from ot.execution.tool_context import current_tool_context
from ot.notes.kept_notes import Chosen, KeptNotes, Row, TooManyNotes
from ot.notes.notes_database import FILE, FileNotes
from ot_sdk.numbers import check_number

MAX_ID = (1 << 63) - 1
MAX_LIMIT = 1000
MAX_QUERY = 1000
MAX_TAGS = 20
MAX_TAG = 50
DATE = len("2026-01-31")
USER = "user"


class Config(BaseModel):
    """The settings ``tools.memory``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    max_chars: int = Field(default=50_000, ge=1, le=1_000_000, description="Characters of one note")
    max_notes: int = Field(default=10_000, ge=1, le=1_000_000, description="Notes of one user, of all projects")
    max_bytes: int = Field(
        default=64 << 20, ge=1 << 20, le=1 << 40, description="Size of the file that holds the notes of one user"
    )


class AboutNote(TypedDict):
    """What is known of a note: when it was written first and last, in UTC, and how long it is."""

    id: int
    scope: str
    tags: List[str]
    chars: int
    created: str
    updated: str


class KeptNote(AboutNote):
    """A note with its text."""

    text: str


class ListedNote(AboutNote):
    """A note with the start of its text."""

    start: str


class FoundNote(AboutNote):
    """A note that matches, with the place where it does; a score of 1 has all the words and none matches better."""

    snippet: str
    score: float


class TagCount(TypedDict):
    """A tag, and how many notes have it."""

    tag: str
    notes: int


class DeletedNotes(TypedDict):
    """Which notes were deleted."""

    ids: List[int]


def write(
    *, text: str, title: str = "", tags: Sequence[str] = (), scope: Literal["project", "user"] = "project"
) -> KeptNote:
    """Remember something: write a note that later runs, sessions and days can find.

    Args:
        text: What to remember.
        title: What it is about, as its first line.
        tags: Words to find it by, such as ["decision", "api"]; upper and lower case are the same.
        scope: "project" keeps it for the working directory alone, "user" for all projects of the user.

    Returns:
        The note, with the id that the other tools take.

    Example:
        memory.write(text="Deploys go out on Tuesdays, never on Fridays.", tags=["decision", "deploy"])
    """
    text = f"{title.strip()}\n{text}" if title.strip() else text
    text, words, place = _check_text(text), _tags_to_keep(tags), _place(scope)
    most = _config().max_notes
    try:
        return _note(_kept_notes().add(place, text, words, most))
    except TooManyNotes:
        raise ValueError(f"there are {most:,} notes already (tools.memory.max_notes): delete some first") from None


def read(*, id: int) -> KeptNote:
    """Read one note with its whole text.

    Args:
        id: The note's id, as search, list and write return it.

    Returns:
        The note: of this project, or of the user.

    Example:
        memory.read(id=1)
    """
    check_number("id", id, 1, MAX_ID)
    return _note(_found(id, _kept_notes().get(id, _places("all"))))


def search(
    *,
    query: str,
    tags: Sequence[str] = (),
    since: str = "",
    until: str = "",
    scope: Literal["project", "user", "all"] = "project",
    limit: int = 20,
) -> List[FoundNote]:
    """Find notes by words, the best first.

    Notes with all the words are found; if there are none, notes with any of them. Inflected English words match:
    "deploying" finds "deploys". There is no query language: operators are plain text.

    Args:
        query: Words, and "phrases in double quotes".
        tags: Only notes with all of these tags.
        since: Only notes last written on this day or later: an ISO date or time, in UTC unless it says otherwise.
        until: Only notes last written on this day or earlier; with a time, before it.
        scope: Where to look: "project", "user", or "all" for both.
        limit: The most notes to return.

    Returns:
        For each note the part that matches as snippet, a score from 0 to 1 (1 for the best with all the words), and
        what list returns; memory.read returns the text.

    Example:
        memory.search(query="when do we deploy", tags=["decision"], limit=5)
    """
    wanted, chosen = _check_query(query), _choose(tags, since, until, scope)
    check_number("limit", limit, 1, MAX_LIMIT)
    return [
        {**_describe(row), "snippet": row.text, "score": round(row.score, 3)}
        for row in _kept_notes().search(wanted, chosen, limit)
    ]


def list(
    *,
    tags: Sequence[str] = (),
    since: str = "",
    until: str = "",
    scope: Literal["project", "user", "all"] = "project",
    limit: int = 20,
) -> List[ListedNote]:
    """List notes, the last written first: what was noted lately.

    Args:
        tags: Only notes with all of these tags.
        since: Only notes last written on this day or later: an ISO date or time, in UTC unless it says otherwise.
        until: Only notes last written on this day or earlier; with a time, before it.
        scope: Where to look: "project", "user", or "all" for both.
        limit: The most notes to return.

    Returns:
        For each note its id, scope, tags, times, length in characters, and the first 200 as start.

    Example:
        memory.list(tags=["decision"], since="2026-01-01")
    """
    chosen = _choose(tags, since, until, scope)
    check_number("limit", limit, 1, MAX_LIMIT)
    return [{**_describe(row), "start": row.text} for row in _kept_notes().latest(chosen, limit)]


def update(*, id: int, text: str | None = None, append: bool = False, tags: Sequence[str] | None = None) -> KeptNote:
    """Change a note's text, its tags, or both.

    Args:
        id: The note's id.
        text: The new text; unchanged when left out.
        append: Add the text to the note as a new line instead of replacing what is there.
        tags: The new tags, in place of all old ones; unchanged when left out.

    Returns:
        The note as it is now.

    Example:
        memory.update(id=1, text="Except in the week of a release.", append=True)
    """
    check_number("id", id, 1, MAX_ID)
    if text is None and tags is None:
        raise ValueError("nothing to change: give text, tags or both")
    words = None if tags is None else _tags_to_keep(tags)

    def edit(before: Row) -> str | None:
        return text if text is None else _check_text(f"{before.text}\n{text}" if append else text)

    return _note(_found(id, _kept_notes().change(id, _places("all"), edit, words)))


def delete(*, ids: int | Sequence[int]) -> DeletedNotes:
    """Delete notes: all that are named, or none if one of them is not there; ot.undo(run=) can bring them back.

    Args:
        ids: The id of a note, or a list of ids.

    Returns:
        The ids of the deleted notes.

    Example:
        memory.delete(ids=[1])
    """
    wanted = [ids] if isinstance(ids, int) else _check_list("ids", ids)
    for id in wanted:
        check_number("ids", id, 1, MAX_ID)
    wanted = [*dict.fromkeys(wanted)]
    if not 1 <= len(wanted) <= MAX_LIMIT:
        raise ValueError(f"ids must name 1 to {MAX_LIMIT:,} notes, got {len(wanted):,}")
    missing = _kept_notes().delete(wanted, _places("all"))
    if missing is not None:
        _found(missing, None)
    return {"ids": wanted}


def tags(*, scope: Literal["project", "user", "all"] = "project") -> List[TagCount]:
    """List the tags of all notes, the most used first.

    Args:
        scope: Where to look: "project", "user", or "all" for both.

    Returns:
        Each tag, and how many notes have it.

    Example:
        memory.tags()
    """
    chosen = _choose((), "", "", scope)
    return [{"tag": tag, "notes": count} for tag, count in _kept_notes().tags(chosen)]


# ---------------------------------------------------------------- where the notes are


def _config() -> Config:
    return Config.model_validate(dict(current_tool_context().settings))


def _kept_notes() -> KeptNotes:
    context, most = current_tool_context(), _config().max_bytes
    shared = context.open_notes(context.caller.principal, most) if context.open_notes else None
    return shared or FileNotes(context.data_dir(pack) / FILE, most)


def _project() -> str:
    return f"project {current_tool_context().project}"


def _place(scope: str) -> str:
    (place,) = _places(scope, ("project", USER))
    return place


def _places(scope: str, known: Sequence[str] = ("project", USER, "all")) -> tuple[str, ...]:
    if scope not in known:
        raise ValueError(f"scope must be one of {', '.join(known)}, got {scope!r:.100}")
    return {"project": (_project(),), USER: (USER,), "all": (_project(), USER)}[scope]


def _found(id: int, row: Row | None) -> Row:
    if row is None:
        raise LookupError(f"this project and its user have no note {id}: memory.list(scope='all') lists those it has")
    return row


def _describe(row: Row) -> AboutNote:
    return {
        "id": row.id,
        "scope": USER if row.place == USER else "project",
        "tags": row.tags,
        "chars": row.chars,
        "created": _moment(row.created),
        "updated": _moment(row.updated),
    }


def _note(row: Row) -> KeptNote:
    return {**_describe(row), "text": row.text}


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


# ---------------------------------------------------------------- what programs give


def _choose(tags: Sequence[str], since: str, until: str, scope: str) -> Chosen:
    after, before = _seconds("since", since), _seconds("until", until)
    return Chosen(
        _places(scope),
        _check_tags(tags),
        float("-inf") if after is None else after,
        float("inf") if before is None else before,
    )


def _seconds(name: str, given: str) -> float | None:
    """Return a time in seconds; a day, for ``until``, is over with its end."""
    if not given:
        return None
    try:
        found = datetime.fromisoformat(given.strip())
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        if name == "until" and len(given.strip()) <= DATE:
            found += timedelta(days=1)
        return found.timestamp()
    except (AttributeError, TypeError, ValueError, OverflowError):
        example = "a date or time such as '2026-01-31' or '2026-01-31T09:30:00+01:00'"
        raise ValueError(f"{name} must be {example}, got {given!r:.100}") from None


def _check_query(query: str) -> str:
    words = _text("query", query).replace("\0", " ").strip()
    if not words:
        raise ValueError("query is empty: memory.list() shows the latest notes")
    if len(words) > MAX_QUERY:
        raise ValueError(f"query has {len(words):,} characters, more than {MAX_QUERY:,}: search for a few words")
    return words


def _check_text(text: str) -> str:
    most = _config().max_chars
    if not _text("text", text).strip():
        raise ValueError("text is empty: say what to remember")
    if len(text) > most:
        raise ValueError(
            f"the note would have {len(text):,} characters, more than {most:,} (tools.memory.max_chars): "
            "keep what matters, or write it to a file and note its path"
        )
    return text


def _tags_to_keep(tags: Sequence[str]) -> List[str]:
    if isinstance(tags, str):  # the second text of memory.write("supplier", "Nordholz") is not meant as a tag
        raise TypeError(f"tags must be a list, such as ['decision'], got {tags!r:.100}: all of a note is in text=")
    return _check_tags(tags)


def _check_tags(tags: Sequence[str]) -> List[str]:
    # Programs are not type-checked: models write None for none, and a text would be taken apart into letters.
    tags = _check_list("tags", [tags] if isinstance(tags, str) else tags or ())
    words = [*dict.fromkeys(_text("tags", tag).strip().casefold() for tag in tags)]
    if len(words) > MAX_TAGS:
        raise ValueError(f"a note has at most {MAX_TAGS} tags, got {len(words)}")
    for word in words:
        if not 1 <= len(word) <= MAX_TAG or not word.isprintable():
            raise ValueError(f"a tag has 1 to {MAX_TAG} visible characters, got {word!r:.100}")
    return words


def _check_list[T](name: str, given: Iterable[T]) -> List[T]:
    if not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - programs are not type-checked
        raise TypeError(f"{name} must be a list, got {type(given).__name__}")
    return [*given]


def _text(name: str, given: str) -> str:
    if not isinstance(given, str):  # pyright: ignore[reportUnnecessaryIsInstance] - programs are not type-checked
        raise TypeError(f"{name} must be text, got {type(given).__name__}: use str() or json.dumps() first")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} cannot be kept: it holds an unpaired surrogate") from None
    return given

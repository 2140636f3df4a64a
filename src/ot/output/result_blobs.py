"""The seam for where results are stored, files or an object store; and the data about each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, BinaryIO, Literal, Protocol

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

HANDLE = re.compile(r"[A-Za-z0-9_-]{22,64}")

Count = Annotated[int, Field(ge=0)]

Form = Literal["text", "json", "tagged"]
"""What the content is: any text; JSON with an element or an entry a line; the same with the tags of ``ot_sdk``."""


class ResultMeta(BaseModel):
    """The data about a stored result, written beside it."""

    model_config = ConfigDict(frozen=True, strict=True, defer_build=True)

    version: Literal[1] = 1
    handle: str
    total_lines: Count
    size_bytes: Count
    created_at: AwareDatetime
    tool: str
    owner: str
    form: Form = "text"


def is_older(since: datetime, now: datetime, ttl: timedelta) -> bool:
    """Tell whether something is older than *ttl*; at exactly that age it is not.

    If the clock was set back, what seems to come from the future counts as new.
    """
    return max(now - since, timedelta()) > ttl


class HandleTaken(Exception):
    """Another result has this handle."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """What is known about a result once all of it has arrived."""

    meta: ResultMeta
    index: bytes


class ResultBlobs(Protocol):
    """Keeps the contents of results under their handles.

    Every method blocks and is called in threads, concurrently; several servers may share one place.
    The store decides who may read what and what has expired; a place only keeps and returns.
    """

    def put(self, handle: str, chunks: Iterable[bytes | bytearray], seal: Callable[[], Sealed]) -> ResultMeta:
        """Keep *chunks* as they come, then what *seal* returns; nobody sees a part of a result.

        If anything fails, nothing is left, and errors of *chunks* propagate.

        Raises:
            HandleTaken: Another result has this handle; no chunk was requested.
            StorageFull: There is no room.
            ResultError: It cannot be kept for another reason.
        """
        ...

    def meta(self, handle: str) -> ResultMeta | None:
        """Return the metadata given to *seal*, or nothing if it is damaged.

        Raises:
            FileNotFoundError: The result does not exist, or no longer does.
            ResultNotFound: What is there is not one of our results.
            OSError: The place cannot be read.
        """
        ...

    def index(self, meta: ResultMeta) -> bytes:
        """Return the index of a result's lines; raises as *meta* does."""
        ...

    def open(self, meta: ResultMeta) -> BinaryIO:
        """Return the content as a seekable file to close; it raises as *meta* does.

        If the result is removed meanwhile, it stays complete, or reading raises FileNotFoundError.
        """
        ...

    def has_expired(self, handle: str, owner: str) -> bool:
        """Return whether this owner's result is known to have been removed because of its age."""
        ...


class ResultPlaces(Protocol):
    """Where everybody's results are: a part of it for each owner."""

    def blobs_of(self, owner: str) -> ResultBlobs:
        """Return the place of *owner*'s results."""
        ...

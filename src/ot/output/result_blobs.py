"""The seam for where stored results live, files now, an object store later; and what is known about each."""

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
    """What is known about a stored result, as it is written beside it."""

    model_config = ConfigDict(frozen=True, strict=True)

    version: Literal[1] = 1
    handle: str
    total_lines: Count
    size_bytes: Count
    created_at: AwareDatetime
    tool: str
    owner: str
    form: Form = "text"


def is_older(since: datetime, now: datetime, ttl: timedelta) -> bool:
    """Tell whether something is older than *ttl*: at exactly that age it still lives.

    When the clock was set back, what seems to come from the future is new.
    """
    return max(now - since, timedelta()) > ttl


class HandleTaken(Exception):
    """Another result has this handle."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """What is known of a result once all of it has come."""

    meta: ResultMeta
    index: bytes


class ResultBlobs(Protocol):
    """Keeps the contents of results under their handles.

    Every method blocks and is called in a thread, several at the same time; several servers may share one place.
    Who may read what, and what has expired, is the store's to say: a place only keeps and returns.
    """

    def put(self, handle: str, chunks: Iterable[bytes | bytearray], seal: Callable[[], Sealed]) -> ResultMeta:
        """Keep *chunks* as they come, then what *seal* returns; nobody sees a part of a result.

        When anything fails, nothing is left, and errors of *chunks* come through.

        Raises:
            HandleTaken: Another result has this handle; no chunk was asked for.
            StorageFull: There is no room.
            ResultError: It cannot be kept for another reason.
        """
        ...

    def meta(self, handle: str) -> ResultMeta | None:
        """Return what *seal* returned, or nothing when it is damaged.

        Raises:
            FileNotFoundError: There is no such result, or no longer.
            ResultNotFound: What is there is none of ours.
            OSError: The place cannot be read.
        """
        ...

    def index(self, meta: ResultMeta) -> bytes:
        """Return the index of a result's lines; raises as *meta* does."""
        ...

    def open(self, meta: ResultMeta) -> BinaryIO:
        """Return the content, to be read from anywhere and closed: all of it, even when it is removed meanwhile.

        It raises as *meta* does.
        """
        ...

    def has_expired(self, handle: str, owner: str) -> bool:
        """Tell whether this owner's result is known to have been removed because of its age."""
        ...

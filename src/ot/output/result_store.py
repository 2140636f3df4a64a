"""Keeps large results, each for its owner, and reads them back a page or a part at a time."""

from __future__ import annotations

import io
import secrets
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO

from ot.errors import ResultError, ResultExpired, ResultNotFound
from ot.execution.tool_context import current_tool_context
from ot.output.result_blobs import HANDLE, Form, HandleTaken, ResultBlobs, ResultMeta, Sealed, is_older
from ot.output.result_lines import LineIndexBuilder, LineReader, count_blocks
from ot.output.result_pages import PageQuery, PageReader, ResultPage
from ot.output.result_values import ResultValues, plain_errors

MAX_OWNER_BYTES = 1024
MAX_TOOL_LENGTH = 200
SMALLEST_PAGE = 1024
"""A page of a few bytes could not even hold a character, and reading on would never end."""
_ATTEMPTS = 8
SAID_IF_ANY = ("note", "numbers")
"""Fields of a page that a program is told only if there is something in them."""


class ResultStore:
    """Stores each owner's results in a place of their own, which several servers may share.

    Every method blocks: call it in a thread. All of them may be called at the same time.
    """

    def __init__(
        self,
        blobs_of: Callable[[str], ResultBlobs],
        *,
        ttl: float,
        max_total_bytes: int,
        max_page_bytes: int,
        clock: Callable[[], float] = time.time,
        note_bytes: Callable[[int], None] | None = None,
    ) -> None:
        """Keep an owner's results in ``blobs_of(owner)``, within the size and for the time that each owner has.

        *note_bytes* is told the size of each result that was stored, in any thread.
        """
        self._note_bytes = note_bytes
        self._blobs_of = blobs_of
        self._ttl = timedelta(seconds=ttl)
        self._max_total_bytes = max_total_bytes
        self._max_page_bytes = max(max_page_bytes, SMALLEST_PAGE)
        self._clock = clock

    def put(self, chunks: Iterable[bytes | str], *, tool: str, owner: str, form: Form = "text") -> ResultMeta:
        """Store a result as it comes, never holding it whole.

        Raises:
            StorageFull: There is no room for it; nothing of it is left.
            ResultError: It could not be written for another reason; nothing of it is left.
        """
        if len(owner.encode()) > MAX_OWNER_BYTES:
            raise ValueError(f"the owner's name is longer than {MAX_OWNER_BYTES} bytes")
        for _ in range(_ATTEMPTS):
            with suppress(HandleTaken):
                stored = self._put(secrets.token_urlsafe(16), chunks, tool, owner, form)
                if self._note_bytes:
                    self._note_bytes(stored.size_bytes)
                return stored
        raise ResultError("the result could not be stored: no free handle was found; try again")

    def _put(self, handle: str, chunks: Iterable[bytes | str], tool: str, owner: str, form: Form) -> ResultMeta:
        index = LineIndexBuilder()

        def seal() -> Sealed:
            meta = ResultMeta(
                handle=handle,
                total_lines=index.total_lines,
                size_bytes=index.size,
                created_at=self._now(),
                tool=tool[:MAX_TOOL_LENGTH].encode(errors="backslashreplace").decode(),
                owner=owner,
                form=form,
            )
            return Sealed(meta, index.to_bytes())

        return self._blobs_of(owner).put(handle, count_blocks(chunks, index, self._max_total_bytes), seal)

    def describe(self, handle: str, *, owner: str) -> ResultMeta:
        """Return a result's metadata.

        Raises:
            ResultNotFound: This owner has no such result.
            ResultExpired: It is older than the TTL.
        """
        with self._find(handle, owner) as meta:
            return meta

    def page(self, handle: str, *, owner: str, **query: Any) -> ResultPage:
        """Return the lines that *query* asks for; it has the fields of a ``PageQuery``.

        Raises:
            TypeError, ValueError: The query makes no sense.
            ResultNotFound: This owner has no such result.
            ResultExpired: It is older than the TTL.
        """
        wanted = PageQuery(**query)
        with self._reading(handle, owner) as (_, lines):
            return PageReader(lines, self._max_page_bytes).page(wanted)

    def value(self, handle: str, *, owner: str, path: str, max_bytes: int) -> Any:
        """Return the part of a stored JSON value that *path* leads to, as plain data.

        Raises:
            ValueError, LookupError: The path makes no sense, or leads nowhere; the text says what there is.
            ResultNotFound, ResultExpired: As for a page.
        """
        with self._reading(handle, owner) as (meta, lines), plain_errors():
            return ResultValues(lines, meta.form).value(path, max_bytes)

    def outline(self, handle: str, *, owner: str, path: str) -> dict[str, Any]:
        """Describe a stored JSON value at *path*: its type, length, keys and how to go on.

        It raises as *value* does.
        """
        with self._reading(handle, owner) as (meta, lines), plain_errors():
            return ResultValues(lines, meta.form).outline(path)

    @contextmanager
    def open_content(self, handle: str, *, owner: str) -> Generator[BinaryIO]:
        """Yield a result's whole content as a file, to be read in blocks.

        Raises:
            ResultNotFound: This owner has no such result, or no longer.
            ResultExpired: It is older than the TTL.
            ResultError: It cannot be read.
        """
        with self._find(handle, owner) as meta, self._content(meta) as content:
            yield content

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    @contextmanager
    def _reading(self, handle: str, owner: str) -> Generator[tuple[ResultMeta, LineReader]]:
        with self._find(handle, owner) as meta, self._content(meta) as content:
            try:
                lines = LineReader(content, self._blobs_of(owner).index(meta), meta.size_bytes, meta.total_lines)
            except FileNotFoundError:
                raise ResultExpired(handle) from None  # a cleaner came after the meta was read
            except ValueError:
                raise ResultNotFound(handle) from None
            yield meta, lines

    @contextmanager
    def _find(self, handle: object, owner: str) -> Generator[ResultMeta]:
        if not isinstance(handle, str) or not HANDLE.fullmatch(handle):
            raise ResultNotFound(ascii(handle[:64])[1:-1] if isinstance(handle, str) else type(handle).__name__)
        try:
            yield self._meta(handle, owner)
        except FileNotFoundError:
            expired = self._blobs_of(owner).has_expired(handle, owner)
            raise (ResultExpired(handle) if expired else ResultNotFound(handle)) from None
        except OSError as error:
            raise ResultError(f"the stored result could not be read ({error.strerror})") from error

    def _meta(self, handle: str, owner: str) -> ResultMeta:
        meta = self._blobs_of(owner).meta(handle)
        if meta is None or meta.owner != owner:
            raise ResultNotFound(handle)
        if self._ttl and is_older(meta.created_at, self._now(), self._ttl):
            raise ResultExpired(handle)
        return meta

    def _content(self, meta: ResultMeta) -> BinaryIO:
        try:
            content = self._blobs_of(meta.owner).open(meta)
        except FileNotFoundError:
            raise ResultExpired(meta.handle) from None  # as above
        try:
            if content.seek(0, io.SEEK_END) != meta.size_bytes:
                raise ResultNotFound(meta.handle)
            content.seek(0)
        except BaseException:
            content.close()
            raise
        return content


def read_result(
    store: ResultStore, handle: str, *, max_bytes: int, path: str = "", outline: bool = False, **query: Any
) -> Any:
    """Return a page of the caller's result as a dict; with *path* the value there, with *outline* what it is made of.

    Raises:
        TypeError, ValueError, LookupError: The query makes no sense, or leads nowhere.
        ResultError: The result cannot be read.
    """
    owner = current_tool_context().caller.principal
    if not path and not outline:
        page = asdict(store.page(handle, owner=owner, **query))
        return {key: value for key, value in page.items() if value or key not in SAID_IF_ANY}
    if query.get("search") or query.get("offset", 1) != 1 or query.get("from_byte", 1) != 1:
        raise ValueError(
            "path and outline look at a value, offset, search and from_byte at lines: give one or the other"
        )
    if outline:
        return store.outline(handle, owner=owner, path=path)
    return store.value(handle, owner=owner, path=path, max_bytes=max_bytes)

"""Makes the content of a reply: format, sanitise, store if large, in this order."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any

import anyio.to_thread

from ot.config.models import Output
from ot.errors import ResultError
from ot.output import sanitize
from ot.output.formats import serialize_result
from ot.output.result_blobs import Form, ResultMeta
from ot.output.result_store import ResultStore
from ot.output.stored_text import stored_form, stored_text, unread_lines
from ot.values.jsonable import Describe, describe_type
from ot.values.parts import NotSerializable, TooManyParts, Unread, count_parts, holds_more
from ot_sdk.converter import kind_of

logger = logging.getLogger(__name__)

QUICK_NODES = 2_000
QUICK_CHARACTERS = 1 << 20
"""What is written out on the event loop; larger values are written out in a thread."""
PREVIEW_LINE = 500
BEGIN = 4
"""Pieces of a value that is stored unread, for its preview."""


@dataclass(frozen=True)
class Asked:
    """What a reply is to look like, and whose it is; *own_format* is that of the one tool that was called, if any."""

    format: object = None
    own_format: str | None = None
    sanitize: bool = False
    tools: Sequence[str] = ()
    owner: str = ""
    inline: bool = False
    handles: list[str] = field(default_factory=list[str])
    """Filled with those of what was stored."""

    @property
    def shown_format(self) -> object:
        """The format of what stands in the reply; what is stored is JSON unless the program asked for another."""
        return self.own_format if self.format is None else self.format


class Finish:
    """Turns values and prints into the texts of a reply."""

    def __init__(
        self,
        output: Output,
        store: ResultStore,
        redact: Callable[[str], str] = lambda text: text,
        value_parts: int = 150_000,
    ) -> None:
        """Store what is larger than ``output.max_inline_size``, or holds more than *value_parts*.

        *redact* takes secrets out before that.
        """
        self._output = output
        self._parts = value_parts
        self._store = store
        self._redact = redact
        self._collector = Collector()

    async def value(self, value: Any, asked: Asked, describe: Describe = describe_type) -> str:
        """Return the reply's text for a program's value, or raise NotSerializable."""
        try:
            if isinstance(value, Unread):
                raise TooManyParts("it was not read")
            if type(value) is not str or len(value) <= min(QUICK_CHARACTERS, self._output.max_inline_size):
                text = serialize_result(value, asked.shown_format, describe, max_nodes=QUICK_NODES)
                if asked.inline or not self._too_large(text):
                    return self._wrap(text, asked)
        except TooManyParts:
            pass
        return await anyio.to_thread.run_sync(partial(self._value, value, asked, describe), abandon_on_cancel=True)

    async def text(self, text: str, asked: Asked) -> str:
        """Return the reply's text for something printed or for an error."""
        if not self._too_large(text):
            return self._wrap(text, asked)
        return await anyio.to_thread.run_sync(partial(self._store_text, text, asked, "text"), abandon_on_cancel=True)

    async def keep(self, value: Any, *, tool: str, owner: str) -> str:
        """Store a value that is too large for a program and return its handle, or nothing if it cannot be stored."""
        return await anyio.to_thread.run_sync(partial(self._keep, value, tool, owner), abandon_on_cancel=True)

    def _keep(self, value: Any, tool: str, owner: str) -> str:
        try:
            if isinstance(value, Unread):
                lines = map(self._redact, unread_lines(value))
                return self._store.put(lines, tool=tool, owner=owner, form="json").handle
            count_parts(value)
            text = self._redact(stored_text(value, None))
            return self._store.put([text], tool=tool, owner=owner, form=stored_form(value, None)).handle
        except (ResultError, ValueError) as error:
            logger.warning("the value of %s could not be stored: %s", tool, error)
            return ""

    def _value(self, value: Any, asked: Asked, describe: Describe) -> str:
        if isinstance(value, Unread):
            return self._unread(value, asked)
        count_parts(value)
        with self._collector.hold_off():
            return self._write_out(value, asked, describe)

    def _unread(self, value: Unread, asked: Asked) -> str:
        """Store a value as it is read, a little at a time."""
        begin: list[str] = []

        def lines() -> Generator[str]:
            for piece in unread_lines(value):
                text = self._redact(piece)
                text = sanitize.neutralize(text, in_json=True) if asked.sanitize else text
                if len(begin) < BEGIN:
                    begin.append(text)
                yield text

        source = lines()
        try:
            stored = self._store.put(source, tool=", ".join(asked.tools), owner=asked.owner, form="json")
        except ResultError as error:
            for _ in islice(source, BEGIN - len(begin)):
                pass  # a place that is not there asked for nothing
            return self._cut(
                "".join(begin), f"it holds more than {self._parts:,} parts (limits.value_parts)", error, asked
            )
        except ValueError as error:
            raise NotSerializable(str(error)) from None
        asked.handles.append(stored.handle)
        text = "".join(begin)
        what = "keys" if text.startswith("{") else "items"
        kind = f"{stored.total_lines:,} {what}, one a line"
        return self._wrap(serialize_result(self._summary(stored, text, kind)), asked)

    def _write_out(self, value: Any, asked: Asked, describe: Describe) -> str:
        if holds_more(value, self._parts):
            stored = stored_text(value, None, describe)
            return self._store_text(stored, asked, _kind(value, stored), stored_form(value, None))
        text = serialize_result(value, asked.shown_format, describe)
        if asked.inline or not self._too_large(text):
            return self._wrap(text, asked)
        stored = stored_text(value, asked.format, describe)
        return self._store_text(stored, asked, _kind(value, stored), stored_form(value, asked.format))

    def _too_large(self, text: str) -> bool:
        most = self._output.max_inline_size
        return bool(most) and len(text) * 4 > most and len(text.encode()) > most

    def _wrap(self, text: str, asked: Asked) -> str:
        return sanitize.wrap(text, asked.tools) if asked.sanitize else text

    def _store_text(self, text: str, asked: Asked, kind: str, form: Form = "text") -> str:
        text = self._redact(text)
        if asked.sanitize:
            text = sanitize.neutralize(text, in_json=form == "json")
        try:
            stored = self._store.put([text], tool=", ".join(asked.tools), owner=asked.owner, form=form)
        except ResultError as error:
            return self._cut(text, f"the result has {len(text):,} characters", error, asked)
        asked.handles.append(stored.handle)
        return self._wrap(serialize_result(self._summary(stored, text, kind)), asked)

    def _cut(self, text: str, size: str, error: ResultError, asked: Asked) -> str:
        """Return as much of a result as fits into the reply, since the rest is kept nowhere."""
        logger.warning("a result could not be stored: %s", error)
        kept = text.encode()[: self._output.max_inline_size].decode(errors="ignore")
        return self._wrap(f"{kept}\n[truncated: {size} and {error}]", asked)

    def _summary(self, stored: ResultMeta, text: str, kind: str) -> dict[str, Any]:
        lines = text[: self._output.preview_lines * PREVIEW_LINE * 4].split("\n")[: self._output.preview_lines]
        values = "; outline=True tells its parts, path= gives them as values" if stored.form == "json" else ""
        return {
            "handle": stored.handle,
            "total_lines": stored.total_lines,
            "size_bytes": stored.size_bytes,
            "summary": f"{kind}: {stored.total_lines:,} lines, {stored.size_bytes:,} bytes, "
            f"stored because it is large{values}",
            "preview": "\n".join(line[:PREVIEW_LINE] for line in lines),
            "query": f"ot.result(handle='{stored.handle}', offset=1, limit=50)",
        }


class Collector:
    """Holds Python's garbage collector off while large values are written out.

    What is built then holds no cycles, and every full pass over its parts would stop the whole server.
    """

    def __init__(self) -> None:
        """Leave it on."""
        self._lock = Lock()
        self._holders = 0

    @contextmanager
    def hold_off(self) -> Generator[None]:
        """Keep it off until the last of those who asked for it has left."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, step: int) -> None:
        with self._lock:
            self._holders += step
            (gc.disable if self._holders else gc.enable)()


def _kind(value: Any, text: str) -> str:
    kind = kind_of(value)
    if kind not in (list, tuple, set, dict):
        return "text"
    parts = "keys" if kind is dict else "items"
    return f"{kind.__name__} of {len(value):,} {parts}" + (", one a line" if text.count("\n") + 1 == len(value) else "")

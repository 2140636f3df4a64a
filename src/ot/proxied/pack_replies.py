"""PackReply: what another OneTool answers to a call: the value with its types, or the error as it was over there."""

from __future__ import annotations

import tempfile
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

import anyio.to_thread
import orjson

from ot.errors import ServerUnavailable, ToolFailed
from ot.execution.failure_form import error_of_form
from ot.registry.announced_tool import FORM, META, form_of, mapping_of, read_meta
from ot.registry.proxy_target import BLOCK
from ot.registry.tool import Tool
from ot.values.parts import Unread, has_many_parts
from ot_sdk import tagged
from ot_sdk.redaction import Redactor

if TYPE_CHECKING:
    from fastmcp import Client

REQUEST_META: Mapping[str, Any] = {META: {"form": FORM}}
"""What a request says to another OneTool."""
ENDING = "ServerEnding"
QUICK_BYTES = 64 << 10
MAX_VALUE_BYTES = 64 << 20
"""Of the text of a value that is read here; a larger one is stored as it is."""
MAX_VALUE_PARTS = 1_000_000
"""As many as a value within the default of limits.value_parts has when each is tagged."""
MAX_STORED_BYTES = 1 << 30
OVERLAP_BYTES = 64 << 10
HELD_BYTES = 8 << 20
"""Of a stored value that is held in memory; more of it waits in a file."""
StoredForm = Literal["text", "json", "tagged"]
"""What the text of a stored result is."""
FORMS: Mapping[str, StoredForm] = {"text": "text", "json": "json", "tagged": "tagged"}


@dataclass(frozen=True)
class CopiedResult:
    """A value that is too large for a program, copied from over there on its way into the store."""

    file: BinaryIO
    form: StoredForm
    size: str


class PackReply:
    """One answer; what it says is the other end's word, and is held to its form."""

    def __init__(self, tool: Tool, result: Mapping[str, Any]) -> None:
        """Read the *result* of a call of *tool*, in wire form."""
        self._tool = tool
        self._held = mapping_of(result.get("structuredContent"))
        self._stored = mapping_of(self._held.get("stored"))
        self._copied: BinaryIO | None = None
        self.blocks = [_read_block(block) for block in result.get("content") or () if block.get("type") != "text"]
        """Non-text content, each with the name that the value has for it, if any."""
        self.revision = str((form_of(result) or {}).get("revision") or "")

    @property
    def printed(self) -> str:
        """What the tool printed."""
        printed = self._held.get("printed")
        return printed if isinstance(printed, str) else ""

    async def fetch(self, client: Client[Any], redactor: Redactor) -> None:
        """Copy what is stored over there, page by page; *redactor* takes this server's secrets out of it.

        Raises:
            ServerUnavailable: It is not all there.
        """
        if not self._stored or "failure" in self._held:
            return
        size = self._stored.get("bytes")
        if not isinstance(size, int) or not 0 <= size <= MAX_STORED_BYTES:
            raise self._unreadable("its size is malformed")
        file = cast("BinaryIO", tempfile.SpooledTemporaryFile(HELD_BYTES))  # noqa: SIM115 - closed by whoever reads it
        try:
            await self._copy(client, file, size, redactor)
        except BaseException:
            file.close()
            raise
        self._copied = file

    async def _copy(self, client: Client[Any], file: BinaryIO, size: int, redactor: Redactor) -> None:
        start, held = 0, b""
        while start < size:
            page = await _page(client, f"ot://result/{self._stored.get('handle')}/{start}")
            if not page or start + len(page) > size:
                raise self._unreadable("its size differs from the announced one")
            start += len(page)
            # The end of a page may be the beginning of a secret.
            held = redactor.data(held + page)
            file.write(held[:-OVERLAP_BYTES])
            held = held[-OVERLAP_BYTES:]
        file.write(held)
        file.seek(0)

    async def value(self) -> Any:
        """Return the value, Unread where it has too many parts, or a CopiedResult where it is too large.

        Raises:
            ToolError: The call failed over there, or what came cannot be read.
        """
        if failure := mapping_of(self._held.get("failure")):
            raise error_of_form(failure, self._tool)
        if self._copied is None:
            text = self._held.get("value")
            return await self._decode_apart(text.encode() if isinstance(text, str) else b"")
        form, bytes, size = str(self._stored.get("form")), self._stored["bytes"], self._held.get("too_large")
        if size is not None or form != "tagged" or bytes > MAX_VALUE_BYTES:
            words = str(size)[:100] if size else f"{bytes:,} bytes"
            return CopiedResult(self._copied, FORMS.get(form, "text"), words)
        with self._copied as file:
            return await self._decode_apart(file.read())

    async def _decode_apart(self, data: bytes) -> Any:
        if len(data) <= QUICK_BYTES:
            return self._decode(data)
        return await anyio.to_thread.run_sync(self._decode, data, abandon_on_cancel=True)

    def _decode(self, data: bytes) -> Any:
        if len(data) > QUICK_BYTES and has_many_parts(data, MAX_VALUE_PARTS):
            return Unread(data)
        try:
            return tagged.decode(orjson.loads(data))
        except ValueError as error:
            why = f"its host sent a value that cannot be read: {error}"
            raise ToolFailed(self._tool.full_name, "ValueError", why) from None

    def _unreadable(self, why: str) -> ServerUnavailable:
        return ServerUnavailable(self._tool.pack, f"its large value could not be read: {why}", unknown=True)


def _read_block(block: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return a block as it was, and the name that the value has for it."""
    meta = {key: value for key, value in mapping_of(block.get("_meta")).items() if key != META}
    plain = {key: value for key, value in block.items() if key != "_meta"}
    return plain | ({"_meta": meta} if meta else {}), str(read_meta(block).get(BLOCK, ""))


async def _page(client: Client[Any], uri: str) -> bytes:
    contents = (await client.read_resource_mcp(uri)).contents
    blob = getattr(contents[0], "blob", "") if contents else ""
    return b64decode(blob)


def ending(result: Mapping[str, Any], server: str) -> ServerUnavailable | None:
    """Return the error for a call that a server did not take, or cut off, because it is shutting down."""
    told = read_meta(result)
    if told.get("error") != ENDING:
        return None
    return ServerUnavailable(server, "it is shutting down", unknown=told.get("begun") is not False)


def progress_of(message: str | None) -> dict[str, Any] | None:
    """Return another OneTool's progress of a call, or nothing if it only says that the call goes on."""
    try:
        told: Any = orjson.loads(message or "null")
    except ValueError:
        return None
    if not (found := mapping_of(told)):
        return None
    numbers = {key: found[key] for key in ("done", "total") if isinstance(found.get(key), int | float)}
    text = found.get("message")
    return {"done": None, "total": None, **numbers, "message": text if isinstance(text, str) else ""}

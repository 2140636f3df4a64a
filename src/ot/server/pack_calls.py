"""Calls from another OneTool: arguments and values cross whole and with their types, and failures as what they are."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio.to_thread
import orjson
from fastmcp import Context

from ot.errors import InvalidArguments, OneToolError, ResultError, ResultTooLarge, ToolFailed
from ot.execution.caller import Caller
from ot.execution.failure_form import failure_form
from ot.registry.announced_tool import FORM, IDEMPOTENCY_KEY, META, form_of, mapping_of
from ot.registry.proxy_target import BLOCK
from ot.registry.tool import Tool
from ot.runtime.reply import BareReply, Reply, block_ids
from ot.runtime.run_events import Progress, RunEvent, TellEvent
from ot.server.pack_tools import PackTools
from ot.servers.call import block_id
from ot.values.parts import NotSerializable, count_parts
from ot.values.plain import where_quick
from ot.workspace import Workspace
from ot_sdk import tagged
from ot_sdk.errors import NotPlain
from ot_sdk.redaction import redact_value

QUICK_NODES = 2_000
QUICK_TEXT = 64 << 10
KEY = re.compile(r"[!-~]{1,200}")
"""A call's key from elsewhere: it goes on to packs, into headers and logs."""
INLINE_BYTES = 4 << 20
"""What a reply carries; a larger value is stored, and read in pages."""
MOST_NEWS = 1000
"""Progress that waits to be sent; of more, the oldest is dropped."""


@dataclass(frozen=True)
class FormedReply(Reply):
    """The reply to another OneTool."""

    form: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


def wants_form(ctx: Context) -> bool:
    """Return whether whoever sends the request is a OneTool that reads the form of this one."""
    request: Any = ctx.request_context
    return form_of({"_meta": request.meta if request else None}) is not None


def key_of(ctx: Context) -> str:
    """Return the key by which whoever sends the request knows its call; nothing where it has none that is usable."""
    request: Any = ctx.request_context
    given = mapping_of(request.meta if request else None).get(IDEMPOTENCY_KEY)
    return given if isinstance(given, str) and KEY.fullmatch(given) else ""


async def carry_out_call(
    tool: Tool,
    arguments: Mapping[str, Any],
    workspace: Workspace,
    offered: PackTools,
    *,
    caller: Caller,
    tell: TellEvent | None = None,
    key: str = "",
) -> FormedReply:
    """Return what a call of *tool* comes to, for another OneTool; a failure is a reply too.

    It says of which revision of *offered* it is, so that a changed pack is noticed over there.
    """
    try:
        given = await where_quick(arguments, lambda: tagged.decode(dict(arguments)))
    except ValueError as error:
        return _failure(InvalidArguments(tool.full_name, f"{tool.full_name}(): the arguments are malformed: {error}"))
    reply = await workspace.call(tool.pack, tool.name, given, caller, tell=tell, bare=True, key=key)
    assert isinstance(reply, BareReply)
    told = {"printed": reply.printed} if reply.printed else {}
    form = await _form(reply, tool, workspace, caller.principal)
    meta = {**reply.meta, "form": FORM, "revision": offered.revision(workspace.picture.registry)}
    blocks = name_blocks(reply.blocks, reply.value)
    return FormedReply((), "failure" in form, meta, blocks, form={**form, **told})


def _failure(error: OneToolError) -> FormedReply:
    return FormedReply((), True, {"form": FORM}, form={"failure": failure_form(error)})


async def _form(reply: BareReply, tool: Tool, workspace: Workspace, owner: str) -> dict[str, Any]:
    """Return a value, where it is stored, or the failure, without the secrets of this host."""
    try:
        if reply.failure:
            raise reply.failure
        return await _value_form(reply.value, tool, workspace, owner)
    except ResultTooLarge as error:
        return await anyio.to_thread.run_sync(_too_large_form, error, workspace, owner)
    except OneToolError as error:
        return {"failure": redact_value(failure_form(error), workspace.picture.loaded.secrets.redact)}


async def _value_form(value: Any, tool: Tool, workspace: Workspace, owner: str) -> dict[str, Any]:
    work = partial(_write_value, value, tool, workspace, owner)
    return work() if _is_small(value) else await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


def _is_small(value: Any) -> bool:
    if isinstance(value, str | bytes):
        return len(value) <= QUICK_TEXT
    try:
        return count_parts(value, QUICK_NODES) > 0
    except NotSerializable:
        return False


def _write_value(value: Any, tool: Tool, workspace: Workspace, owner: str) -> dict[str, Any]:
    """Return a value as the text of its tagged JSON, or where that is stored."""
    redact = workspace.picture.loaded.secrets.redact
    try:
        encoder = tagged.Encoder(redact=redact, redact_bytes=partial(redact_value, redact=redact))
        encoded = orjson.dumps(encoder.convert(value))
        if len(encoded) <= INLINE_BYTES:
            return {"value": encoded.decode()}
        stored = workspace.picture.store.put([encoded], tool=tool.full_name, owner=owner, form="tagged")
    except NotPlain as error:
        raise ToolFailed(tool.full_name, "ValueError", str(error)) from None
    except ResultError as error:
        raise ToolFailed(tool.full_name, "ResultTooLarge", f"its large value could not be stored: {error}") from None
    return {"stored": {"handle": stored.handle, "bytes": stored.size_bytes, "form": stored.form}}


def _too_large_form(error: ResultTooLarge, workspace: Workspace, owner: str) -> dict[str, Any]:
    """Return where a value is stored that is too large for a program, and that it is."""
    try:
        stored = workspace.picture.store.describe(error.handle, owner=owner)
    except ResultError:
        return {"failure": failure_form(error)}
    where = {"handle": stored.handle, "bytes": stored.size_bytes, "form": stored.form}
    return {"stored": where, "too_large": error.size}


def name_blocks(blocks: Sequence[Mapping[str, Any]], value: Any) -> tuple[Mapping[str, Any], ...]:
    """Return *blocks* with the names that *value* has for them, each in its ``_meta``."""
    known = set(block_ids(value)) if blocks else set[str]()
    ids = ((block, block_id(block)) for block in blocks)
    return tuple(_name_block(block, id) if id in known else block for block, id in ids)


def _name_block(block: Mapping[str, Any], id: str) -> dict[str, Any]:
    return {**block, "_meta": {**mapping_of(block.get("_meta")), META: {BLOCK: id}}}


class ProgressRelay:
    """Sends all that tools tell of their progress, in order, as the other OneTool reads it."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._news: deque[Progress] = deque(maxlen=MOST_NEWS)
        self._told = asyncio.Event()
        self._ended = False

    def tell(self, event: RunEvent) -> None:
        """Take news of progress."""
        if isinstance(event, Progress):
            self._news.append(event)
            self._told.set()

    def end(self) -> None:
        """Let it end once all is sent."""
        self._ended = True
        self._told.set()

    async def send(self) -> None:
        """Send until the end; progress over MCP only ever grows, so it counts what was sent."""
        count = 0
        while self._news or not self._ended:
            await self._told.wait()
            self._told.clear()
            while self._news:
                news, count = self._news.popleft(), count + 1
                told = {"done": news.done, "total": news.total, "message": news.message}
                await self._ctx.report_progress(count, None, orjson.dumps(told, default=str).decode())


async def with_relay[T](ctx: Context, work: Callable[[TellEvent | None], Awaitable[T]]) -> T:
    """Return what *work* returns, after all that tools tell meanwhile was sent."""
    relay = ProgressRelay(ctx)
    sending = asyncio.ensure_future(relay.send())
    try:
        came = await work(relay.tell)
        relay.end()
        await sending
        return came
    finally:
        sending.cancel()

"""Replies to another OneTool: values cross whole and with their types, and failures as what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import anyio.to_thread
import orjson

from ot.errors import OneToolError, ResultError, ResultTooLarge, ToolFailed
from ot.execution.failure_form import failure_form
from ot.proxied.call import block_id
from ot.registry.announced_tool import FORM, META, mapping_of
from ot.registry.proxy_target import BLOCK
from ot.registry.tool import Tool
from ot.runtime.reply import BareReply, block_ids
from ot.server.pack_calls import FormedReply
from ot.values.parts import NotSerializable, count_parts
from ot.workspace import Workspace
from ot_sdk import tagged
from ot_sdk.errors import NotPlain
from ot_sdk.redaction import redact_value

QUICK_NODES = 2_000
QUICK_TEXT = 64 << 10
INLINE_BYTES = 4 << 20
"""What a reply carries; a larger value is stored, and read in pages."""


async def form_reply(reply: BareReply, tool: Tool, workspace: Workspace, owner: str, revision: str) -> FormedReply:
    """Return *reply* for another OneTool, with the *revision* of the packs: it notices there that one has changed."""
    told = {"printed": reply.printed} if reply.printed else {}
    form = await _form(reply, tool, workspace, owner)
    meta = {**reply.meta, "form": FORM, "revision": revision}
    blocks = name_blocks(reply.blocks, reply.value)
    return FormedReply((), "failure" in form, meta, blocks, form={**form, **told})


def form_failure(error: OneToolError) -> FormedReply:
    """Return the reply to a call that was not made."""
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

"""Makes of a server's result the value that a program gets, and the blocks that go to the reply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ot.errors import ToolFailed

WRAPPED = "x-fastmcp-wrap-result"
Block = Mapping[str, Any]


def tool_value(tool: str, result: Mapping[str, Any], output_schema: Mapping[str, Any] | None) -> Any:
    """Return the program's value of a ``tools/call`` result in wire form.

    Structured content is the value; else the one content block, or the list of several; else None.

    Raises:
        ToolFailed: The server says that the tool failed.
    """
    blocks: Sequence[Block] = result.get("content") or ()
    structured = result.get("structuredContent")
    if result.get("isError"):
        why = _words(blocks) or _written(structured) or "the server says that it failed, and not why"
        raise ToolFailed(tool, "RuntimeError", why)
    if structured is not None:
        return _unwrapped(structured, result, output_schema)
    return one_or_all([block_value(block) for block in blocks])


def _unwrapped(structured: Any, result: Mapping[str, Any], output_schema: Mapping[str, Any] | None) -> Any:
    meta: Mapping[str, Any] = result.get("_meta") or {}
    told: Mapping[str, Any] = meta.get("fastmcp") or {}
    wrapped = told.get("wrap_result") or (output_schema or {}).get(WRAPPED)
    return structured["result"] if wrapped and set(structured) == {"result"} else structured


def one_or_all(values: list[Any]) -> Any:
    """Return None for no values, the one of one, the list of several."""
    return None if not values else values[0] if len(values) == 1 else values


def block_value(block: Block) -> Any:
    """Return what stands for a content block in a program: text is text, anything else a small dict."""
    kind = block.get("type")
    if kind == "text":
        return block.get("text", "")
    if kind == "resource":
        return {"type": kind, **resource_value(block.get("resource") or {})}
    value: dict[str, Any] = {"type": kind}
    if "mimeType" in block:
        value["mime_type"] = block["mimeType"]
    if "data" in block:
        value["size"] = _size(block["data"])
    return value | {key: block[key] for key in ("uri", "name", "title", "description", "size") if key in block}


def resource_value(resource: Block) -> dict[str, Any]:
    """Return a resource as a program gets it: its text, or the size of its data."""
    value: dict[str, Any] = {"uri": resource.get("uri", "")}
    if "mimeType" in resource:
        value["mime_type"] = resource["mimeType"]
    if "text" in resource:
        return value | {"text": resource["text"]}
    return value | {"size": _size(resource.get("blob", ""))}


def media(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks that are no text: those go to the reply."""
    return [block for block in blocks if block.get("type") != "text"]


def _size(data: str) -> int:
    """Return how many bytes base64 stands for, which nobody needs to decode for that."""
    return len(data) * 3 // 4 - data[-2:].count("=")


def _words(blocks: Sequence[Block]) -> str:
    inner: list[Any] = [block.get("resource") or block for block in blocks]
    return "\n".join(part["text"] for part in inner if part.get("text"))


def _written(structured: Any) -> str:
    return json.dumps(structured, ensure_ascii=False, separators=(",", ":")) if structured else ""

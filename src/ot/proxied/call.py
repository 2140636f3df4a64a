"""One request to a server: how far it got, what it tells its caller, and the value that a program gets of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import orjson

from ot.errors import InvalidArguments, ToolFailed
from ot.execution.call_context import CallContext
from ot.proxied.call_trace import CallTrace, current_trace
from ot.proxied.pack_replies import REQUEST_META, PackReply, ending, progress_of
from ot.registry.announced_tool import IDEMPOTENCY_KEY, form_of
from ot.registry.proxy_target import BLOCK, ProxyTarget
from ot.registry.tool import Tool
from ot.values.parts import Unread
from ot.values.plain import where_quick
from ot_sdk import tagged
from ot_sdk.errors import NotPlain
from ot_sdk.redaction import Redactor

if TYPE_CHECKING:
    from fastmcp import Client


BOOKKEEPING = ("fastmcp", "io.modelcontextprotocol/")
"""What the protocol and its library write into ``_meta`` for themselves."""
WRAPPED = "x-fastmcp-wrap-result"
Block = Mapping[str, Any]


class ServerCall:
    """Asks for what a target names: a tool, or one of the methods that every server may have."""

    def __init__(
        self,
        tool: Tool,
        target: ProxyTarget,
        arguments: Mapping[str, Any],
        context: CallContext,
        redactor: Callable[[], Redactor] = Redactor,
    ) -> None:
        """Call *target* with *arguments* for *tool*; *redactor* takes out what the server was given."""
        self._redactor = redactor
        self._of = tool
        self._full_name = tool.full_name
        self._target = target
        self._arguments = target.rename_arguments(arguments)
        self._context = context
        self._trace: CallTrace | None = None

    async def __call__(self, client: Client[Any]) -> Any:
        """Return a tool's result in wire form, or the value of a method; raise what the connection or server did."""
        from mcp import MCPError  # noqa: PLC0415 - as below

        self._trace = current_trace.get()
        try:
            return await self._answer(client)
        except MCPError as error:
            # An answer that was too large to be read comes as an error of our own.
            if isinstance(error.error.data, Unread):
                return error.error.data
            raise

    async def _answer(self, client: Client[Any]) -> Any:
        match self._target.method:
            case "resources/list":
                return await self._resources(client)
            case "resources/read":
                return await self._resource(client)
            case "prompts/list":
                return [_entry(prompt) for prompt in await client.list_prompts()]
            case "prompts/get":
                return await self._prompt(client)
            case _:
                return await self._tool(client)

    async def _tool(self, client: Client[Any]) -> dict[str, Any] | PackReply:
        from ot.proxied.questions import call_in_rounds  # noqa: PLC0415 - imports the protocol's library

        meta: dict[str, Any] = {IDEMPOTENCY_KEY: self._context.key} if self._context.key else {}
        arguments = self._arguments
        if self._target.form:
            meta |= REQUEST_META
            arguments = await where_quick(arguments, lambda: _encode(self._of, self._arguments))
        result = await call_in_rounds(client.session, self._target.tool, arguments, self._progress, meta)
        # As it came: only the program needs to understand it.
        structured = {} if result.structured_content is None else {"structuredContent": result.structured_content}
        answer = wire_form(result, exclude={"structured_content"}) | structured
        return await self._of_pack(client, answer) if self._target.form else answer

    async def _of_pack(self, client: Client[Any], answer: dict[str, Any]) -> dict[str, Any] | PackReply:
        """Return the answer of another OneTool, with what it has stored for it."""
        if gone := ending(answer, self._target.server):
            raise gone
        if form_of(answer) is None:
            return answer
        reply = PackReply(self._of, answer)
        await reply.fetch(client, self._redactor())
        return reply

    async def value(self, result: Any, output_schema: Mapping[str, Any] | None) -> Any:
        """Return the program's value of an answer, and tell the caller of non-text blocks.

        Raises:
            ToolError: The server says that the tool failed.
        """
        if self._target.method or isinstance(result, Unread):
            return result
        if isinstance(result, PackReply):
            return await self._value_of_pack(result)
        # A program cannot return the blocks that stand beside a structured value: they go to the reply by themselves.
        beside = result.get("structuredContent") is not None
        self._tell_all(_media(result.get("content") or ()), result.get("_meta"), beside=beside)
        return tool_value(self._full_name, result, output_schema)

    async def _value_of_pack(self, reply: PackReply) -> Any:
        for block, id in reply.blocks:
            self._tell("content", {"block": block, "id": id})
        if reply.printed:
            self._tell("print", {"text": reply.printed})
        return await reply.value()

    # ---------------------------------------------------------------- methods

    async def _resources(self, client: Client[Any]) -> list[dict[str, Any]]:
        found: list[Any] = list(await client.list_resources())
        # Servers that have no templates may not know the question either.
        with suppress(Exception):
            found += await client.list_resource_templates()
        return [_entry(resource) for resource in found]

    async def _resource(self, client: Client[Any]) -> Any:
        result = wire_form(await client.read_resource_mcp(str(self._arguments["uri"])))
        contents: list[dict[str, Any]] = result.get("contents") or []
        data = [{"type": "resource", "resource": content} for content in contents if "blob" in content]
        self._tell_all(data, result.get("_meta"))
        return _one_or_all([content.get("text", _data_value(content)) for content in contents])

    async def _prompt(self, client: Client[Any]) -> dict[str, Any]:
        name, arguments = str(self._arguments["name"]), self._arguments.get("arguments")
        result = wire_form(await client.get_prompt_mcp(name, arguments or None))
        messages: list[dict[str, Any]] = result.get("messages") or []
        self._tell_all(_media([message["content"] for message in messages]), result.get("_meta"))
        shown = [{"role": message["role"], "content": _block_value(message["content"])} for message in messages]
        return {"description": result.get("description") or "", "messages": shown}

    # ---------------------------------------------------------------- telling

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._trace:
            self._trace.begun = True
        if not self._target.form:
            self._tell("progress", {"done": _short(progress), "total": _short(total), "message": message or ""})
        elif told := progress_of(message):
            self._tell("progress", told)

    def _tell_all(self, blocks: Sequence[Block], meta: Mapping[str, Any] | None, *, beside: bool = False) -> None:
        for block in blocks:
            self._tell("content", {"block": block, "id": "" if beside else block_id(block)})
        own = {key: value for key, value in (meta or {}).items() if not key.startswith(BOOKKEEPING)}
        if own:
            self._tell("meta", {"meta": own})

    def _tell(self, what: str, details: Mapping[str, Any]) -> None:
        if self._context.told:
            self._context.told(what, self._full_name, details)


def _encode(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return *arguments* with what JSON has no type for tagged, as another OneTool reads them."""
    try:
        return {name: tagged.encode(value) for name, value in arguments.items()}
    except NotPlain as error:
        raise InvalidArguments(tool.full_name, f"{tool.full_name}(): {error}") from None


def wire_form(model: Any, exclude: set[str] | None = None) -> dict[str, Any]:
    """Return a model of the protocol's library as plain data, as it came over the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_unset=True, exclude=exclude)


def _entry(model: Any) -> dict[str, Any]:
    """Return a list's entry with the names that a Python program expects, and without what is only for clients."""
    names = {"mimeType": "mime_type", "uriTemplate": "uri_template"}
    return {names.get(key, key): value for key, value in wire_form(model).items() if key not in ("_meta", "icons")}


def _short(number: float | None) -> float | int | None:
    return int(number) if number is not None and number.is_integer() else number


def tool_value(tool: str, result: Mapping[str, Any], output_schema: Mapping[str, Any] | None) -> Any:
    """Return the program's value of a ``tools/call`` result in wire form.

    Structured content is the value; else the one content block, or the list of several; else None.

    Raises:
        ToolFailed: The server says that the tool failed.
    """
    blocks: Sequence[Block] = result.get("content") or ()
    structured = result.get("structuredContent")
    if result.get("isError"):
        why = _words(blocks) or _write(structured) or "the server says that it failed, but not why"
        raise ToolFailed(tool, "RuntimeError", why)
    if structured is not None:
        return _unwrap(structured, result, output_schema)
    return _one_or_all([_block_value(block) for block in blocks])


def _unwrap(structured: Any, result: Mapping[str, Any], output_schema: Mapping[str, Any] | None) -> Any:
    meta: Mapping[str, Any] = result.get("_meta") or {}
    told: Mapping[str, Any] = meta.get("fastmcp") or {}
    wrapped = told.get("wrap_result") or (output_schema or {}).get(WRAPPED)
    return structured["result"] if wrapped and set(structured) == {"result"} else structured


def _one_or_all(values: list[Any]) -> Any:
    """Return None for no values, the one of one, the list of several."""
    return None if not values else values[0] if len(values) == 1 else values


def _block_value(block: Block) -> Any:
    """Return a program's form of a content block: text is text, anything else a small dict."""
    kind = block.get("type")
    if kind == "text":
        return block.get("text", "")
    if kind == "resource":
        return {"type": kind, **_resource_value(block.get("resource") or {}), BLOCK: block_id(block)}
    value: dict[str, Any] = {"type": kind, BLOCK: block_id(block)}
    if "mimeType" in block:
        value["mime_type"] = block["mimeType"]
    if "data" in block:
        value["size"] = _size(block["data"])
    return value | {key: block[key] for key in ("uri", "name", "title", "description", "size") if key in block}


def block_id(block: Block) -> str:
    """Return the id of a content block in a program's values, by which the reply finds it when it is returned."""
    return hashlib.blake2b(orjson.dumps(block), digest_size=6).hexdigest()


def _data_value(content: Block) -> dict[str, Any]:
    return {**_resource_value(content), BLOCK: block_id({"type": "resource", "resource": content})}


def _resource_value(resource: Block) -> dict[str, Any]:
    """Return a resource as a program gets it: its text, or the size of its data."""
    value: dict[str, Any] = {"uri": resource.get("uri", "")}
    if "mimeType" in resource:
        value["mime_type"] = resource["mimeType"]
    if "text" in resource:
        return value | {"text": resource["text"]}
    return value | {"size": _size(resource.get("blob", ""))}


def _media(blocks: Sequence[Block]) -> list[Block]:
    """Return the non-text blocks, which go to the reply."""
    return [block for block in blocks if block.get("type") != "text"]


def _size(data: str) -> int:
    """Return how many bytes base64 encodes, without decoding it."""
    return len(data) * 3 // 4 - data[-2:].count("=")


def _words(blocks: Sequence[Block]) -> str:
    inner: list[Any] = [block.get("resource") or block for block in blocks]
    return "\n".join(part["text"] for part in inner if part.get("text"))


def _write(structured: Any) -> str:
    return json.dumps(structured, ensure_ascii=False, separators=(",", ":")) if structured else ""

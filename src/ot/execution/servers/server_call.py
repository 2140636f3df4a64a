"""ServerCall: one request to a server, and what it tells its caller besides the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ot.execution.call_context import CallContext
from ot.execution.servers.tool_content import block_value, media, one_or_all, resource_value, tool_value
from ot.execution.unread import Unread
from ot.registry.proxy_target import ProxyTarget

if TYPE_CHECKING:
    from fastmcp import Client

BOOKKEEPING = ("fastmcp", "io.modelcontextprotocol/")
"""What the protocol and its library write into ``_meta`` for themselves."""


class ServerCall:
    """Asks for what a target names: a tool, or one of the methods that every server may have."""

    def __init__(self, full_name: str, target: ProxyTarget, arguments: Mapping[str, Any], context: CallContext) -> None:
        """Call *target* with *arguments* for the tool that programs know as *full_name*."""
        self._full_name = full_name
        self._target = target
        self._arguments = target.sent(arguments)
        self._context = context

    async def __call__(self, client: Client[Any]) -> Any:
        """Return the answer: a tool's result in wire form, or the value of a method.

        Raises:
            Exception: Whatever the connection or the server did.
        """
        from mcp import MCPError  # noqa: PLC0415 - as below

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

    async def _tool(self, client: Client[Any]) -> dict[str, Any]:
        from ot.execution.servers.tool_rounds import call_in_rounds  # noqa: PLC0415 - needs the protocol's library

        result = await call_in_rounds(client.session, self._target.tool, self._arguments, self._progress)
        # As it came: what it is made of is nobody's business but the program's.
        structured = {} if result.structured_content is None else {"structuredContent": result.structured_content}
        return _wire(result, exclude={"structured_content"}) | structured

    def value(self, result: Any, output_schema: Mapping[str, Any] | None) -> Any:
        """Return the program's value of an answer, and tell the caller of blocks that are no text.

        Raises:
            ToolFailed: The server says that the tool failed.
        """
        if self._target.method or isinstance(result, Unread):
            return result
        self._tell_all(media(result.get("content") or ()), result.get("_meta"))
        return tool_value(self._full_name, result, output_schema)

    # ---------------------------------------------------------------- methods

    async def _resources(self, client: Client[Any]) -> list[dict[str, Any]]:
        found: list[Any] = list(await client.list_resources())
        # Servers that have no templates may not know the question either.
        with suppress(Exception):
            found += await client.list_resource_templates()
        return [_entry(resource) for resource in found]

    async def _resource(self, client: Client[Any]) -> Any:
        result = _wire(await client.read_resource_mcp(str(self._arguments["uri"])))
        contents: list[dict[str, Any]] = result.get("contents") or []
        data = [{"type": "resource", "resource": content} for content in contents if "blob" in content]
        self._tell_all(data, result.get("_meta"))
        return one_or_all([content.get("text", resource_value(content)) for content in contents])

    async def _prompt(self, client: Client[Any]) -> dict[str, Any]:
        name, arguments = str(self._arguments["name"]), self._arguments.get("arguments")
        result = _wire(await client.get_prompt_mcp(name, arguments or None))
        messages: list[dict[str, Any]] = result.get("messages") or []
        self._tell_all(media([message["content"] for message in messages]), result.get("_meta"))
        shown = [{"role": message["role"], "content": block_value(message["content"])} for message in messages]
        return {"description": result.get("description") or "", "messages": shown}

    # ---------------------------------------------------------------- telling

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._tell("progress", {"done": _short(progress), "total": _short(total), "message": message or ""})

    def _tell_all(self, blocks: Sequence[Mapping[str, Any]], meta: Mapping[str, Any] | None) -> None:
        for block in blocks:
            self._tell("content", {"block": block})
        own = {key: value for key, value in (meta or {}).items() if not key.startswith(BOOKKEEPING)}
        if own:
            self._tell("meta", {"meta": own})

    def _tell(self, what: str, details: Mapping[str, Any]) -> None:
        if self._context.told:
            self._context.told(what, self._full_name, details)


def _wire(model: Any, exclude: set[str] | None = None) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_unset=True, exclude=exclude)


def _entry(model: Any) -> dict[str, Any]:
    """Return a list's entry with the names that a Python program expects, and without what is only for clients."""
    names = {"mimeType": "mime_type", "uriTemplate": "uri_template"}
    return {names.get(key, key): value for key, value in _wire(model).items() if key not in ("_meta", "icons")}


def _short(number: float | None) -> float | int | None:
    return int(number) if number is not None and number.is_integer() else number

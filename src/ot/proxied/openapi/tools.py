"""OperationTools: a FastMCP provider that makes a tool of an operation when it is first asked for."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import anyio.to_thread
import httpx2
from fastmcp.exceptions import ToolError
from fastmcp.server.providers import Provider
from fastmcp.server.providers.openapi import MCPType, OpenAPIProvider, OpenAPITool, RouteMap
from fastmcp.tools import Tool, ToolResult
from fastmcp.utilities.openapi import HTTPRoute
from fastmcp.utilities.openapi.director import RequestDirector
from fastmcp.utilities.versions import VersionSpec
from mcp_types import ToolAnnotations
from pydantic import ValidationError

from ot.proxied.openapi.operations import Operations, leads_up
from ot.registry.clean_text import clean_line
from ot.registry.schema_types import as_schema

READING = ("GET", "HEAD")
REPEATABLE = ("PUT", "DELETE")
UNSENT = "Error building request"
"""How FastMCP's error begins when arguments make no request."""
REFERENCE = re.compile(r'"#/\$defs/([^"/]+)"')
ALL_TOOLS = [RouteMap(mcp_type=MCPType.TOOL)]
KINDS = ("Parameter", "Reference", "RequestBody", "Response", "Schema")
"""What the library puts into the place of a fault: which of its classes it tried."""

for _name in ("fastmcp.utilities.openapi", "fastmcp.server.providers.openapi"):
    # An operation's problem is reported to its caller; the library also writes a page to standard error.
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class OperationTools(Provider):
    """The operations of a document; each is handed to FastMCP's own provider alone, for all at once take minutes."""

    def __init__(self, operations: Operations, client: httpx2.AsyncClient) -> None:
        """Send what is called through *client*."""
        super().__init__()
        self._operations = operations
        self._client = client
        self._tools: dict[str, Tool] = {}

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        if name not in self._operations:
            return None
        return await anyio.to_thread.run_sync(self._tool, name)

    def definitions(self) -> tuple[tuple[dict[str, Any], ...], dict[str, str]]:
        """Return all tools as they look on the wire, and why an operation is left out, by its name.

        That takes milliseconds each, and is kept by the caller.

        Raises:
            ValueError: No operation can be used.
        """
        made: list[dict[str, Any]] = []
        left_out = dict(self._operations.left_out)
        for name in self._operations:
            try:
                tool = self._make(name).to_mcp_tool()
            except ValueError as error:
                left_out[name] = str(error)
            else:
                made.append(tool.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"meta"}))
        if left_out and not made:
            raise ValueError(next(iter(left_out.values())))
        return tuple(made), left_out

    def _tool(self, name: str) -> Tool:
        if name not in self._tools:
            self._tools[name] = self._make(name)
        return self._tools[name]

    def _make(self, name: str) -> Tool:
        operation = self._operations[name]
        try:
            provider = OpenAPIProvider(
                self._operations.alone(name), self._client, route_maps=ALL_TOOLS, mcp_component_fn=_finish
            )
            (tool,) = provider._tools.values()  # pyright: ignore[reportPrivateUsage] - else only over an event loop
        except Exception as error:  # whatever the library raises for a foreign document
            where = f"{operation.method.upper()} {operation.path}"
            raise ValueError(f"the document is malformed at {where}: {clean_line(_words(error), 400)}") from error
        return tool


def _words(error: Exception) -> str:
    """Return the problem: of all that the library lists, the one deepest inside the operation."""
    if not isinstance(error.__cause__, ValidationError):
        return str(error) or type(error).__name__
    # What is no reference lacks a $ref, which is no fault.
    faults = [fault for fault in error.__cause__.errors() if fault["loc"][-1:] != ("$ref",)]
    if not faults:
        return "it does not have the form that OpenAPI asks for"
    deepest = max(faults, key=lambda fault: len(fault["loc"]))
    place = ".".join(str(part) for part in deepest["loc"][3:] if part not in KINDS)
    return f"{place}: {deepest['msg']}"


def _finish(route: HTTPRoute, tool: Any) -> None:
    assert isinstance(tool, OpenAPITool)
    reads = route.method in READING
    tool.annotations = ToolAnnotations(
        read_only_hint=reads,
        destructive_hint=True if route.method == "DELETE" else None,
        idempotent_hint=True if reads or route.method in REPEATABLE else None,
    )
    tool.output_schema = _prune(_wrap(tool.output_schema))
    tool._director = _Director(tool._director._spec)  # pyright: ignore[reportPrivateUsage] - nothing public leads there
    tool.__class__ = _OperationTool


def _wrap(schema: dict[str, Any] | None) -> dict[str, Any]:
    """Return *schema* inside an object, whatever it is: an API that answers a list instead still gives its list."""
    inner = dict(schema or {})
    if inner.get("x-fastmcp-wrap-result"):
        return inner
    shared = {"$defs": inner.pop("$defs")} if "$defs" in inner else {}
    return {"type": "object", "properties": {"result": inner}, "x-fastmcp-wrap-result": True, **shared}


def _prune(schema: dict[str, Any]) -> dict[str, Any]:
    """Return *schema* without the definitions that nothing of it leads to: FastMCP leaves those of the request in."""
    shared: dict[str, Any] = schema.get("$defs") or {}
    kept: dict[str, Any] = {}
    waiting: list[Any] = [schema.get("properties")]
    while waiting:
        text = json.dumps(waiting.pop())
        names = [name for name in REFERENCE.findall(text) if name in shared and name not in kept]
        kept |= {name: shared[name] for name in names}
        waiting += [shared[name] for name in names]
    bare = {key: value for key, value in schema.items() if key != "$defs"}
    return {**bare, "$defs": kept} if kept else bare


class _OperationTool(OpenAPITool):
    """A tool whose failures are sentences; of other exceptions FastMCP writes a page to standard error."""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Return the API's answer.

        Raises:
            ToolError: The arguments make no valid request, or as for ``ApiClient``.
        """
        try:
            return await super().run(arguments)
        except ValueError as error:
            unsent = str(error).startswith(UNSENT)
            why = clean_line(str(error.__cause__ if unsent else error), 400)
            what = f"{why}; nothing was sent" if unsent else f"its answer is malformed: {why}"
            raise ToolError(f"{self._route.method} {self._route.path}: {what}", log_level=logging.DEBUG) from None


class _Director(RequestDirector):
    """Makes requests of arguments, at the API's address or below it."""

    def build(self, route: HTTPRoute, flat_args: dict[str, Any], base_url: str = "http://localhost") -> httpx2.Request:
        """Return the request; raise ValueError if the arguments make none that may be sent."""
        request = super().build(route, flat_args, base_url)
        base, path = httpx2.URL(base_url).path.rstrip("/") + "/", request.url.raw_path.partition(b"?")[0].decode()
        if leads_up(path) or not request.url.path.startswith(base):
            raise ValueError(f"{path} leads out of the address of the API")
        return request

    def _unflatten_arguments(self, route: HTTPRoute, flat_args: dict[str, Any]) -> Any:
        """Return the arguments by their places; a null for a part of the body is sent, for it clears a field."""
        *others, body = super()._unflatten_arguments(route, flat_args)
        parts = _parts_of_body(route)
        nulls = {parts[name]: None for name, value in flat_args.items() if value is None and name in parts}
        return (*others, {**(body or {}), **nulls} if nulls else body)


def _parts_of_body(route: HTTPRoute) -> dict[str, str]:
    """Return the arguments that are each a property of the body, with the names that those have there."""
    places = route.parameter_map.items()
    parts = {name: place["openapi_name"] for name, place in places if place["location"] == "body"}
    schemas = route.request_body.content_schema.values() if route.request_body else ()
    named = as_schema(as_schema(next(iter(schemas), None)).get("properties"))
    return parts if len(parts) > 1 or parts.keys() <= named.keys() else {}

"""Makes a pack of what a proxied MCP server offers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from types import MappingProxyType
from typing import Any

from ot.errors import ToolUnavailable
from ot.proxied.definition_pins import DefinitionPins
from ot.proxied.definitions import ServerDefinitions, definition_hash, hints_of, outside_reference, within_limits
from ot.proxied.learned_shapes import LearnedShapes
from ot.registry.announced_tool import AnnouncedTool, read_announced_tool
from ot.registry.clean_text import clean_text, identifier, unique_identifiers
from ot.registry.proxy_target import BACKEND, PROXY, ProxyTarget, ServerIdentity
from ot.registry.schema_types import as_schema, parameters_of_schema, python_type
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack

logger = logging.getLogger(__name__)

SOURCE = "proxy"
MAX_DOC = 8000
UNASKED = "its server has not answered yet what it offers: ask again, or name the pack in a program, which waits for it"
WRAPPED = "x-fastmcp-wrap-result"
TEXT = Parameter("uri", "keyword", "str", description="Its address, as resources() lists it.")
PROMPT = (
    Parameter("name", "keyword", "str", description="Its name, as prompts() lists it."),
    Parameter("arguments", "keyword", "dict[str, str]", default="{}", description="What it asks for."),
)
FILLED = "{description: str, messages: list[{role: str, content: str | dict}]}"
METHODS: Mapping[str, tuple[str, tuple[Parameter, ...], str, str]] = {
    "resources": ("resources/list", (), "list[dict]", "List the resources that the server offers."),
    "resource": ("resources/read", (TEXT,), "Any", "Read a resource of the server."),
    "prompts": ("prompts/list", (), "list[dict]", "List the prompts that the server offers."),
    "prompt": ("prompts/get", PROMPT, FILLED, "Fill in a prompt of the server, and return its messages."),
}
"""Tools for what a server has beside tools: method, parameters, return type and description."""


@dataclass(frozen=True)
class ProxiedPack(Pack):
    """A pack of a server's tools; what is learned of their results is shown as soon as it is known."""

    identity: ServerIdentity | None = None
    shapes: LearnedShapes | None = None
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    _shown: dict[str, Any] = field(init=False, default_factory=dict[str, Any], repr=False, compare=False)

    @property
    def tools(self) -> Mapping[str, Tool]:  # pyright: ignore[reportIncompatibleVariableOverride] - read only, as there
        """The pack's tools by name; raises ToolUnavailable if the server was never listed."""
        revision = self.shapes.revision(self.identity) if self.shapes and self.identity else 0
        if self._shown.get("revision") != revision:
            tools = {tool.name: self._with_shape(tool) for tool in self._defined}
            self._shown.update(tools=MappingProxyType(tools), revision=revision)
        return self._shown["tools"]

    @property
    def left_out(self) -> Mapping[str, str]:
        """Why a tool of the server cannot be used, by its name."""
        return self.refused

    @cached_property
    def _defined(self) -> tuple[Tool, ...]:
        return tuple(self.read_tools())

    def _with_shape(self, tool: Tool) -> Tool:
        if self.shapes is None or not tool.definition or (tool.returns and not tool.observed):
            return tool
        target = ProxyTarget.of(tool.target)
        found = self.shapes.look_up(target.identity, target.tool, tool.definition)
        return replace(tool, returns=found.text, observed=f"observed {found.count}x") if found else tool


@dataclass(frozen=True)
class KeptPack(Pack):
    """A pack whose definitions are in a file, which is opened when somebody asks for a tool: a start reads none."""

    opened: Callable[[], Pack] = field(kw_only=True, repr=False, compare=False)

    @cached_property
    def _pack(self) -> Pack:
        return self.opened()

    @property
    def tools(self) -> Mapping[str, Tool]:  # pyright: ignore[reportIncompatibleVariableOverride] - as above
        """The pack's tools by name; raises ToolUnavailable if the file is damaged."""
        return self._pack.tools

    @property
    def said(self) -> str:
        """How to use it, in the server's own words."""
        return self._pack.said

    @property
    def left_out(self) -> Mapping[str, str]:
        """Why a tool of the server cannot be used, by its name."""
        return self._pack.left_out


def make_kept_pack(identity: ServerIdentity, pack: str, opened: Callable[[], Pack]) -> Pack:
    """Return the pack of a server whose definitions are *opened* when they are needed."""
    return KeptPack(pack, SOURCE, lambda: (), origin=f"{PROXY}{identity.server}", opened=opened)


def make_proxied_pack(
    identity: ServerIdentity,
    pack: str,
    definitions: ServerDefinitions | None,
    why: str = "",
    tools: Sequence[str] = (),
    *,
    timeout: float | None = None,
    shapes: LearnedShapes | None = None,
    pins: DefinitionPins | None = None,
    needs_login: bool = False,
    tried: bool = False,
) -> Pack:
    """Return the pack of a server: its tools, or *why* there are none; without a reason nobody has asked it yet.

    One that was *tried* is away. One that *needs_login* is not broken: what it offers is known as soon as its user has
    logged in. *tools* are patterns of those to offer, those with ``!`` of some to leave out. With *pins*, what is
    offered is compared with what was approved; the first time, it is approved.
    """
    origin = f"{PROXY}{identity.server}"
    if definitions is None:
        away, pending = tried and not needs_login, needs_login or not why
        return Pack(pack, SOURCE, lambda: _not_listed(pack, why or UNASKED, away), origin=origin, pending=pending)
    usable = within_limits(definitions)
    for name in usable.left_out.keys() - definitions.left_out.keys():  # the others were reported when they were listed
        logger.warning("%s: the tool %s is left out: %s", identity.server, name, usable.left_out[name])
    if pins is not None:
        pins.observe(identity, pack, usable)

    def read() -> list[Tool]:
        return [replace(tool, timeout=timeout) for tool in tools_of_server(identity, pack, usable, tools)]

    said = clean_text(definitions.instructions, MAX_DOC)
    return ProxiedPack(
        pack,
        SOURCE,
        read,
        origin=origin,
        instructions=said,
        identity=identity,
        shapes=shapes,
        refused=usable.left_out,
    )


def _not_listed(pack: str, why: str, away: bool) -> Iterable[Tool]:
    raise ToolUnavailable(pack, why, away)


def tools_of_server(
    identity: ServerIdentity, pack: str, definitions: ServerDefinitions, filter: Sequence[str] = ()
) -> list[Tool]:
    """Return the tools that the filter leaves of *definitions*, which are within the limits, under Python names."""
    chosen: dict[str, Mapping[str, Any]] = {}
    for part in definitions.tools:
        if is_offered(name := str(part["name"]), filter, read_announced_tool(part)):
            if name in chosen:
                logger.warning("%s: the tool %s is listed twice, the later one counts", identity.server, name)
            chosen[name] = part
    if announced := _read_announced(pack, chosen):
        return [
            one.apply_to(tool_of_definition(identity, pack, given, chosen[name]))
            for name, (given, one) in announced.items()
        ]
    names = unique_identifiers(list(chosen))
    for name, given in names.items():
        if given != identifier(name):
            logger.warning("%s: the tool %r is called %s, another one has that name", identity.server, name, given)
    tools = [tool_of_definition(identity, pack, names[name], part) for name, part in chosen.items()]
    taken = {tool.name for tool in tools}
    return tools + [tool for tool in _of_methods(identity.server, pack, definitions) if tool.name not in taken]


def _read_announced(pack: str, chosen: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, AnnouncedTool]]:
    """Return the tools of another OneTool with the names that they have here, by those that it defines them under.

    Of its packs it is the one called *pack*; where none is, the only one, or all, each name with that of its pack.
    """
    found = {name: one for name, part in chosen.items() if (one := read_announced_tool(part))}
    if len(found) != len(chosen):
        return {}
    packs = {one.pack for one in found.values()}
    if len(packs) > 1 and pack not in packs:
        names = unique_identifiers(list(found))
        return {name: (names[name], one) for name, one in found.items()}
    wanted = pack if pack in packs else next(iter(packs), "")
    return {name: (one.name, one) for name, one in found.items() if one.pack == wanted}


def is_offered(name: str, filter: Sequence[str], announced: AnnouncedTool | None = None) -> bool:
    """Return whether a tool of that name passes the patterns: any without ``!``, if there are such, and none with."""
    wanted = [pattern for pattern in filter if not pattern.startswith("!")]
    unwanted = [pattern[1:] for pattern in filter if pattern.startswith("!")]
    forms = (name, identifier(name), *([announced.name] if announced else []))

    def fits(patterns: Sequence[str]) -> bool:
        return any(fnmatchcase(form, pattern) for form in forms for pattern in patterns)

    return (not wanted or fits(wanted)) and not fits(unwanted)


def tool_of_definition(identity: ServerIdentity, pack: str, name: str, definition: Mapping[str, Any]) -> Tool:
    """Return one tool as a program calls it."""
    schema = as_schema(definition.get("inputSchema"))
    parameters, renamed = parameters_of_schema(schema)
    read_only, destructive = hints_of(definition)
    return Tool(
        pack=pack,
        name=name,
        parameters=parameters,
        returns=_returns(definition.get("outputSchema")),
        doc=clean_text(definition.get("description") or definition.get("title"), MAX_DOC),
        source=f"{PROXY}{identity.server}",
        backend=BACKEND,
        target=ProxyTarget(identity.server, identity.written, str(definition["name"]), names=renamed).text(),
        destructive=destructive,
        read_only=read_only,
        input_schema=schema,
        definition=definition_hash(definition),
    )


def _returns(schema: Any) -> str:
    if not isinstance(schema, Mapping) or outside_reference(schema):
        return ""
    found = as_schema(schema)
    # What is not an object is sent inside one, and a program gets it without.
    inner = as_schema(found.get("properties")).get("result") if found.get(WRAPPED) is True else found
    text = python_type(inner, found)
    return "" if text == "Any" else text


def _of_methods(server: str, pack: str, definitions: ServerDefinitions) -> Iterable[Tool]:
    has = {"resource": definitions.has_resources, "prompt": bool(definitions.prompts)}
    for name, (method, parameters, returns, doc) in METHODS.items():
        if has[name.removesuffix("s")]:
            target = ProxyTarget(server, method=method).text()
            yield Tool(
                pack=pack, name=name, parameters=parameters, returns=returns, doc=doc, source=f"{PROXY}{server}",
                backend=BACKEND, target=target, read_only=True,
            )  # fmt: skip

"""ToolRegistry: the only answer to "which tools exist"."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from ot.errors import ToolUnavailable, UnknownPack, UnknownTool
from ot.nearest_names import nearest_of, same_name
from ot.registry.pack_needs import Needs, no_needs
from ot.registry.tool import Tool, signature_text

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pack:
    """A named group of tools; its file is read when somebody first asks for a tool of it."""

    name: str
    source: str
    read_tools: Callable[[], Iterable[Tool]]
    origin: str = ""
    instructions: str = ""
    """How to use it, in its own words."""
    pending: bool = False
    """Whether its tools are not known yet, though nothing is wrong with it."""
    bundled: bool = False
    """Whether it comes with OneTool, and has a page in its documentation."""
    imported: bool = False
    """Whether a module is imported to find its tools, which takes a moment."""
    needs: Needs = no_needs
    """What it needs beside its packages; its file is read when that is asked for."""

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """The pack's tools by name; raises ToolUnavailable if its file cannot be read as a pack."""
        found: dict[str, Tool] = {}
        for tool in self.read_tools():
            if tool.name in found:
                logger.warning(
                    "%s of %s is defined twice: the later one replaces the earlier", tool.full_name, self.origin
                )
            found[tool.name] = tool
        return MappingProxyType(found)

    @property
    def said(self) -> str:
        """Its instructions, which a pack that is read late knows only then."""
        return self.instructions

    @property
    def left_out(self) -> Mapping[str, str]:
        """Why a tool of it cannot be used, by its name."""
        return {}

    @property
    def server(self) -> str:
        """The server whose tools it has; empty if it is not a server's."""
        return self.origin.partition(":")[2] if self.source == "proxy" else ""

    @property
    def broken(self) -> str:
        """Why the pack cannot be used, or nothing."""
        try:
            return "" if self.tools else "it has no tools"
        except ToolUnavailable as error:
            return error.why


def describe_hidden_pack(server: str, pack: str) -> str:
    """Return a note that a server replaces a bundled pack, and how to use both."""
    return (
        f"The server '{server}' replaces the bundled pack '{pack}': to use both, give the server another name in "
        f"onetool.yaml, such as '{pack}_server'"
    )


def _words(tool: Tool) -> str:
    return " ".join((tool.description, *(parameter.name for parameter in tool.parameters)))


class ToolRegistry:
    """An immutable picture of all packs; a reload builds a new one."""

    def __init__(self, packs: Iterable[Pack] = (), disabled: Collection[str] = ()) -> None:
        """Take *packs* in the order of their sources: a later one replaces an earlier one of the same name.

        Those that the user has *disabled* are not among them; whoever asks for one is told why.
        """
        self._disabled = disabled
        found: dict[str, Pack] = {}
        hidden: set[str] = set()
        for pack in packs:
            before = found.get(pack.name)
            # A server gets its name from the user, who means it by that name.
            if before and before.bundled and pack.source == "proxy":
                hidden.add(pack.name)
            elif before:
                logger.warning("pack %s of %s replaces the one of %s", pack.name, pack.origin, before.origin)
            found[pack.name] = pack
        self._packs = MappingProxyType(found)
        self.hidden = frozenset(name for name in hidden if found[name].source == "proxy")
        """The bundled packs in whose place a server is."""

    @property
    def packs(self) -> Mapping[str, Pack]:
        """All packs by name."""
        return self._packs

    def pack(self, name: str) -> Pack:
        """Return the pack of that name, or raise UnknownPack."""
        try:
            return self._packs[name]
        except KeyError:
            raise self.unknown(name) from None

    def unknown(self, name: str) -> UnknownPack:
        """Return the error for *name*, which no pack has."""
        return UnknownPack(name, tuple(self._packs), disabled=name in self._disabled)

    def tool(self, pack: str, name: str) -> Tool:
        """Return the tool ``pack.name``; of a name that no tool has, the one that it is an alias or a spelling of.

        Raises:
            UnknownPack: No such pack.
            UnknownTool: No such function in it.
            ToolUnavailable: The pack's file cannot be read.
        """
        tools = self.pack(pack).tools
        try:
            return tools[name]
        except KeyError:
            if (exact := self.exact_name(pack, name)) != name:
                return tools[exact]
            if why := self.pack(pack).left_out.get(name):
                note = f"It is left out: {why}"
            else:
                note = describe_hidden_pack(self.pack(pack).server, pack) if pack in self.hidden else ""
            nearest = nearest_of(name, {known: _words(tool) for known, tool in tools.items()})
            meant = (
                [known for known in _tools_for_word(pack, name) if known in tools] if self.pack(pack).bundled else []
            )
            signatures = tuple(signature_text(tools[near]) for near in [*dict.fromkeys([*meant, *nearest])][:3])
            raise UnknownTool(pack, name, tuple(tools), note, signatures) from None

    def exact_name(self, pack: str, name: str) -> str:
        """Return the name of the tool that *name* is an alias or another spelling of; else *name* itself."""
        found = self._packs.get(pack)
        try:
            if found is None or name in found.tools or name in found.left_out:
                return name
            if found.bundled and (meant := _tool_of_alias(pack, name)) in found.tools:
                return meant
            return same_name(name, found.tools) or name
        except ToolUnavailable:
            return name

    def tools(self) -> list[Tool]:
        """Return every tool of every pack that can be read, by name."""
        readable = [self._packs[name] for name in sorted(self._packs) if not self._packs[name].broken]
        return [pack.tools[name] for pack in readable for name in sorted(pack.tools)]


def _tool_of_alias(pack: str, name: str) -> str:
    from ot.registry.other_words import tool_of_alias  # noqa: PLC0415 - most programs need no other words

    return tool_of_alias(pack, name)


def _tools_for_word(pack: str, name: str) -> list[str]:
    from ot.registry.other_words import tools_for_word  # noqa: PLC0415 - as above

    found = (full.partition(".") for full in tools_for_word(pack, name))
    return [tool for owner, _, tool in found if owner == pack]

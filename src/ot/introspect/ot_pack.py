"""The ``ot`` pack: what a model and a person ask OneTool about itself."""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ot.config.models import Config
from ot.execution.policy import DEFAULT
from ot.introspect.help import show_help
from ot.introspect.listing import list_packs, list_tools
from ot.introspect.proxy_health import proxy_health
from ot.registry.definition_pins import Change, changed_words
from ot.registry.tool_registry import ToolRegistry
from ot.version import installed_version


class Pages(Protocol):
    """Reads pages of stored results."""

    def __call__(self, handle: str, **query: Any) -> dict[str, Any]:
        """Return a page as a dict."""
        ...


@dataclass(frozen=True)
class View:
    """What the ``ot`` pack may see of the house: one picture, read only, and the wish to reload."""

    registry: Callable[[], ToolRegistry]
    config: Config
    cwd: str
    project: str
    warnings: tuple[str, ...]
    pages: Pages
    engine_health: Callable[[], Awaitable[Mapping[str, Any]]]
    workers: Callable[[], Mapping[str, str]]
    servers: Callable[[], Mapping[str, Mapping[str, Any]]]
    reload: Callable[[], Awaitable[None]]
    changed: Callable[[], Mapping[str, Sequence[Change]]] = dict[str, Sequence[Change]]


class OtPack:
    """The functions of the pack, bound to one picture."""

    def __init__(self, view: View) -> None:
        """Answer from *view*."""
        self._view = view

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Return the pack's tools by name."""
        names = ("tools", "packs", "help", "result", "config", "health", "reload", "version")
        return {name: getattr(self, name) for name in names}

    def tools(self, *, pattern: str = "", info: str = "min") -> list[Any]:
        """List the tools.

        Args:
            pattern: Part of the name, in any case; empty for all.
            info: "list" for names, "min" for names and descriptions, "full" for signatures and arguments.

        Returns:
            One entry a tool.

        Example:
            ot.tools(pattern="search", info="full")
        """
        return list_tools(self._view.registry(), pattern, info)

    def packs(self, *, pattern: str = "", info: str = "min") -> list[Any]:
        """List the packs.

        Args:
            pattern: Part of the name, in any case; empty for all.
            info: "list" for names, "min" for counts too, "full" for their tools too.

        Returns:
            One entry a pack.

        Example:
            ot.packs()
        """
        return list_packs(self._view.registry(), pattern, info)

    def help(self, *, query: str = "", info: str = "min") -> Any:
        """Find and explain tools.

        Args:
            query: A tool (``file.read``), a pack (``file``), or words of the task; empty for an overview.
            info: How much to tell of each hit of a search: "list", "min" or "full".

        Returns:
            Text, or the hits.

        Example:
            ot.help(query="search files")
        """
        return show_help(self._view.registry(), query, info)

    def result(
        self,
        *,
        handle: str,
        offset: int = 1,
        limit: int = 100,
        search: str = "",
        fuzzy: bool = False,
        from_byte: int = 1,
    ) -> dict[str, Any]:
        """Read lines of a stored result.

        Args:
            handle: The handle that the summary of the large result gave.
            offset: The first line, counted from 1.
            limit: How many lines.
            search: Only lines that match this regular expression (RE2).
            fuzzy: Take *search* for words and give the lines most like them, best first.
            from_byte: Where to read on within a line that was too long for its page.

        Returns:
            lines, total_lines, returned, offset, has_more.

        Example:
            ot.result(handle="...", search="error", limit=20)
        """
        return self._view.pages(handle, offset=offset, limit=limit, search=search, fuzzy=fuzzy, from_byte=from_byte)

    def config(self) -> dict[str, Any]:
        """Show the configured aliases, snippets and servers.

        Returns:
            aliases, snippets with their descriptions, servers.

        Example:
            ot.config()
        """
        config = self._view.config
        return {
            "aliases": dict(config.aliases),
            "snippets": {name: {"description": snippet.description} for name, snippet in config.snippets.items()},
            "servers": list(self._view.servers()),
        }

    async def health(self) -> dict[str, Any]:
        """Show how OneTool's parts are.

        Returns:
            version, python, cwd, engine, registry, proxy, project, policy; workers and warnings if there are any.

        Example:
            ot.health()
        """
        registry = self._view.registry()
        unusable = {name: pack.broken for name, pack in registry.packs.items() if pack.broken}
        count = sum(len(pack.tools) for name, pack in registry.packs.items() if name not in unusable)
        # A server that is not there is told of below; one that was not asked yet is no trouble at all.
        broken = {name: why for name, why in unusable.items() if registry.packs[name].source != "proxy"}
        health: dict[str, Any] = {
            "version": installed_version(),
            "python": platform.python_version(),
            "cwd": self._view.cwd,
            "engine": dict(await self._view.engine_health()),
            "registry": {"status": "degraded" if broken else "ok", "tool_count": count},
            "proxy": proxy_health(self._view.servers()),
            "project": self._view.project,
            "policy": self._policy(),
        }
        if broken:
            health["registry"]["broken"] = broken
        if changed := self._view.changed():
            health["proxy"]["changed"] = {server: changed_words(changes) for server, changes in changed.items()}
        if workers := dict(self._view.workers()):
            health["workers"] = workers
        return health | ({"warnings": list(self._view.warnings)} if self._view.warnings else {})

    def _policy(self) -> dict[str, Any]:
        policy = self._view.config.policy
        named = {"allow": policy.allow, "ask": policy.ask, "deny": policy.deny}
        return {action: list(patterns) for action, patterns in named.items()} | {"default": DEFAULT}

    async def reload(self) -> str:
        """Read the configuration again; calls under way keep the old one.

        Returns:
            A confirmation; a configuration that cannot be used is an error, and the old one stays.

        Example:
            ot.reload()
        """
        await self._view.reload()
        return "OK: Configuration reloaded"

    async def version(self) -> str:
        """Return OneTool's version.

        Returns:
            The version string.

        Example:
            ot.version()
        """
        return installed_version()

"""The ``ot`` pack: what a model and a person ask OneTool about itself."""

from __future__ import annotations

import platform
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from ot.config.models import Config, GroupPolicy, Policy, pattern_lists
from ot.execution.policy import DEFAULT
from ot.execution.tool_context import current_tool_context
from ot.introspect.background_runs import RunActions
from ot.introspect.help import Query, is_search, show_help, snippet_help
from ot.introspect.listing import check_info, list_aliases, list_packs, list_tools
from ot.introspect.notify import notify
from ot.introspect.proxy_health import proxy_health
from ot.introspect.run_undo import RunUndo
from ot.introspect.search import Catalogue, Hits, Kind
from ot.introspect.snippets import Expand, list_snippets
from ot.introspect.statistics import Statistics, show_stats
from ot.proxied.auth.login_state import LoginState
from ot.proxied.pin_books import Change, describe_changes
from ot.proxied.proxied_pack import UNASKED
from ot.registry.tool import Tool
from ot.registry.tool_registry import ToolRegistry
from ot.version import installed_version

MOST_TOOLS = 10
"""Of those that are looked at for what a program cannot do by itself."""
DESTRUCTIVE = ("undo",)
"""What asks first."""
NOT_ASKED = "the tools of these servers are missing here: ask again, or name one in a program, which waits for it"


async def _no_effects(run: str) -> Any:
    return []


async def _no_ledger() -> Mapping[str, str]:
    return {"kind": "none"}


@dataclass(frozen=True)
class View:
    """What the ``ot`` pack may see of the house: one picture, read only, and the wish to reload."""

    config: Config
    cwd: str
    project: str
    warnings: tuple[str, ...]
    pages: Callable[..., Any]
    """Reads stored results: a page as a dict, or a part of the value."""
    engine_health: Callable[[], Awaitable[Mapping[str, Any]]]
    workers: Callable[[], Mapping[str, str]]
    needs: Callable[[], Mapping[str, Sequence[str]]]
    """What packs lack beside their packages; it reads files."""
    uninstalled: Callable[[], Sequence[str]]
    """The bundled packs whose packages are installed at their first call; it reads files."""
    servers: Callable[[], Mapping[str, Mapping[str, Any]]]
    expand: Expand
    reload: Callable[[], Awaitable[None]]
    statistics: Statistics
    session: Callable[[str, str], Awaitable[Any]]
    know_servers: Callable[[], Awaitable[ToolRegistry]]
    """Asks the servers that nobody has asked yet, waits a moment, and returns the registry as it is then."""
    logins: Callable[[], Mapping[str, LoginState]] = dict[str, LoginState]
    """How the logins at servers are; it may block."""
    changed: Callable[[], Mapping[str, Sequence[Change]]] = dict[str, Sequence[Change]]
    effects: Callable[[str], Awaitable[Any]] = _no_effects
    """Reads the ledger: the calls of a run, or those whose effect is unknown."""
    runs: Callable[[], RunActions] | None = None
    """Opens the book of background runs."""
    undo: RunUndo | None = None
    """Takes back what runs changed."""
    ledger: Callable[[], Awaitable[Mapping[str, str]]] = _no_ledger
    """Tells which ledger there is, and what its entries survive."""
    project_dir: Path | None = None
    """The project's directory, in which no link is followed."""
    redact: Callable[[str], str] = str
    """Takes secrets out of a text."""
    say_trouble: Callable[[], str] | None = None
    """Says why what several processes share cannot be reached, or nothing while it can be."""


class OtPack:
    """The functions of the pack, bound to one picture."""

    def __init__(self, view: View) -> None:
        """Answer from *view*."""
        self._view = view
        self._lock = threading.Lock()
        self._catalogue: tuple[ToolRegistry, Catalogue] | None = None

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Return the pack's tools by name."""
        names = (
            "tools", "packs", "aliases", "snippets", "help", "result",
            "show", "config", "health", "stats", "notify", "session", "effects", "reload", "version",
            "background", "run_state", "cancel", "undo", "save",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}

    async def tools(self, *, pattern: str = "", info: str = "min") -> list[Any]:
        """List the tools.

        Args:
            pattern: Part of the name, in any case; empty for all.
            info: "list" for names, "min" for names and descriptions, "full" for signatures and arguments.

        Returns:
            One entry a tool.

        Example:
            ot.tools(pattern="search", info="full")
        """
        registry = await self._all_known("ot.tools")
        # The first list of a picture reads every definition: not on the event loop.
        return await anyio.to_thread.run_sync(list_tools, registry, pattern, info, abandon_on_cancel=True)

    async def packs(self, *, pattern: str = "", info: str = "min") -> list[Any]:
        """List the packs.

        Args:
            pattern: Part of the name, in any case; empty for all.
            info: "list" for names, "min" for counts too, "full" for their tools too.

        Returns:
            One entry a pack.

        Example:
            ot.packs()
        """
        registry, said = await self._all_known("ot.packs"), self._view.config.prompts.packs
        return await anyio.to_thread.run_sync(list_packs, registry, pattern, info, said, abandon_on_cancel=True)

    def aliases(self, *, pattern: str = "", info: str = "min") -> list[Any]:
        """List the aliases: short names of tools.

        Args:
            pattern: Part of the name or the target, in any case; empty for all.
            info: "list" for names, "min" for lines ``name -> target``, "full" for name and target apart.

        Returns:
            One entry an alias.

        Example:
            ot.aliases()
        """
        return list_aliases(self._view.config.aliases, pattern, info)

    async def snippets(self, *, pattern: str = "", info: str = "min") -> Any:
        """List the snippets: templates of whole programs, called as ``$name key=value``.

        Args:
            pattern: Part of the name or the description, in any case; empty for all.
            info: "list" for names, "min" for descriptions by name, "full" for definitions with an example.

        Returns:
            Names, descriptions by name, or text.

        Example:
            ot.snippets(info="full")
        """
        return await list_snippets(self._view.config.snippets, pattern, info, self._view.expand)

    async def help(self, *, query: str | list[str] = "", info: str = "min") -> Any:
        """Find and explain tools, packs, snippets and aliases.

        Args:
            query: A tool (``file.read``), a pack (``file``), a snippet (``$name``), an alias, or words of the task;
                a list of several is searched for together.
            info: How much to tell: "list", "min" or "full".

        Returns:
            A page of text; for words the best hits, grouped by kind, and the words that fitted nothing.

        Example:
            ot.help(query="search files")
        """
        view = self._view
        if isinstance(query, str) and query.strip().startswith("$"):
            return await snippet_help(view.config, query, info, view.expand)
        registry = _registry()
        if is_search(registry, view.config, query, info):
            registry = await self._all_known("ot.help")
        # The first search of a picture reads every definition: not on the event loop.
        page = partial(show_help, registry, view.config, partial(self._find_in, registry), query, info)
        return await anyio.to_thread.run_sync(page, abandon_on_cancel=True)

    async def _all_known(self, asked: str) -> ToolRegistry:
        """Return the registry when all servers have told what they offer, or a moment later; name those that have not.

        *asked* is the tool that lists them: what it returns is for the program, and the names are for its reply.
        """
        registry = _registry()
        if not any(pack.pending for pack in registry.packs.values()):
            return registry
        registry = await self._view.know_servers()
        waiting = [name for name, pack in sorted(registry.packs.items()) if pack.pending and pack.broken == UNASKED]
        told = current_tool_context().told
        if waiting and told:
            told("print", asked, {"text": f"not_asked_yet: [{', '.join(waiting)}] ({NOT_ASKED})\n"})
        return registry

    def find_tools(self, registry: ToolRegistry, query: str) -> list[Tool]:
        """Return the tools of *registry* that fit *query* best; the first search reads every definition."""
        names = self._find_in(registry, query, {"tools": MOST_TOOLS}).names.get("tools", ())
        return [registry.tool(*name.split(".", 1)) for name in names]

    def _find_in(self, registry: ToolRegistry, query: Query, most: Mapping[Kind, int]) -> Hits:
        with self._lock:
            if self._catalogue is None or self._catalogue[0] is not registry:
                self._catalogue = (registry, Catalogue(registry, self._view.config))
            catalogue = self._catalogue[1]
        return catalogue.find(query, most=most)

    def result(
        self,
        *,
        handle: str,
        offset: int = 1,
        limit: int = 100,
        search: str = "",
        fuzzy: bool = False,
        from_byte: int = 1,
        path: str = "",
        outline: bool = False,
    ) -> Any:
        """Read more of a large output that was stored: its next lines, or a part of the value that it is.

        Args:
            handle: The handle that the summary of the large result gave.
            offset: The first line, counted from 1.
            limit: How many lines.
            search: Only lines that match this regular expression (RE2).
            fuzzy: Take *search* for words and give the lines most like them, best first.
            from_byte: Where to read on within a line that was too long for its page.
            path: The part of stored JSON to give as a value: "a.b[0:10]", "rows[:5].name", "." for all.
            outline: Give type, length and keys of what is at *path*, and how to go on.

        Returns:
            lines, total_lines, returned, offset, has_more; with path the value itself.

        Example:
            ot.result(handle="...", search="error", limit=20)
        """
        lines = {"offset": offset, "limit": limit, "search": search, "fuzzy": fuzzy, "from_byte": from_byte}
        return self._view.pages(handle, **lines, path=path, outline=outline)

    def show(self, *, value: Any) -> Any:
        """Show the user an image, audio or file that a tool returned; what a program returns is shown anyway.

        Args:
            value: What the tool returned, or data that holds it.

        Returns:
            The same value.

        Example:
            ot.show(value=browser.screenshot())
        """
        return value

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
            "servers": list(config.servers),
        }

    async def health(self, *, info: str = "full") -> dict[str, Any]:
        """Show how OneTool's parts are.

        Args:
            info: "min" for version, python, cwd, engine, registry and proxy alone, or "full".

        Returns:
            version, python, cwd, engine, registry, proxy, project, policy, ledger, stats;
            packs, workers, state and warnings if any.

        Example:
            ot.health(info="min")
        """
        check_info(info)
        # It reads every unused pack: not on the event loop.
        count, broken = await anyio.to_thread.run_sync(_usable, _registry(), abandon_on_cancel=True)
        health: dict[str, Any] = {
            "version": installed_version(),
            "python": platform.python_version(),
            "cwd": self._view.cwd,
            "engine": dict(await self._view.engine_health()),
            "registry": {"status": "degraded" if broken else "ok", "tool_count": count},
            "proxy": proxy_health(self._view.servers(), await anyio.to_thread.run_sync(self._view.logins)),
        }
        brief = {"engine": {key: health["engine"][key] for key in ("name", "status")}}
        if info != "full":
            return health | brief
        health |= {"project": self._view.project, "policy": self._policy()}
        if not current_tool_context().caller.admin:
            return health | brief
        if broken:
            health["registry"]["broken"] = broken
        if changed := self._view.changed():
            health["proxy"]["changed"] = {server: describe_changes(changes) for server, changes in changed.items()}
        if packs := await anyio.to_thread.run_sync(self._packs_health):
            health["packs"] = packs
        if workers := dict(self._view.workers()):
            health["workers"] = workers
        if self._view.say_trouble:
            why = self._view.say_trouble()
            health["state"] = {"status": "unreachable", "why": why} if why else {"status": "ok"}
        health["ledger"] = dict(await self._view.ledger())
        health["stats"] = self._view.statistics.health()
        return health | ({"warnings": list(self._view.warnings)} if self._view.warnings else {})

    def _packs_health(self) -> dict[str, Any]:
        """Return what packs lack, and which are installed at their first call."""
        found = {"need": dict(self._view.needs()), "installed_at_first_call": list(self._view.uninstalled())}
        return {key: value for key, value in found.items() if value}

    def _policy(self) -> dict[str, Any]:
        """Return the patterns that count for the caller: everyone's, and those of the caller's groups."""
        policy, mine = self._view.config.policy, current_tool_context().caller.groups
        groups = {name: _lists(group) for name, group in policy.groups.items() if name in mine}
        return _lists(policy) | ({"groups": groups} if groups else {}) | {"default": DEFAULT}

    def notify(self, *, topic: str, message: str) -> str:
        """Publish a message to the file that the user configured for its topic.

        Args:
            topic: What it is about, as ``notes`` or ``build:failed``.
            message: The text, at most 64 KiB.

        Returns:
            Where it went, or "SKIP: no matching topic".

        Example:
            ot.notify(topic="notes", message="Review the open pull request.")
        """
        _require_admin("ot.notify", "the files of topics are the operator's")
        return notify(self._view.config.topics, topic, message, project=self._view.project_dir)

    def stats(self, *, period: str = "all", tool: str = "", output: str = "") -> dict[str, Any] | str:
        """Sum up what was called, how long it took, and what it saved.

        Args:
            period: "day", "week", "month" or "all".
            tool: Only this tool, or this pack.
            output: A file to write an HTML report to, by a call of file.write.

        Returns:
            total_calls, success_rate, context_saved (estimated tokens), time_saved_ms, tools; html_report if written.

        Example:
            ot.stats(period="week", output="stats.html")
        """
        names = lambda: [tool.full_name for tool in _registry().tools()]  # noqa: E731 - asked for reports alone
        return show_stats(self._view.statistics, period, tool, output, names)

    async def session(self, *, name: str = "", action: str = "list") -> Any:
        """List, clear or save the sessions: variables that runs with the same ``session`` argument share.

        Args:
            name: The session; empty for all.
            action: "list", "clear" to forget the variables, "save" to store those that are plain data.

        Returns:
            By session its variables, runs and idle seconds; the names of those cleared; the handle of what was saved.

        Example:
            ot.session(name="work", action="save")
        """
        return await self._view.session(name, action)

    async def effects(self, *, run: str = "") -> Any:
        """Tell what the calls of a run changed: each is done, failed, unknown, or sent while it is under way.

        Args:
            run: The id of a run in this directory, as its reply names it; empty for the latest calls there whose
                effect is unknown.

        Returns:
            One entry a call that may have changed something, with the key that its tool was given; calls that only
            read are left out.

        Example:
            ot.effects()
        """
        return await self._view.effects(run)

    async def undo(self, *, run: str) -> dict[str, Any]:
        """Take back what a run changed in files and notes: restore each to what it was before the run.

        Only what is still as the run left it is restored; what has changed since is left alone. An undo is a run's
        change like any other: it can be undone.

        Args:
            run: The id of a run in this directory that has ended, as its reply names it.

        Returns:
            restored, same (as it was already), left (alone, each with path, why and difference), others (the run's
            calls of other tools, which nothing takes back), note.

        Example:
            ot.undo(run="1f0c2b7a9d3e4f56")
        """
        if self._view.undo is None:
            raise ValueError("nothing is kept here that could be restored")
        principal = current_tool_context().caller.principal
        others = self._view.undo.list_others(await self._view.effects(run), _registry())
        work = partial(self._view.undo.look, principal, run, restore=True)
        return {**await anyio.to_thread.run_sync(work), "others": others}

    async def background(self, *, command: str, name: str = "") -> dict[str, Any]:
        """Begin a run that goes on after this one: for work that takes longer than a run may.

        Args:
            command: The program, as ``run`` takes it; it shares no variables with this one.
            name: What it is for, to tell it from others.

        Returns:
            id, name, state. ``ot.run_state(id=...)`` tells how it goes.

        Example:
            ot.background(command="return [file.read(path=p) for p in file.glob(pattern='*.md')]", name="read all")
        """
        return await self._runs().begin(current_tool_context().caller, command, name)

    async def run_state(self, *, id: str = "", wait: float = 0) -> Any:
        """Tell how runs (jobs) in the background are: waiting, running, asks, done, failed, stopped or cancelled.

        Args:
            id: The run; empty for a list of the latest that were begun in this directory.
            wait: How many seconds to wait for its end, at most 20.

        Returns:
            id, name, state, created; of one that ended also texts, and handle if ``ot.result`` has more. A stopped
            one was not brought to its end: its texts say what is done, unknown and not started.

        Example:
            ot.run_state(id="...", wait=20)
        """
        wait = min(wait, self._view.config.limits.call_seconds * 0.8)
        return await self._runs().state(current_tool_context().caller, id, wait)

    async def cancel(self, *, id: str) -> dict[str, Any]:
        """End a run in the background; what it has done stays done.

        Args:
            id: The run.

        Returns:
            id, name, state; it has ended when ``ot.run_state(id=...)`` says so.

        Example:
            ot.cancel(id="...")
        """
        return await self._runs().cancel(current_tool_context().caller, id)

    async def save(self, *, name: str, source: str) -> dict[str, Any]:
        """Save functions that later programs can call as tools, in a file of the user's own; it always asks first.

        Args:
            name: The name of the file, which becomes that of the pack.
            source: Python: annotated functions with docstrings, which call packs as programs do; beside them imports
                and constants.

        Returns:
            file, tools.

        Example:
            ot.save(name="todo", source="def open_ones(path: str = '.') -> list:\\n    return file.search(...)")
        """
        from ot.introspect.save_program import save_program  # noqa: PLC0415 - hardly any run saves a program

        return await save_program(name, source, self._view.redact, self._view.reload)

    def _runs(self) -> RunActions:
        if self._view.runs is None:
            raise ValueError("background runs are not recorded here")
        return self._view.runs()

    async def reload(self) -> str:
        """Read the configuration (onetool.yaml) again after it was edited; calls under way keep the old one.

        Returns:
            A confirmation; a configuration that cannot be used is an error, and the old one stays.

        Example:
            ot.reload()
        """
        _require_admin("ot.reload", "a changed configuration is taken up by itself")
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


def _lists(policy: Policy | GroupPolicy) -> dict[str, Any]:
    return {action: list(patterns) for action, patterns in pattern_lists(policy).items()}


def _usable(registry: ToolRegistry) -> tuple[int, dict[str, str]]:
    """Return the number of tools, and which packs of this machine cannot be used and why."""
    unusable = {name: pack.broken for name, pack in registry.packs.items() if pack.broken}
    count = sum(len(pack.tools) for name, pack in registry.packs.items() if name not in unusable)
    # A server that is not there is told of apart; one that was not asked yet is no trouble at all.
    return count, {name: why for name, why in unusable.items() if registry.packs[name].source != "proxy"}


def _require_admin(tool: str, why: str) -> None:
    """Raise PermissionError unless the caller may change what others use."""
    if not current_tool_context().caller.admin:
        raise PermissionError(f"{tool} is for administrators of this server: {why}")


def _registry() -> ToolRegistry:
    return current_tool_context().registry

"""Wires the house: the only file that knows every room."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

import ot_tools
from ot.config.edit_config import edit_config
from ot.config.load import Loaded, load_config
from ot.config.models import Config, pack_name
from ot.config.paths import CONFIG_FILE, FOLDER, PROMPTS_FILE, Paths, expand_home
from ot.config.policy_edit import with_pattern
from ot.config.secrets import MODEL_KEYS
from ot.config.snapshot import take_snapshot
from ot.config.trust import Trust
from ot.errors import OneToolError, ResultError
from ot.execution.ask_user import AskUser
from ot.execution.backends.in_process import InProcessBackend
from ot.execution.backends.mcp_proxy import McpProxyBackend
from ot.execution.backends.worker import WorkerBackend
from ot.execution.consent import AllowAlways, Consent
from ot.execution.locked_places import locked_places, pack_places
from ot.execution.path_guard import PathGuard
from ot.execution.policy import Policy
from ot.execution.protected_paths import Locked
from ot.execution.servers.client_roots import ClientRoots
from ot.execution.servers.executed_files import executed_by
from ot.execution.servers.server_pool import ServerPool
from ot.execution.servers.server_shelf import ServerShelf
from ot.execution.servers.server_spec import ServerSpec
from ot.execution.servers.spec_of_server import specs_of_servers
from ot.execution.tool_context import LanguageModel, ToolContext
from ot.execution.tool_executor import CallObserver, ToolExecutor
from ot.execution.workers.pack_environment import PackEnvironments
from ot.execution.workers.worker_pool import WorkerPool
from ot.execution.workers.worker_spec import WorkerSpec, spec_of
from ot.introspect.ot_pack import OtPack, View
from ot.introspect.pages import Pages
from ot.introspect.statistics import Statistics
from ot.introspect.stored_results import read_result
from ot.log_span import LogSpan
from ot.output.file_blobs import FileBlobs
from ot.output.finish import Finish
from ot.output.formats import stored_text
from ot.output.result_meta import Form
from ot.output.result_store import ResultStore
from ot.registry.definition_pins import DefinitionPins
from ot.registry.extension_source import TOOLS, Extension, extensions_of_project, extensions_of_user
from ot.registry.freshness import Freshness
from ot.registry.installed_source import installed_packs
from ot.registry.learned_shapes import LearnedShapes
from ot.registry.server_catalogue import ServerCatalogue
from ot.registry.server_definitions import ServerDefinitions
from ot.registry.server_files import FOLDER as SERVERS
from ot.registry.tool_definitions import ToolDefinitions
from ot.registry.tool_loader import ToolLoader, tools_of_functions
from ot.registry.tool_registry import Pack, ToolRegistry
from ot.runtime import project_proxy
from ot.runtime.engines.analysis_packages import AnalysisPackages
from ot.runtime.engines.choice import EngineChoice
from ot.runtime.engines.engine import Engine
from ot.runtime.pack_proxy import TellProgress
from ot.runtime.project_proxy import ProjectProxy
from ot.runtime.reply import Reply
from ot.runtime.runner import Runner
from ot.runtime.sessions import Sessions
from ot.runtime.snippet_renderer import SnippetRenderer
from ot.runtime.snippets import Snippets
from ot.stats.flat_listing import flat_chars
from ot.stats.recorder import Place, Recorder
from ot.stats.rows import CLI
from ot.version import installed_version

logger = logging.getLogger(__name__)

MAX_RESOURCE_BYTES = 4 << 20
ReadExtensions = Callable[[Loaded], Iterable[Extension]]
"""Finds the packs that users wrote; a later one replaces an earlier one of the same name."""

BUNDLED = ToolLoader(Path(ot_tools.__file__).parent, "ot_tools")


@dataclass(frozen=True)
class Picture:
    """Everything that a configuration decides, built together; a reload builds another and swaps one reference."""

    loaded: Loaded
    registry: ToolRegistry
    runner: Runner
    store: ResultStore
    workers: Mapping[str, WorkerSpec]
    servers: Mapping[str, ServerSpec]
    freshness: Freshness


class App:
    """One OneTool: a picture, and the engine and processes that outlive it."""

    def __init__(
        self,
        paths: Paths,
        *,
        trust_project: bool = False,
        packs: Iterable[Pack] = (),
        extensions: ReadExtensions | None = None,
        observers: Sequence[CallObserver] = (),
        engine: Engine | None = None,
        allow_always: AllowAlways | None = None,
    ) -> None:
        """Read the configuration and build the first picture; *packs* are offered beside the bundled ones.

        *extensions* stands in for the packs of the user's and the project's directories. *allow_always* writes a
        tool that the user always allows into the user's configuration; without it, that answer is not offered.

        Raises:
            ConfigError: The configuration cannot be used.
        """
        self.paths = paths
        self.caller = f"uid:{os.getuid()}" if hasattr(os, "getuid") else "user"
        self._trust_project = trust_project
        self._more_packs = tuple(packs)
        self._find_extensions = extensions or partial(_extensions, paths)
        self._allow_always = allow_always or partial(_allow_always, paths)
        self._renderer = SnippetRenderer()
        self.pool = WorkerPool(paths.global_dir)
        self.pins = DefinitionPins(paths.global_dir / SERVERS)
        self.shapes = LearnedShapes(paths.global_dir / SERVERS)
        self.roots = ClientRoots()
        self.servers = ServerPool(self._learned, roots=self.roots)
        self._shelf = ServerShelf(self.servers, ServerCatalogue(paths.global_dir / SERVERS), self.pins, self.shapes)
        loaded = self._load()
        self.recorder = Recorder(stats_place(loaded))
        self._observers = (*observers, self.recorder)
        self.definition_chars = 0
        """The characters of our own tool list, once a face has told."""
        self.engine: Engine = engine or _engine(loaded, paths)
        self.sessions = Sessions(loaded.config.sessions, self.engine)
        self.picture = self._picture(loaded)
        self._notice = _notice(self.picture.loaded)

    # ---------------------------------------------------------------- what the faces ask

    async def run(
        self,
        command: str,
        *,
        progress: TellProgress | None = None,
        ask: AskUser | None = None,
        client: str = "unknown",
        session: str = "",
    ) -> Reply:
        """Answer a command of *client*; the first answer also says what was left out and why."""
        await self._refresh(command)
        await self._know_servers(command)
        if client != CLI and self.definition_chars:
            self.recorder.connected(client, partial(flat_chars, self.picture.registry), self.definition_chars)
        runner = self.picture.runner
        reply = await runner.run(
            command, caller=self.caller, progress=progress, ask=ask, client=client, session=session
        )
        self._shelf.ask_others_later()
        notices = [self._notice, self.engine.take_news() if isinstance(self.engine, EngineChoice) else ""]
        self._notice = ""
        return replace(reply, texts=(*reply.texts, *filter(None, notices))) if any(notices) else reply

    @property
    def ask_seconds(self) -> float:
        """How long a question to the user waits for its answer."""
        return self.picture.loaded.config.policy.ask_seconds

    async def call(
        self,
        pack: str,
        name: str,
        arguments: Mapping[str, Any],
        *,
        progress: TellProgress | None = None,
        ask: AskUser | None = None,
        client: str = "unknown",
    ) -> Reply:
        """Answer one call of a tool, for a model that is given tools and writes no programs."""
        await self._refresh(f"{pack}.{name}")
        await self._know_servers(pack)
        runner = self.picture.runner
        return await runner.call(pack, name, arguments, caller=self.caller, progress=progress, ask=ask, client=client)

    async def _refresh(self, command: str) -> None:
        """Take up a changed configuration or pack before it is used.

        With a configuration that cannot be used, the old one stays; packs are as they are on disk all the same.
        """
        if not self.picture.freshness.is_lost(command):
            return
        try:
            await self.reload()
        except OneToolError as error:
            logger.warning("the changed configuration is not used: %s", error)
            self._notice = (
                f"note: the changed configuration is not used, the one before stays; packs are as on disk: {error}"
            )
            self.picture = self._picture(_without_changed_project(self.picture.loaded))
            self.pool.keep_only(spec.key for spec in self.picture.workers.values())

    async def _know_servers(self, command: str) -> None:
        """Ask the servers that *command* may use what they offer, if that is not known, and show what was learned."""
        await self._shelf.ask_named(_reachable(command, self.picture.loaded.config))
        if self._shelf.stale:
            # With the old stamps: what changed on disk meanwhile is still to be noticed.
            self.picture = replace(self._picture(self.picture.loaded), freshness=self.picture.freshness)

    def _learned(self, server: str, definitions: ServerDefinitions) -> None:
        self._shelf.learned(server, definitions)

    async def definitions_of(self, packs: Sequence[str]) -> ToolDefinitions:
        """Define the tools of *packs* one by one; a server among them is asked what it offers.

        Raises:
            UnknownPack: One of them does not exist.
        """
        await self._know_servers(" ".join(packs))
        for pack in packs:
            self.picture.registry.pack(pack)
        return ToolDefinitions.chosen(self.picture.registry, packs)

    def tool_names(self) -> list[str]:
        """Name every tool."""
        return [tool.full_name for tool in self.picture.registry.tools()]

    def tool_help(self, name: str) -> str:
        """Explain one tool."""
        pack, _, function = name.partition(".")
        config = self.picture.loaded.config
        return Pages(config.prompts.packs, config.docs_url).tool(
            self.picture.registry.tool(pack, function), self.picture.registry.pack(pack)
        )

    def stored_text(self, handle: str) -> str:
        """Return the text of a stored result of this caller."""
        with self.picture.store.open_content(handle, owner=self.caller) as content:
            text = content.read(MAX_RESOURCE_BYTES + 1)
        if len(text) > MAX_RESOURCE_BYTES:
            raise ResultError(f"the result is larger than {MAX_RESOURCE_BYTES:,} bytes: page it with ot.result()")
        # Also what was stored before a reload made it known as a secret.
        return self.picture.loaded.secrets.redact(text.decode(errors="replace"))

    async def start(self) -> None:
        """Choose the engine and start it ahead of the first run.

        Raises:
            EngineUnavailable: The settings ask for one that cannot be had.
        """
        if isinstance(self.engine, EngineChoice):
            await self.engine.start(self.picture.loaded.config.limits)

    async def choose_engine(self) -> str:
        """Return the name of the engine, once it is chosen.

        Raises:
            EngineUnavailable: As ``start``.
        """
        if isinstance(self.engine, EngineChoice):
            await self.engine.choose()
        return self.engine.name

    def spawn_engine(self) -> None:
        """Start the engine's process and go on."""
        if isinstance(self.engine, EngineChoice):
            self.engine.spawn()

    async def reload(self) -> None:
        """Build a new picture from what is on disk now and swap it in; runs under way keep theirs.

        Raises:
            ConfigError: It cannot be used; the old picture stays.
        """
        loaded = await anyio.to_thread.run_sync(self._load)
        self.picture = self._picture(loaded)
        self.recorder.move(stats_place(loaded))
        self.pool.keep_only(spec.key for spec in self.picture.workers.values())
        self.servers.keep_only(spec.key for spec in self.picture.servers.values())
        self._shelf.reloaded()
        self._notice = _notice(self.picture.loaded)
        if isinstance(self.engine, EngineChoice):
            await self.engine.try_again()

    async def aclose(self) -> None:
        """End everything that was started."""
        await self._shelf.aclose()
        await self.servers.aclose()
        await self.pool.aclose()
        await self._renderer.aclose()
        await anyio.to_thread.run_sync(self.shapes.flush)
        await self.sessions.aclose()
        await self.engine.aclose()
        await anyio.to_thread.run_sync(self.recorder.close)

    # ---------------------------------------------------------------- how a picture is built

    def _load(self) -> Loaded:
        return load_config(self.paths, Trust(self.paths.global_dir), trust_project=self._trust_project)

    def _picture(self, loaded: Loaded) -> Picture:
        found = list(self._find_extensions(loaded))
        loaded = _with_replaced_packs(loaded, found)
        config = loaded.config
        store = _store(loaded, self.pool.spooled_bytes)
        extensions = {extension.name: extension for extension in found}
        specs = {name: spec_of(extension, config, loaded.secrets) for name, extension in extensions.items()}
        # What a worker or a model's service is given of the environment is a secret in every text that leaves.
        given = [name for spec in specs.values() for name in spec.secrets]
        loaded = replace(loaded, secrets=loaded.secrets.using([*given, *MODEL_KEYS.values()]))
        servers = specs_of_servers(loaded, self.paths, trusted=self._trust_project)
        redact = loaded.secrets.redact
        projects = ProjectProxy(config.projects, redact)
        registry_box: list[ToolRegistry] = []
        snippets = Snippets(config.snippets, self._renderer)
        ot = OtPack(self._view(loaded, store, registry_box, servers, snippets))
        live = {"ot": ot.functions(), project_proxy.PACK: projects.functions}
        installed = installed_packs()
        packs = [*self._shelf.packs(servers), *installed, *BUNDLED.packs(), *self._more_packs]
        registry = ToolRegistry([*packs, *(extension.pack() for extension in extensions.values()), *_live_packs(live)])
        registry_box.append(registry)
        bound = {f"{pack}:{name}": function for pack, functions in live.items() for name, function in functions.items()}
        executor = ToolExecutor(
            registry,
            {
                "in_process": InProcessBackend(
                    _contexts(loaded, self.paths, registry, servers, extensions.values(), installed), bound
                ),
                "worker": WorkerBackend(self.pool, specs, partial(_store_file, store)),
                "mcp_proxy": McpProxyBackend(self.servers, servers, self.shapes.learn_from),
            },
            policy=_policy(config),
            require_approved=self.pins.require_approved if config.policy.changed_definitions == "block" else None,
            as_approved=self.pins.as_approved,
            call_seconds=config.limits.call_seconds,
            observers=self._observers,
        )
        runner = Runner(
            executor=executor,
            engine=self.engine,
            finish=Finish(config.output, store, redact, config.limits.value_parts),
            snippets=snippets,
            projects=projects,
            aliases=config.aliases,
            limits=config.limits,
            security=config.security,
            redact=redact,
            consent=partial(Consent, calls=config.policy.ask_calls, redact=redact, always=self._allow_always),
            observers=[self.recorder],
            sessions=self.sessions,
        )
        return Picture(loaded, registry, runner, store, specs, servers, self._freshness(loaded))

    def _freshness(self, loaded: Loaded) -> Freshness:
        return _freshness(loaded, self.paths, self._find_extensions(loaded))

    def _view(
        self,
        loaded: Loaded,
        store: ResultStore,
        registry: list[ToolRegistry],
        servers: Mapping[str, ServerSpec],
        snippets: Snippets,
    ) -> View:
        async def engine_health() -> Mapping[str, Any]:
            health = await self.engine.health()
            return {"name": health.name, "status": health.status, **health.details}

        return View(
            registry=lambda: registry[0],
            config=loaded.config,
            cwd=str(self.paths.cwd),
            project=loaded.project_state,
            warnings=loaded.warnings,
            pages=partial(read_result, store, owner=self.caller, max_bytes=loaded.config.limits.value_bytes),
            engine_health=engine_health,
            workers=self.pool.states,
            servers=partial(self._server_states, servers),
            expand=snippets.expand,
            reload=self.reload,
            session=partial(self._session, loaded, store),
            changed=self.pins.all_changed,
            statistics=self._statistics(loaded),
            project_dir=self.paths.project_dir,
        )

    async def _session(self, loaded: Loaded, store: ResultStore, name: str, action: str) -> Any:
        if action != "save":
            return await self.sessions.tell(self.caller, name, action)
        found = await self.sessions.variables(self.caller, name, loaded.config.limits)

        def keep() -> str:
            text = loaded.secrets.redact(stored_text(found.plain, None))
            return store.put([text], tool="ot.session", owner=self.caller, form="json").handle

        handle = await anyio.to_thread.run_sync(keep)
        return {"handle": handle, "saved": list(found.plain), "left_out": list(found.left_out)}

    def _server_states(self, servers: Mapping[str, ServerSpec]) -> dict[str, Mapping[str, Any]]:
        used = self.servers.states()
        return {name: used.get(name) or spec.state_unused for name, spec in servers.items()}

    def _statistics(self, loaded: Loaded) -> Statistics:
        def figures(period: str, tool: str) -> Any:
            from ot.stats.query import read_figures  # noqa: PLC0415 - the database's library is for those who ask

            self.recorder.flush()
            return read_figures(stats_place(loaded).file, period, time.time(), tool=tool)

        stats = loaded.config.stats
        return Statistics(stats.enabled, stats.round_trip_ms, figures, self.recorder.health)


def stats_place(loaded: Loaded) -> Place:
    """Return where the statistics of this configuration are kept."""
    return Place(loaded.state_dir / "stats" / "stats.db", loaded.config.stats)


def _engine(loaded: Loaded, paths: Paths) -> EngineChoice:
    engines = loaded.config.engines
    wanted = engines.exact.packages
    packages = AnalysisPackages(wanted, PackEnvironments(paths.global_dir, os.environ)) if wanted else None
    return EngineChoice(engines, packages=packages, sessions=loaded.config.sessions.most)


def _policy(config: Config) -> Policy:
    said = config.policy
    return Policy(allow=said.allow, ask=said.ask, deny=said.deny, exact_names=said.exact_names)


async def _allow_always(paths: Paths, pattern: str) -> None:
    """Write *pattern* into the user's own configuration; the next run takes it up."""
    change = partial(edit_config, paths, lambda text: with_pattern(text, "allow", pattern), use_global=True)
    await anyio.to_thread.run_sync(change)


def _extensions(paths: Paths, loaded: Loaded) -> list[Extension]:
    """Return the packs that users wrote: the user's own, and a project's, which replace them."""
    return [*extensions_of_user(paths.global_dir), *extensions_of_project(loaded.project)]


def known_packs(loaded: Loaded, extensions: Iterable[Extension]) -> dict[str, str]:
    """Return every pack that the project did not bring, with whose it is."""
    servers = {
        server.pack or pack_name(name): "the pack of your server"
        for name, server in loaded.config.servers.items()
        if name not in loaded.servers_of_project
    }
    installed = {pack.name: "the installed pack" for pack in installed_packs()}
    bundled = {pack.name: "the bundled pack" for pack in BUNDLED.packs()}
    own = {extension.name: "your pack" for extension in extensions if not extension.of_project}
    return servers | installed | bundled | own


def _with_replaced_packs(loaded: Loaded, extensions: Sequence[Extension]) -> Loaded:
    """Return *loaded* saying which packs the project puts in another's place; they do not get that one's settings."""
    brought = [extension.name for extension in extensions if extension.of_project]
    known = known_packs(loaded, extensions) if brought else {}
    replaced = [name for name in brought if name in known]
    said = [f"the project's pack '{name}' replaces {known[name]} '{name}'" for name in replaced]
    new = tuple(text for text in said if text not in loaded.replaced)
    tools = {**loaded.config.tools, **{name: loaded.tools_of_project.get(name, {}) for name in replaced}}
    return replace(
        loaded,
        config=loaded.config.model_copy(update={"tools": tools}) if replaced else loaded.config,
        replaced=(*loaded.replaced, *new),
        warnings=(*loaded.warnings, *new),
    )


def _freshness(loaded: Loaded, paths: Paths, found: Iterable[Extension]) -> Freshness:
    """Watch the configuration and the directories of packs, and each pack's own files."""
    folders = [paths.global_dir / TOOLS, paths.cwd / FOLDER / TOOLS]
    places = paths.global_dir, paths.cwd / FOLDER
    configs = [*(place / name for place in places for name in (CONFIG_FILE, PROMPTS_FILE)), *loaded.files]
    packs = {pack.name: [pack.directory, *(pack.directory / file for file in pack.files)] for pack in found}
    return Freshness([*folders, *configs], packs)


def _without_changed_project(loaded: Loaded) -> Loaded:
    """Return *loaded* without the packs of a project whose files are no longer those that were trusted."""
    project = loaded.project
    if project is None or take_snapshot(project.root, of_project=True).contents == project.contents:
        return loaded
    return replace(loaded, project=None)


def _reachable(command: str, config: Config) -> list[str]:
    """Return the command, and what its words may stand for: the tools of aliases, the bodies of snippets."""
    aliased = [target for name, target in config.aliases.items() if name in command]
    bodies = [snippet.body for name, snippet in config.snippets.items() if name in command]
    return [command, *aliased, *bodies]


def _store_file(store: ResultStore, file: Path, *, tool: str, owner: str) -> str:
    with file.open("rb") as content:
        # A worker says what it wrote: a text, or a value as tagged JSON.
        form: Form = "tagged" if file.suffix == ".json" else "text"
        return store.put(iter(partial(content.read, 1 << 20), b""), tool=tool, owner=owner, form=form).handle


def _live_packs(live: Mapping[str, Mapping[str, Any]]) -> list[Pack]:
    def pack(name: str) -> Pack:
        format = "yml" if name == "ot" else None
        return Pack(
            name, "local", lambda: tools_of_functions(name, live[name], format=format), origin="ot", bundled=True
        )

    return [pack(name) for name in live]


def _store(loaded: Loaded, spooled_bytes: Callable[[], int]) -> ResultStore:
    output = loaded.config.output
    ttl, most = output.result_ttl, output.max_total_bytes
    blobs = FileBlobs(loaded.results_dir, ttl=ttl, max_total_bytes=most, below=loaded.below, beside=spooled_bytes)
    return ResultStore(blobs, ttl=ttl, max_total_bytes=most, max_page_bytes=output.max_inline_size or 1 << 20)


def _contexts(
    loaded: Loaded,
    paths: Paths,
    registry: ToolRegistry,
    servers: Mapping[str, ServerSpec],
    extensions: Collection[Extension],
    installed: Collection[Pack],
) -> Any:
    config = loaded.config
    roots = (paths.cwd, *(expand_home(root) for root in config.security.roots))
    hidden = (paths.global_dir, loaded.results_dir, *loaded.secret_files)
    homes = tuple(Path(spec.cwd) for spec in servers.values() if spec.private)
    packages = Path(ot_tools.__file__).parent, Path(__file__).parent

    def locked() -> list[Locked]:
        places = locked_places(paths, roots, packages)
        executed = [place for spec in servers.values() for place in executed_by(spec)]
        own = ((extension.name, extension.directory) for extension in extensions)
        return [*places, *executed, *pack_places(own, ((pack.name, pack.origin) for pack in installed))]

    guard = PathGuard(roots, hidden=hidden, locked=locked, shown=homes)

    def open_llm() -> LanguageModel:
        from ot.chat.tool_model import ToolModel  # noqa: PLC0415 - few tools ask a model

        return ToolModel(config.chat, loaded.secrets)

    def context(pack: str) -> ToolContext:
        log = logging.getLogger(f"ot_tools.{pack}")
        return ToolContext(guard, paths.cwd, config.tools.get(pack, {}), log, registry, config, open_llm)

    return context


def _notice(loaded: Loaded) -> str:
    if loaded.project_state in ("none", "trusted"):
        return f"note: {'; '.join(loaded.replaced)}" if loaded.replaced else ""
    return f"note: {loaded.warnings[-1]}"


async def serve(app: App, packs: Sequence[str] = ()) -> None:
    """Serve *app* over standard input and output until the client goes away; *packs* also tool by tool.

    Raises:
        UnknownPack: One of *packs* does not exist.
        EngineUnavailable: The engine that was asked for cannot be had.
    """
    # It gets warm while the protocol's library is imported.
    app.spawn_engine()
    from ot.server.drain import Drain  # noqa: PLC0415 - as below
    from ot.server.mcp_server import build_server, listed_chars  # noqa: PLC0415 - importing FastMCP costs more than all else together
    from ot.server.serve import serve_stdio  # noqa: PLC0415 - as above

    with LogSpan(logger, "mcp.server.start", version=installed_version(), cwd=str(app.paths.cwd)):
        try:
            engine = await app.choose_engine()
            classic = await app.definitions_of(packs) if packs else None
        except OneToolError:
            await app.aclose()
            raise
        drain = Drain(lambda: app.picture.loaded.config.limits.drain_seconds)
        server = build_server(app, installed_version(), engine, classic, drain)
        app.definition_chars = await listed_chars(server)
    with LogSpan(logger, "mcp.server.stop"):
        await serve_stdio(server, app.start, app.aclose, drain)

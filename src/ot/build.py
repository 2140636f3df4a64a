"""Builds everything that a configuration describes, starting nothing. The only file that knows every package."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO

import anyio.to_thread

import ot_packs
import ot_tools
from ot.config.load import Loaded
from ot.config.models import Config, pattern_lists
from ot.config.paths import CONFIG_FILE, FOLDER, PROMPTS_FILE, Paths, expand_home
from ot.config.principal import Owner, os_user, place_of
from ot.config.secrets import MODEL_KEYS
from ot.config.setting_types import pack_name
from ot.config.trust import TRUST_FILE
from ot.errors import ChatError, ConfigError, OneToolError
from ot.execution.backends.backend import Border
from ot.execution.backends.in_process import THREADS_OF_ONE, InProcessBackend
from ot.execution.backends.saved import SavedProgramBackend
from ot.execution.call_context import CallContext, ModelOfRun, OpenModel
from ot.execution.caller import Caller
from ot.execution.consent import AllowAlways, AlwaysAllowed, RunConsent, how_operators_allow
from ot.execution.deadline import Deadline
from ot.execution.locked_places import locked_places, pack_places
from ot.execution.policy import ToolPolicy
from ot.execution.tool_context import ToolContext, current_tool_context
from ot.execution.tool_executor import CallObserver, ToolExecutor
from ot.files.path_guard import PathGuard
from ot.files.protected_paths import LockedPath
from ot.files.run_images import FOLDER as UNDO
from ot.files.run_images import ImageBounds, ImageStore
from ot.files.undo_plan import NotesToRestore
from ot.host import Host
from ot.introspect.background_runs import RunActions
from ot.introspect.ot_pack import DESTRUCTIVE, OtPack, View
from ot.introspect.run_undo import RunUndo
from ot.introspect.statistics import Statistics
from ot.ledger.run_book import KeptLedger
from ot.output.file_blobs import FileBlobs
from ot.output.finish import Finish
from ot.output.result_blobs import Form, ResultBlobs
from ot.output.result_store import ResultStore, read_result
from ot.output.stored_text import stored_text
from ot.proxied.auth.login_state import LoginState, login_states
from ot.proxied.backend import McpProxyBackend
from ot.proxied.catalogue import ServerCatalogue
from ot.proxied.definition_pins import DefinitionPins
from ot.proxied.executed_files import list_executed_files
from ot.proxied.spec import ServerSpec, resolve_specs
from ot.registry.bundled_extensions import bundled_extensions
from ot.registry.extension_source import TOOLS, Extension, extensions_of_user
from ot.registry.freshness import Freshness
from ot.registry.installed_source import installed_packs
from ot.registry.pack_needs import missing_needs
from ot.registry.saved_programs import BACKEND, PROGRAMS, SavedProgram, leave_out_taken, programs_of_project
from ot.registry.tool import Tool
from ot.registry.tool_loader import ToolLoader, tools_of_functions
from ot.registry.tool_registry import Pack, ToolRegistry, describe_hidden_pack
from ot.runtime import project_proxy
from ot.runtime.engines.engine import Engine
from ot.runtime.project_proxy import ProjectProxy
from ot.runtime.runner import Runner
from ot.runtime.sessions import Sessions
from ot.runtime.snippets import Snippets
from ot.stats.recorder import Recorder, StatsPlace
from ot.stores import LANGUAGE_MODEL, load_store
from ot.workers.backend import WorkerBackend
from ot.workers.spec import WorkerSpec, specs_of

type LiveFunctions = Mapping[str, Mapping[str, Callable[..., Any]]]
"""Functions of this process by pack and by name."""

SHARED = "everyone may read it and nobody may write it"
BUNDLED = ToolLoader(Path(ot_tools.__file__).parent, "ot_tools")
if not any(BUNDLED.packs()):
    raise ImportError("ot_tools has no packs: OneTool is being installed, or its installation is incomplete")
IN_WORKERS = Path(ot_packs.__file__).parent
HELPER = Path(ot_tools.__file__).parent / "_helper.py"


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
    recorder: Recorder
    undo: RunUndo
    disabled_in_vain: Sequence[str] = ()
    """The names in ``packs.disabled`` that leave nothing out."""

    def hidden_packs(self) -> list[str]:
        """Name the bundled packs that the user's servers replace."""
        packs = self.registry.packs
        return [
            describe_hidden_pack(packs[name].server, name)
            for name in sorted(self.registry.hidden)
            if packs[name].server not in self.loaded.servers_of_project
        ]

    def missing_needs(self) -> dict[str, list[str]]:
        """Return what packs need besides their packages and do not have, by pack, each with what to do."""
        return _missing_needs(self.loaded, self.registry)


@dataclass(frozen=True)
class Parts:
    """What a workspace builds its pictures of, beside the configuration."""

    host: Host
    paths: Paths
    engine: Engine
    sessions: Sessions
    catalogue: ServerCatalogue
    pins: DefinitionPins
    reload: Callable[[], Awaitable[None]]
    know_servers: Callable[[], Awaitable[ToolRegistry]]
    runs: Callable[[], RunActions]
    allow_always: AllowAlways | None = None
    always_allowed: AlwaysAllowed | None = None
    owner: Owner = field(default_factory=Owner)
    trust_project: bool = False
    packs: Sequence[Pack] = ()
    """Packs that are offered beside the bundled ones."""
    observers: Sequence[CallObserver] = ()
    functions: LiveFunctions = field(default_factory=dict[str, Mapping[str, Callable[..., Any]]])
    """Packs whose functions live in this process, by pack and name."""
    connection: str = ""
    """The one that is served, where others are served on the same host."""

    @property
    def directory(self) -> str:
        """What names the directory that runs and effects belong to, among all in which its owner works.

        On a team's server everyone works in one, which has another path on each replica.
        """
        alone = self.owner.is_user and self.host.submit_run is None
        return os.path.realpath(self.paths.cwd) if alone else ""


def build(parts: Parts, loaded: Loaded, found: Sequence[Extension], recorder: Recorder, ledger: KeptLedger) -> Picture:
    """Build everything from *loaded* and the packs that were *found*."""
    host = parts.host
    loaded = _with_replaced_packs(loaded, found)
    config, said = loaded.config, loaded.config.policy
    extensions = {pack.name: pack for pack in (*bundled_extensions(IN_WORKERS), *found)}
    workers = specs_of(extensions.values(), config, loaded.secrets, parts.owner)
    # What a worker or a model's service is given of the environment is a secret in every text that leaves.
    given = [name for spec in workers.values() for name in spec.secrets]
    # Tokens that were issued before a reload are redacted after it, too.
    secrets = replace(loaded.secrets.using([*given, *MODEL_KEYS]), issued=host.secrets_of(parts.owner.principal))
    loaded = replace(loaded, secrets=secrets)
    servers = resolve_specs(
        loaded,
        parts.paths,
        trusted=parts.trust_project,
        principal=parts.owner.principal,
        shared_logins=host.sharing.logins if host.sharing else None,
        connection=parts.connection,
        asks=host.servers.asking.holds,
    )
    store = _store(loaded, host)
    redact = loaded.secrets.redact
    projects = ProjectProxy(config.projects, redact)
    snippets = Snippets(config.snippets, host.renderer)
    installed = installed_packs()
    offered = [
        # A server that the user calls "git" or "memory" is what the user wants by that name.
        *BUNDLED.packs(),
        *(extension.pack() for extension in bundled_extensions(IN_WORKERS)),
        *parts.catalogue.packs(servers),
        *installed,
        *parts.packs,
        *(extension.pack() for extension in found),
        *_live_packs(parts.functions, origin="this process"),
    ]
    saved = [*host.program_files.read(parts.paths.global_dir / PROGRAMS), *programs_of_project(loaded.project)]
    programs, left_out = leave_out_taken(saved, {pack.name for pack in offered})
    offered += [program.pack() for program in programs.values()]
    loaded = replace(loaded, warnings=(*loaded.warnings, *left_out)) if left_out else loaded
    disabled = {pack.name for pack in offered}.intersection(config.packs.disabled)
    wanted = [pack for pack in offered if pack.name not in disabled]
    # Of a pack that is disabled, or that another one replaces, nothing is installed and nothing is told.
    used = {pack.name: pack.origin for pack in wanted}
    workers = {name: spec for name, spec in workers.items() if used.get(name) == str(extensions[name].directory)}
    view = _view(parts, loaded, store, workers, servers, snippets, recorder)
    guard = _guard(loaded, parts, servers, found, installed)
    images = _image_store(parts, config)
    notes = partial(_notes_to_restore, parts.paths.global_dir)
    run_undo = RunUndo(images, guard, notes, parts.directory, _kept_elsewhere(parts))
    effects = partial(_effects, ledger, parts.directory)
    view = replace(view, effects=effects, ledger=ledger.health, redact=redact, undo=run_undo)
    ot_pack = OtPack(view)
    own = {"ot": ot_pack.functions(), project_proxy.PACK: projects.functions}
    live = {**parts.functions, **own}
    registry = ToolRegistry([*wanted, *_live_packs(own, origin="ot", bundled=True)], disabled)
    contexts = partial(_context, loaded, parts, registry, guard)
    finish = Finish(config.output, store, redact, config.limits.value_parts)
    bound = {f"{pack}:{name}": function for pack, known in live.items() for name, function in known.items()}
    in_workers = WorkerBackend(host.workers, workers, partial(_store_file, store), guard)

    async def hand_over(tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        return await in_workers.carry_out(host.helper(HELPER), tool, arguments, context)

    executor = ToolExecutor(
        registry,
        {
            "in_process": InProcessBackend(
                contexts, bound, lambda: host.heavy, hand_over, None if parts.owner.is_user else THREADS_OF_ONE
            ),
            "worker": in_workers,
            BACKEND: SavedProgramBackend(programs),
            "mcp_proxy": McpProxyBackend(host.servers, servers, host.shapes.learn_from, partial(_store_copy, store)),
        },
        policy=ToolPolicy(
            **pattern_lists(said),
            exact_names=said.exact_names,
            groups={name: pattern_lists(group) for name, group in said.groups.items()},
            read_only=said.read_only,
        ),
        require_approved=parts.pins.require_approved if said.changed_definitions == "block" else None,
        as_approved=parts.pins.as_approved,
        call_seconds=config.limits.call_seconds,
        observers=(*parts.observers, *host.watchers.calls, recorder),
        border=Border(config.limits, finish.keep),
        audit=host.watchers.effects,
        open_span=host.watchers.open_call_span,
        ledger=ledger,
        refuse_unrecorded=config.ledger.unavailable == "refuse",
        directory=parts.directory,
    )
    runner = Runner(
        executor=executor,
        engine=parts.engine,
        finish=finish,
        snippets=snippets,
        projects=projects,
        aliases=config.aliases,
        limits=config.limits,
        security=config.security,
        redact=redact,
        consent=partial(_consent, parts, said.ask_calls, redact, partial(_text_at, guard)),
        observers=[*host.watchers.runs, recorder],
        open_span=host.watchers.open_run_span,
        sessions=parts.sessions,
        find_tools=partial(ot_pack.find_tools, registry),
        unused_secrets=loaded.unused_secrets,
        models=partial(_model_of_a_run, loaded, host),
        feed=host.feed,
        directory=str(parts.paths.cwd),
        take_room=parts.owner.take_room,
        images=partial(images.images_of, directory=parts.directory),
        # On a server of several nobody has a directory to save programs in.
        keep_program=partial(host.kept_programs.keep, parts.directory) if parts.directory else None,
    )
    freshness = _freshness(loaded, parts, found, programs)
    in_vain = [name for name in config.packs.disabled if name not in disabled]
    return Picture(loaded, registry, runner, store, workers, servers, freshness, recorder, run_undo, in_vain)


def _missing_needs(loaded: Loaded, registry: ToolRegistry) -> dict[str, list[str]]:
    secrets, path = loaded.secrets, loaded.secrets.environment.get("PATH", "")
    usable = (pack for pack in registry.packs.values() if pack.source != "proxy" and not pack.broken)
    found = {pack.name: missing_needs(pack.needs, secrets.get, path) for pack in usable}
    return {name: missing for name, missing in found.items() if missing}


def stats_place(loaded: Loaded) -> StatsPlace:
    """Return where the statistics of this configuration are kept."""
    return StatsPlace(loaded.state_dir / "stats" / "stats.db", loaded.config.stats)


def recordings_place(loaded: Loaded, paths: Paths) -> Path | None:
    """Return where runs of clients are recorded; None where they are not."""
    place = loaded.config.recording.directory
    return paths.global_dir / expand_home(place) if place else None


def known_packs(loaded: Loaded, extensions: Iterable[Extension]) -> dict[str, str]:
    """Return every pack that the project did not bring, with whose it is."""
    servers = {
        server.pack or pack_name(name): "the pack of your server"
        for name, server in loaded.config.servers.items()
        if name not in loaded.servers_of_project
    }
    installed = {pack.name: "the installed pack" for pack in installed_packs()}
    bundled = dict.fromkeys(bundled_names(), "the bundled pack")
    own = {extension.name: "your pack" for extension in extensions if not extension.of_project}
    return bundled | servers | installed | own


def names_in_use(global_dir: Path) -> dict[str, str]:
    """Return the packs of the user in *global_dir* that no server should hide by accident, with what each is."""
    own = {extension.name: "a pack of yours" for extension in extensions_of_user(global_dir)}
    installed = {pack.name: "an installed pack" for pack in installed_packs()}
    return dict.fromkeys(("ot", project_proxy.PACK, *bundled_names()), "a bundled pack") | installed | own


def bundled_names() -> list[str]:
    """Return the names of the packs that come with OneTool."""
    return [pack.name for pack in (*BUNDLED.packs(), *bundled_extensions(IN_WORKERS))]


def _with_replaced_packs(loaded: Loaded, extensions: Sequence[Extension]) -> Loaded:
    """Return *loaded*, noting which packs the project replaces; the replacements do not get their settings."""
    brought = [extension.name for extension in extensions if extension.of_project]
    known = known_packs(loaded, extensions) if brought else {}
    replaced = [name for name in brought if name in known]
    said = [f"the project's pack '{name}' replaces {known[name]} '{name}'" for name in replaced]
    servers = {loaded.config.servers[name].pack or pack_name(name) for name in loaded.servers_of_project}
    taken = sorted(servers.intersection(bundled_names())) if servers else []
    said += [f"the project's server '{name}' replaces the bundled pack '{name}'" for name in taken]
    new = tuple(text for text in said if text not in loaded.replaced)
    tools = {**loaded.config.tools, **{name: loaded.tools_of_project.get(name, {}) for name in replaced}}
    return replace(
        loaded,
        config=loaded.config.model_copy(update={"tools": tools}) if replaced else loaded.config,
        replaced=(*loaded.replaced, *new),
        warnings=(*loaded.warnings, *new),
    )


def _freshness(
    loaded: Loaded, parts: Parts, found: Iterable[Extension], programs: Mapping[str, SavedProgram]
) -> Freshness:
    """Watch the configuration and the directories of packs, and each pack's own files."""
    # Another principal's directory is no project, whatever lies in it.
    places = [parts.paths.global_dir, *([parts.paths.cwd / FOLDER] if parts.owner.is_user else [])]
    folders = [place / TOOLS for place in places]
    configs = [*(place / name for place in places for name in (CONFIG_FILE, PROMPTS_FILE)), *loaded.files]
    if loaded.project_state != "none":
        configs.append(parts.paths.global_dir / TRUST_FILE)
    packs = {pack.name: [pack.directory, *(pack.directory / file for file in pack.files)] for pack in found}
    packs |= {name: [program.file] for name, program in programs.items()}
    # Under a name that no program has: it costs a run nothing, and is looked at with what no run has named.
    return Freshness([*folders, *configs], packs | {"": [place / PROGRAMS for place in places]})


# ---------------------------------------------------------------- packs that live in this process


def _live_packs(live: LiveFunctions, *, origin: str, bundled: bool = False) -> list[Pack]:
    def pack(name: str) -> Pack:
        marks: dict[str, Any] = {"format": "yml", "destructive": DESTRUCTIVE} if name == "ot" else {}
        read = partial(tools_of_functions, name, live[name], **marks)
        return Pack(name, "local", read, origin=origin, bundled=bundled)

    return [pack(name) for name in live]


def _view(
    parts: Parts,
    loaded: Loaded,
    store: ResultStore,
    workers: Mapping[str, WorkerSpec],
    servers: Mapping[str, ServerSpec],
    snippets: Snippets,
    recorder: Recorder,
) -> View:
    host, paths = parts.host, parts.paths

    async def engine_health() -> Mapping[str, Any]:
        health = await parts.engine.health()
        return {"name": health.name, "status": health.status, **health.details}

    def server_states() -> dict[str, Mapping[str, Any]]:
        return {name: host.servers.state(spec) or spec.state_unused for name, spec in servers.items()}

    def logins() -> dict[str, LoginState]:
        return login_states({name: spec.account for name, spec in servers.items()})

    return View(
        config=loaded.config,
        cwd=str(paths.cwd),
        project=loaded.project_state,
        warnings=loaded.warnings,
        pages=partial(read_result, store, max_bytes=loaded.config.limits.value_bytes),
        engine_health=engine_health,
        workers=lambda: host.workers.states(spec.key for spec in workers.values()),
        needs=lambda: _missing_needs(loaded, current_tool_context().registry),
        uninstalled=lambda: [
            name for name, spec in workers.items() if spec.state and not host.workers.find_installed(spec)
        ],
        servers=server_states,
        logins=logins,
        expand=snippets.expand,
        reload=parts.reload,
        session=partial(_session, parts.sessions, loaded, store),
        know_servers=parts.know_servers,
        changed=parts.catalogue.list_changes,
        statistics=_statistics(loaded, recorder),
        runs=parts.runs,
        project_dir=paths.project_dir,
        say_trouble=host.say_trouble,
    )


async def _session(sessions: Sessions, loaded: Loaded, store: ResultStore, name: str, action: str) -> Any:
    caller = current_tool_context().caller
    if action != "save":
        return await sessions.tell(caller.seat, name, action)
    found = await sessions.variables(caller.seat, name, loaded.config.limits)

    def keep() -> str:
        text = loaded.secrets.redact(stored_text(found.plain, None))
        return store.put([text], tool="ot.session", owner=caller.principal, form="json").handle

    handle = await anyio.to_thread.run_sync(keep)
    return {"handle": handle, "saved": list(found.plain), "left_out": list(found.left_out)}


async def _effects(ledger: KeptLedger, directory: str, run: str) -> list[dict[str, Any]]:
    principal = current_tool_context().caller.principal
    found = await (ledger.of_run(principal, run, directory) if run else ledger.unknown(principal, directory=directory))
    return [entry.as_row() for entry in found]


def _image_store(parts: Parts, config: Config) -> ImageStore:
    power = config.ledger.durability == "power"
    bounds = ImageBounds(**config.undo.model_dump(), days=config.ledger.days, power=power)
    directory = parts.paths.global_dir / UNDO
    return ImageStore(lambda principal: place_of(principal, directory), bounds)


def _notes_to_restore(global_dir: Path, principal: str) -> NotesToRestore:
    from ot.notes.notes_of_undo import NotesOfUndo  # noqa: PLC0415 - SQLite is for those who undo

    return NotesOfUndo(place_of(principal, global_dir / "data" / "memory"))


def _kept_elsewhere(parts: Parts) -> frozenset[str]:
    sharing = parts.host.sharing
    return frozenset(["memory"] if sharing and sharing.open_notes("", 0) else ())


def _statistics(loaded: Loaded, recorder: Recorder) -> Statistics:
    def figures(period: str, tool: str) -> Any:
        from ot.stats.query import read_figures  # noqa: PLC0415 - the database's library is for those who ask

        recorder.flush()
        principal = current_tool_context().caller.principal
        return read_figures(stats_place(loaded).file, period, time.time(), tool=tool, principal=principal)

    return Statistics(loaded.config.stats.enabled, figures, recorder.health)


# ---------------------------------------------------------------- what calls meet


def _consent(
    parts: Parts,
    calls: int,
    redact: Callable[[str], str],
    read_text: Callable[[str], str | None],
    caller: Caller,
    deadline: Deadline,
) -> RunConsent:
    # What is allowed for good is kept for the owner of the workspace.
    own = caller.principal == parts.owner.principal
    return RunConsent(
        caller.ask,
        deadline,
        calls=calls,
        redact=redact,
        always=parts.allow_always if own else None,
        allowed=parts.always_allowed if own else None,
        advise=None if caller.principal == os_user() else how_operators_allow,
        read_text=read_text,
    )


def _text_at(guard: PathGuard, path: str) -> str | None:
    """Return the text of a file that a call would replace; None where there is none that a person could compare."""
    from ot.execution.question_form import MAX_DIFFERENCE  # noqa: PLC0415 - most runs ask nothing

    try:
        with guard.open_for_reading(path) as stream:
            data = stream.read(MAX_DIFFERENCE + 1)
        return data.decode() if len(data) <= MAX_DIFFERENCE else None
    except (OSError, ValueError, OneToolError):
        return None


def _guard(
    loaded: Loaded,
    parts: Parts,
    servers: Mapping[str, ServerSpec],
    extensions: Collection[Extension],
    installed: Collection[Pack],
) -> PathGuard:
    config, paths, owner = loaded.config, parts.paths, parts.owner
    # The user's other roots are writable and belong to that user alone.
    more = map(expand_home, config.security.roots) if owner.is_user else ()
    roots = (paths.cwd, *more, *owner.shared)
    recorded = (place,) if (place := recordings_place(loaded, paths)) else ()
    hidden = (paths.global_dir, loaded.results_dir, *recorded, *loaded.secret_files)
    homes = tuple(Path(spec.cwd) for spec in servers.values() if spec.private)
    packages = Path(ot_tools.__file__).parent, IN_WORKERS, Path(__file__).parent

    def list_locked() -> list[LockedPath]:
        places = [*locked_places(paths, roots, packages), *(LockedPath(path, SHARED) for path in owner.shared)]
        executed = [place for spec in servers.values() for place in list_executed_files(spec)]
        own = ((extension.name, extension.directory) for extension in extensions)
        return [*places, *executed, *pack_places(own, ((pack.name, pack.origin) for pack in installed))]

    return PathGuard(roots, hidden=hidden, locked=list_locked, shown=homes, harmless=config.security.dot_names)


@cache
def _logger_of(pack: str) -> logging.Logger:
    return logging.getLogger(f"ot_tools.{pack}")


def _context(
    loaded: Loaded, parts: Parts, registry: ToolRegistry, guard: PathGuard, pack: str, call: CallContext
) -> ToolContext:
    config, paths = loaded.config, parts.paths
    return ToolContext(
        guard,
        paths.cwd,
        config.tools.get(pack, {}),
        _logger_of(pack),
        registry,
        config,
        call.open_llm,
        call.caller,
        call.key,
        paths.global_dir,
        call.deadline,
        call.told,
        call.call,
        call.writes,
        parts.host.sharing.open_notes if parts.host.sharing else None,
    )


def _model_of_a_run(loaded: Loaded, host: Host) -> OpenModel:
    def find() -> OpenModel:
        offered = _load_model()
        return offered(loaded.config, loaded.secrets, host.model_places)

    return ModelOfRun(find)


def _load_model() -> Any:
    try:
        return load_store(LANGUAGE_MODEL, "a model that tools may ask")
    except ConfigError as error:
        raise ChatError(str(error)) from None


# ---------------------------------------------------------------- where results are kept


def _store(loaded: Loaded, host: Host) -> ResultStore:
    output = loaded.config.output
    ttl, most = output.result_ttl, output.max_total_bytes
    beside = host.workers.count_spooled_bytes

    @cache
    def in_files(owner: str) -> ResultBlobs:
        directory = place_of(owner, loaded.results_dir)
        return FileBlobs(directory, ttl=ttl, max_total_bytes=most, below=loaded.below, beside=beside)

    blobs = host.result_places(output).blobs_of if output.store.url else in_files
    return ResultStore(
        blobs,
        ttl=ttl,
        max_total_bytes=most,
        max_page_bytes=output.max_inline_size or 1 << 20,
        note_bytes=host.watchers.note_stored,
    )


def _store_copy(store: ResultStore, file: BinaryIO, form: Form, *, tool: str, owner: str) -> str:
    return store.put(iter(partial(file.read, 1 << 20), b""), tool=tool, owner=owner, form=form).handle


def _store_file(store: ResultStore, file: Path, *, tool: str, owner: str) -> str:
    with file.open("rb") as content:
        # A worker says what it wrote: a text, or a value as tagged JSON.
        form: Form = "tagged" if file.suffix == ".json" else "text"
        return _store_copy(store, content, form, tool=tool, owner=owner)

"""Host: what all workspaces of one process share, each thing made once for its key and kept while somebody holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from ot.config.load import Loaded
from ot.config.models import LedgerSettings, Output
from ot.config.paths import Paths
from ot.config.secrets import IssuedSecrets, SharedRedaction
from ot.execution.ledger import EffectWatcher
from ot.execution.tool_executor import CallObserver, OpenCallSpan
from ot.ledger.kept_ledger import KeptLedger
from ot.ledger.ledger_file import LEDGER, LedgerFile
from ot.ledger.sqlite_ledger import SqliteLedger
from ot.runtime.engines.choice import EngineChoice
from ot.runtime.engines.engine import Engine
from ot.runtime.engines.forked.jail_command import AnalysisPackages
from ot.runtime.run_feed import RunFeed
from ot.runtime.snippet_renderer import SnippetRenderer
from ot.servers.asking_servers import AskingServers
from ot.servers.auth.account import ServerAccount
from ot.servers.auth.record import OpenTokenStore
from ot.servers.catalogue_files import FOLDER as SERVERS
from ot.servers.catalogue_files import CatalogueFiles
from ot.servers.definitions import ServerDefinitions
from ot.servers.learned_shapes import LearnedShapes
from ot.servers.place import ClientRoots
from ot.servers.pool import ServerPool
from ot.servers.spec import ServerSpec
from ot.stats.plugin_observers import plugin_observers
from ot.stats.recorder import Recorder, StatsPlace
from ot.stats.rows import OpenRunSpan, RunObserver
from ot.stores import load_store, results_of
from ot.workers.pack_environment import PackEnvironments
from ot.workers.pool import WorkerPool
from ot.workers.spec import WorkerSpec, helper_spec

if TYPE_CHECKING:
    from ot.execution.heavy_calls import HeavyCalls
    from ot.execution.waiting_questions import WaitingQuestions
    from ot.output.result_blobs import ResultPlaces
    from ot.state.open_state import Shared
    from ot.state.revisions import Revisions
    from ot.state.shared_state import SharedState

CATALOGUE = "catalogue"
"""The topic of packs, and of what servers offer: each replica that reads another revision reloads."""
MODEL_QUESTIONS = 4
"""How many questions of tools a model is asked at the same time: a local one answers few at once."""


@dataclass(frozen=True, slots=True)
class Watchers:
    """Observers of the runs and calls of all workspaces, in addition to each one's statistics."""

    calls: Sequence[CallObserver] = ()
    runs: Sequence[RunObserver] = ()
    effects: EffectWatcher | None = None
    open_call_span: OpenCallSpan | None = None
    open_run_span: OpenRunSpan | None = None
    note_stored: Callable[[int], None] | None = None
    """Takes the bytes of each result that was stored, in any thread."""


class Host:
    """The engines, pools and stores of one user; a workspace holds what it needs of them, by key."""

    def __init__(self, paths: Paths, *, engine: Engine | None = None, watchers: Watchers | None = None) -> None:
        """Keep state in the user's directory of *paths*; *engine* stands in for those that settings ask for."""
        given, found = watchers or Watchers(), plugin_observers()
        self.watchers = replace(given, calls=(*given.calls, *found), runs=(*given.runs, *found)) if found else given
        directory = paths.global_dir / SERVERS
        self._paths = paths
        self._engine = engine
        self.renderer = SnippetRenderer()
        self._issued: dict[str, IssuedSecrets] = {}
        self._all_issued = IssuedSecrets()
        self.redaction = SharedRedaction(self._all_issued)
        self.feed = RunFeed(self.redaction.redact)
        self.workers = WorkerPool(paths.global_dir, paths.environ)
        self._helper: WorkerSpec | None = None
        self.model_places = asyncio.Semaphore(MODEL_QUESTIONS)
        self.roots = ClientRoots()
        self.learners: dict[object, Callable[[ServerSpec, ServerDefinitions], bool]] = {}
        """Who is told, whenever a server has listed what it offers, and says whether that is new."""
        self.servers = ServerPool(self._learn, roots=self.roots, asking=AskingServers(directory))
        self.state: SharedState | None = None
        """What the replicas of a server share; None: this process is alone."""
        self.revisions: Revisions | None = None
        self.shared_logins: OpenTokenStore[ServerAccount] | None = None
        """Where replicas of a server keep logins; None: on this machine."""
        self.submit_run: Callable[[str], Awaitable[None]] | None = None
        """Hands background runs to a team's queue; None: a workspace that goes on carries them out itself."""
        self.catalogue_files = CatalogueFiles(directory)
        self.shapes = LearnedShapes(directory)
        self._telling: asyncio.Future[None] | None = None
        self._engines = _Held[Engine]()
        self._recorders = _Held[Recorder]()
        self._objects: tuple[tuple[Output, Shared | None], ResultPlaces] | None = None
        self._ledgers = _Held[KeptLedger]()
        self._shared: Shared | None = None

    def engine(self, holder: object, loaded: Loaded) -> Engine:
        """Return the engine of these settings; one that is not contained is shared with no other workspace."""
        settings, sessions = loaded.config.engines, loaded.config.sessions.most
        wanted = settings.exact.packages

        def make() -> Engine:
            if self._engine:
                return self._engine
            environments = PackEnvironments(self._paths.global_dir, loaded.secrets.environment)
            packages = AnalysisPackages(wanted, environments) if wanted else None
            return EngineChoice(settings, packages=packages, sessions=sessions, environ=loaded.secrets.environment)

        alone = id(holder) if settings.use == "trusted" else 0
        return self._engines.hold(holder, (settings, sessions, alone), make)

    @cached_property
    def waiting(self) -> WaitingQuestions:
        """The questions that wait for a person at a terminal of this user."""
        from ot.execution.waiting_questions import WaitingQuestions  # noqa: PLC0415 - most runs ask nothing

        return WaitingQuestions()

    def secrets_of(self, principal: str) -> IssuedSecrets:
        """Return the tokens that were issued to *principal*: to redact them for others would let these guess them."""
        if principal not in self._issued:
            self._issued[principal] = IssuedSecrets(self._all_issued)
        return self._issued[principal]

    def engines(self) -> Collection[Engine]:
        """Return the engines that somebody holds."""
        return self._engines.things()

    def recorder(self, holder: object, place: StatsPlace) -> Recorder:
        """Return what records into the file of *place*: there is one for each file."""
        recorder = self._recorders.hold(holder, place.file, lambda: Recorder(place))
        recorder.move(place)
        return recorder

    def result_places(self, output: Output) -> ResultPlaces:
        """Return the store of results that the settings name: one for all workspaces, which counts what each owner has.

        Raises:
            ConfigError: It cannot be opened.
        """
        if self._objects is None or self._objects[0] != (output, self._shared):
            self._objects = (output, self._shared), _open_objects(output, self._shared)
        return self._objects[1]

    def ledger(self, holder: object, settings: LedgerSettings) -> KeptLedger:
        """Return the ledger that replicas share, or this user's, whose file is made with the first entry."""
        shared = self._shared

        def make() -> KeptLedger:
            if shared:
                return _redis_ledger(shared, settings)
            file = self._paths.global_dir / LEDGER
            return SqliteLedger(LedgerFile(file, power=settings.durability == "power", days=settings.days))

        kept = (settings.days, settings.replicas) if shared else (settings.days, settings.durability)
        return self._ledgers.hold(holder, (bool(shared), *kept), make)

    def hold(self, holder: object, workers: Iterable[str], servers: Iterable[str]) -> None:
        """Note which workers and servers *holder* needs, by key; those that nobody needs any more are let go."""
        self.workers.hold(holder, workers)
        self.servers.hold(holder, servers)

    @cached_property
    def heavy(self) -> HeavyCalls:
        """The places of calls that may take long."""
        from ot.execution.heavy_calls import HeavyCalls  # noqa: PLC0415 - not every server has such calls

        return HeavyCalls()

    def helper(self, main: Path) -> WorkerSpec:
        """Return what the helpers are made of that carry out heavy calls, by the file *main*."""
        if self._helper is None:
            self._helper = helper_spec(main, self._paths.environ, self.heavy.helpers)
            self.workers.hold(self, [self._helper.key])
        return self._helper

    def _learn(self, spec: ServerSpec, definitions: ServerDefinitions) -> None:
        are_new = [learn(spec, definitions) for learn in tuple(self.learners.values())]
        if any(are_new):
            self.tell_replicas()

    def share(self, shared: Shared) -> None:
        """Use what other replicas use, too; workspaces that are open already take it up when they reload.

        To be called in the event loop that the shared state is used in.
        """
        from ot.servers.auth.shared_token_store import shared_token_stores  # noqa: PLC0415 - for replicas alone
        from ot.state.revisions import Revisions  # noqa: PLC0415 - as above

        self.state = shared.state
        if shared.state.replicas:
            self._shared = shared
            self.shared_logins = shared_token_stores(shared.state, shared.keys)
            self.revisions = Revisions(shared.state, [CATALOGUE])
            self.revisions.start()

    def tell_replicas(self) -> None:
        """Let the other replicas know that packs or what servers offer have changed."""
        if self.revisions:
            self._telling = asyncio.ensure_future(self.revisions.advance(CATALOGUE))

    async def release(self, holder: object) -> None:
        """Let go of everything that only *holder* needed."""
        self.hold(holder, (), ())
        self.learners.pop(holder, None)
        self.redaction.drop(holder)
        for engine in self._engines.drop(holder):
            await engine.aclose()
        for recorder in self._recorders.drop(holder):
            await anyio.to_thread.run_sync(recorder.close)
        for ledger in self._ledgers.drop(holder):
            await ledger.aclose()

    async def aclose(self) -> None:
        """End all workers and servers; engines and recorders end with those who hold them."""
        if self.revisions:
            await self.revisions.aclose()
        await self.servers.aclose()
        await self.workers.aclose()
        await self.renderer.aclose()
        await anyio.to_thread.run_sync(self.shapes.flush)


def _open_objects(output: Output, shared: Shared | None) -> ResultPlaces:
    offered = load_store(results_of(output.store.url), "output.store")
    return offered(output, hide=shared.keys.hide if shared else str)


def _redis_ledger(shared: Shared, settings: LedgerSettings) -> KeptLedger:
    from ot.ledger.redis_ledger import RedisLedger  # noqa: PLC0415 - for replicas alone
    from ot.ledger.redis_place import RedisPlace  # noqa: PLC0415 - as above
    from ot.state.redis_state import RedisState  # noqa: PLC0415 - as above

    state = shared.state
    assert isinstance(state, RedisState)
    return RedisLedger(
        RedisPlace(state.connection, state.prefix, shared.keys, replicas=settings.replicas), days=settings.days
    )


@dataclass
class _Held[T]:
    """Things by key, each with those who hold it; a holder has one of them at a time."""

    _things: dict[Hashable, T] = field(default_factory=dict[Hashable, T])
    _keys: dict[object, Hashable] = field(default_factory=dict[object, Hashable])

    def hold(self, holder: object, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._things:
            self._things[key] = make()
        self._keys[holder] = key
        return self._things[key]

    def things(self) -> Collection[T]:
        return self._things.values()

    def drop(self, holder: object) -> list[T]:
        """Return what nobody holds any more once *holder* does not."""
        self._keys.pop(holder, None)
        unheld = self._things.keys() - set(self._keys.values())
        return [self._things.pop(key) for key in unheld]

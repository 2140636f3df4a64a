"""Host: what all workspaces of one process share, each thing made once for its key and kept while somebody holds it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio.to_thread

from ot.config.load import Loaded
from ot.config.models import LedgerSettings, Output
from ot.config.paths import Paths
from ot.config.secrets import IssuedSecrets, SharedRedaction
from ot.execution.ledger import EffectWatcher
from ot.execution.tool_executor import CallObserver, OpenCallSpan
from ot.ledger.kept_programs import KeptPrograms
from ot.ledger.ledger_file import LEDGER, LedgerFile
from ot.ledger.run_book import KeptLedger
from ot.ledger.sqlite_ledger import SqliteLedger
from ot.notes.kept_notes import KeptNotes
from ot.proxied.asking_servers import AskingServers
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.token_record import OpenTokenStore
from ot.proxied.catalogue_files import FOLDER as SERVERS
from ot.proxied.catalogue_files import CatalogueFiles
from ot.proxied.definition_pins import DefinitionPins
from ot.proxied.definitions import ServerDefinitions
from ot.proxied.learned_shapes import LearnedShapes
from ot.proxied.pin_books import PinStore
from ot.proxied.place import ClientRoots
from ot.proxied.pool import ServerPool
from ot.proxied.spec import ServerSpec
from ot.registry.saved_programs import SavedProgramFiles
from ot.runtime.engines.choice import EngineChoice
from ot.runtime.engines.engine import Engine
from ot.runtime.engines.forked.jail_command import AnalysisPackages
from ot.runtime.run_feed import RunFeed
from ot.runtime.snippet_renderer import SnippetRenderer
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

MODEL_QUESTIONS = 4
"""How many questions of tools a model is asked at the same time: a local one answers few at once."""


class Sharing(Protocol):
    """What several processes of one server share; an edge that serves together with others brings it to the host."""

    @property
    def logins(self) -> OpenTokenStore[ServerAccount]:
        """Opens the login of an account where all of them find it."""
        ...

    @property
    def pins(self) -> PinStore | None:
        """What is approved of servers, for all of them; None: it is in files."""
        ...

    @property
    def catalogue_revision(self) -> int:
        """Another number than before means that packs, or what servers offer, have changed elsewhere."""
        ...

    def hide(self, owner: str, /) -> str:
        """Return what stands for *owner* in names that others can read."""
        ...

    def open_ledger(self, settings: LedgerSettings) -> KeptLedger | None:
        """Return the ledger of all of them, if they share one."""
        ...

    def open_notes(self, principal: str, most_bytes: int, /) -> KeptNotes | None:
        """Return the notes of *principal*, if all of them share those."""
        ...

    async def tell_catalogue(self) -> None:
        """Let the others know that packs, or what servers offer, have changed here."""
        ...

    async def aclose(self) -> None:
        """Let go of it."""
        ...


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
        self.sharing: Sharing | None = None
        """What this process shares with others of the same server; None: it is alone. Workspaces that are open already
        take it up when they reload."""
        self.say_trouble: Callable[[], str] | None = None
        """Says why what is shared cannot be reached, or nothing while it can be; None: there is no such thing."""
        self.submit_run: Callable[[str], Awaitable[None]] | None = None
        """Hands background runs to a team's queue; None: a workspace that goes on carries them out itself."""
        self.catalogue_files = CatalogueFiles(directory)
        self.program_files = SavedProgramFiles()
        self.kept_programs = KeptPrograms(paths.global_dir, self.redaction.redact)
        self.shapes = LearnedShapes(directory)
        self._telling: asyncio.Future[None] | None = None
        self._engines = _Held[Engine]()
        self._recorders = _Held[Recorder]()
        self._objects: tuple[tuple[Output, Sharing | None], ResultPlaces] | None = None
        self._ledgers = _Held[KeptLedger]()

    def pins(self, directory: Path) -> DefinitionPins:
        """Return what a workspace holds its servers against: files in *directory*, unless processes share that."""
        shared = self.sharing.pins if self.sharing else None
        return DefinitionPins(shared or directory)

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
        if self._objects is None or self._objects[0] != (output, self.sharing):
            self._objects = (output, self.sharing), _open_objects(output, self.sharing)
        return self._objects[1]

    def ledger(self, holder: object, settings: LedgerSettings) -> KeptLedger:
        """Return the ledger that processes share, or this user's, whose file is made with the first entry."""
        sharing = self.sharing

        def make() -> KeptLedger:
            if sharing and (shared := sharing.open_ledger(settings)):
                return shared
            file = self._paths.global_dir / LEDGER
            return SqliteLedger(LedgerFile(file, power=settings.durability == "power", days=settings.days))

        return self._ledgers.hold(holder, (bool(sharing), settings.days, settings.durability), make)

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
            self.tell_others()

    def tell_others(self) -> None:
        """Let the other processes know that packs or what servers offer have changed."""
        if self.sharing:
            self._telling = asyncio.ensure_future(self.sharing.tell_catalogue())

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
        if self.sharing:
            await self.sharing.aclose()
        await self.servers.aclose()
        await self.workers.aclose()
        await self.renderer.aclose()
        await anyio.to_thread.run_sync(self.shapes.flush)
        await anyio.to_thread.run_sync(self.kept_programs.close)


def _open_objects(output: Output, sharing: Sharing | None) -> ResultPlaces:
    offered = load_store(results_of(output.store.url), "output.store")
    return offered(output, hide=sharing.hide if sharing else str)


@dataclass
class _Held[T]:
    """Things by key, each with those who hold it; a holder has one of them at a time."""

    _things: dict[Hashable, T] = field(default_factory=dict[Hashable, T])
    _keys: dict[object, Hashable] = field(default_factory=dict[object, Hashable])
    _holders: Counter[Hashable] = field(default_factory=Counter[Hashable])

    def hold(self, holder: object, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._things:
            self._things[key] = make()
        self._holders[key] += 1
        self._let_go(holder)
        self._keys[holder] = key
        return self._things[key]

    def things(self) -> Collection[T]:
        return self._things.values()

    def drop(self, holder: object) -> list[T]:
        """Return what nobody holds any more once *holder* does not."""
        self._let_go(holder)
        self._holders = +self._holders
        return [self._things.pop(key) for key in self._things.keys() - self._holders]

    def _let_go(self, holder: object) -> None:
        if holder in self._keys:
            self._holders[self._keys.pop(holder)] -= 1

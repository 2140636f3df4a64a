"""Host: what all workspaces of one process share, each thing made once for its key and kept while somebody holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

import anyio.to_thread

from ot.config.load import Loaded
from ot.config.models import LedgerSettings
from ot.config.paths import Paths
from ot.config.secrets import IssuedSecrets
from ot.ledger.ledger_file import LedgerFile
from ot.ledger.sqlite_ledger import SqliteLedger
from ot.runtime.engines.choice import EngineChoice
from ot.runtime.engines.engine import Engine
from ot.runtime.engines.forked.analysis_packages import AnalysisPackages
from ot.runtime.snippet_renderer import SnippetRenderer
from ot.servers.catalogue_files import FOLDER as SERVERS
from ot.servers.catalogue_files import CatalogueFiles
from ot.servers.definitions import ServerDefinitions
from ot.servers.learned_shapes import LearnedShapes
from ot.servers.place import ClientRoots
from ot.servers.pool import ServerPool
from ot.servers.spec import ServerSpec
from ot.stats.recorder import Recorder, StatsPlace
from ot.workers.pack_environment import PackEnvironments
from ot.workers.pool import WorkerPool

MODEL_QUESTIONS = 4
"""How many questions of tools a model is asked at the same time: a local one answers few at once."""


class Host:
    """The engines, pools and stores of one user; a workspace holds what it needs of them, by key."""

    def __init__(self, paths: Paths, *, engine: Engine | None = None) -> None:
        """Keep state in the user's directory of *paths*; *engine* stands in for those that settings ask for."""
        directory = paths.global_dir / SERVERS
        self._paths = paths
        self._engine = engine
        self.renderer = SnippetRenderer()
        self.issued = IssuedSecrets()
        self.workers = WorkerPool(paths.global_dir, paths.environ)
        self.model_places = asyncio.Semaphore(MODEL_QUESTIONS)
        self.roots = ClientRoots()
        self.learners: dict[object, Callable[[ServerSpec, ServerDefinitions], None]] = {}
        """Who is told, whenever a server has listed what it offers."""
        self.servers = ServerPool(self._learned, roots=self.roots)
        self.catalogue_files = CatalogueFiles(directory)
        self.shapes = LearnedShapes(directory)
        self._engines = _Held[Engine]()
        self._recorders = _Held[Recorder]()
        self._ledgers = _Held[SqliteLedger]()

    def engine(self, holder: object, loaded: Loaded) -> Engine:
        """Return the engine of these settings; one that is not contained is shared with no other workspace."""
        settings, sessions = loaded.config.engines, loaded.config.sessions.most
        wanted = settings.exact.packages

        def make() -> Engine:
            if self._engine:
                return self._engine
            environments = PackEnvironments(self._paths.global_dir, self._paths.environ)
            packages = AnalysisPackages(wanted, environments) if wanted else None
            return EngineChoice(settings, packages=packages, sessions=sessions, environ=loaded.secrets.environment)

        alone = id(holder) if settings.use == "trusted" else 0
        return self._engines.hold(holder, (settings, sessions, alone), make)

    def recorder(self, holder: object, place: StatsPlace) -> Recorder:
        """Return what records into the file of *place*: there is one for each file."""
        recorder = self._recorders.hold(holder, place.file, lambda: Recorder(place))
        recorder.move(place)
        return recorder

    def ledger(self, holder: object, settings: LedgerSettings) -> SqliteLedger:
        """Return the ledger of this user: there is one, whose file is made with the first entry."""
        file = self._paths.global_dir / "ledger" / "ledger.db"

        def make() -> SqliteLedger:
            return SqliteLedger(LedgerFile(file, power=settings.durability == "power", days=settings.days))

        return self._ledgers.hold(holder, settings, make)

    def hold(self, holder: object, workers: Iterable[str], servers: Iterable[str]) -> None:
        """Note which workers and servers *holder* needs, by key; those that nobody needs any more are let go."""
        self.workers.hold(holder, workers)
        self.servers.hold(holder, servers)

    def _learned(self, spec: ServerSpec, definitions: ServerDefinitions) -> None:
        for learn in tuple(self.learners.values()):
            learn(spec, definitions)

    async def release(self, holder: object) -> None:
        """Let go of everything that only *holder* needed."""
        self.hold(holder, (), ())
        self.learners.pop(holder, None)
        for engine in self._engines.drop(holder):
            await engine.aclose()
        for recorder in self._recorders.drop(holder):
            await anyio.to_thread.run_sync(recorder.close)
        for ledger in self._ledgers.drop(holder):
            await anyio.to_thread.run_sync(ledger.close)

    async def aclose(self) -> None:
        """End all workers and servers; engines and recorders end with those who hold them."""
        await self.servers.aclose()
        await self.workers.aclose()
        await self.renderer.aclose()
        await anyio.to_thread.run_sync(self.shapes.flush)


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

    def drop(self, holder: object) -> list[T]:
        """Return what nobody holds any more once *holder* does not."""
        self._keys.pop(holder, None)
        unheld = self._things.keys() - set(self._keys.values())
        return [self._things.pop(key) for key in unheld]

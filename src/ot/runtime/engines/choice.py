"""EngineChoice: the server's one engine, the exact one where its self-test passes; and what one client has of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ot.config.models import Engines, Limits
from ot.errors import EngineCrashed, EngineUnavailable, Overloaded
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import Engine, EngineHealth, EngineSession, Outcome, Reach
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.forked.jail_command import AnalysisPackages, Packages, imports_packages
from ot.runtime.engines.forked.trusted import WARNING, TrustedEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.program import Program

logger = logging.getLogger(__name__)

FELL_BACK = "the exact one failed its self-test three times"
Chosen = ExactEngine | PortableEngine | TrustedEngine


@dataclass(frozen=True, slots=True)
class EngineNews:
    """What everyone who uses an engine should be told of it, once; each piece of news takes the place of the last."""

    number: int = 0
    text: str = ""
    is_good: bool = True

    def follow_with(self, text: str, *, is_good: bool = False) -> EngineNews:
        """Return the news after these."""
        return EngineNews(self.number + 1, text, is_good)

    def since(self, told: int) -> str:
        """Return the news for a caller who was *told* that many; without bad news before, good news is left out."""
        return self.text if told < self.number and (told or not self.is_good) else ""


class EngineChoice:
    """An engine that stands for the one that is chosen; nothing changes once it is."""

    def __init__(
        self,
        settings: Engines,
        exact: Callable[[], ExactEngine] | None = None,
        packages: AnalysisPackages | None = None,
        sessions: int = 0,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Choose by *settings*; *exact* makes the exact engine, in tests one without some layer.

        *packages* are installed while the first programs run without them; one that imports any waits for them.
        So many *sessions* may have processes beside those of the runs. *environ* is for programs without a jail.
        """
        self._settings = settings
        self._sessions = sessions
        self._environ = environ or {}
        self._make_exact = exact or self._exact_engine
        self._exact: ExactEngine | None = None
        self._chosen: Chosen | None = None
        self._choosing = asyncio.Lock()
        self._why_not = ""
        self.news = EngineNews()
        self._packages = packages
        self._adding: asyncio.Task[None] | None = None
        self._before: list[Chosen] = []
        """Engines that were used before: what runs in them, or is kept in a session of theirs, goes on."""

    @property
    def name(self) -> str:
        """The name of the engine; before the choice that of the wanted one."""
        wanted = "exact" if self._settings.use == "auto" else self._settings.use
        return self._chosen.name if self._chosen else wanted

    def spawn(self) -> None:
        """Start the exact engine's process, if that is wanted, so that it is warm when the choice is made."""
        if self._chosen is None and self._settings.use in ("auto", "exact") and not ExactEngine.missing_here():
            self._exact = self._exact or self._make_exact()
            self._exact.spawn()

    async def choose(self) -> Chosen:
        """Return the engine.

        Raises:
            EngineUnavailable: The settings ask for an engine or a layer that is unavailable.
        """
        async with self._choosing:
            if self._chosen is None:
                self._chosen = await self._choice()
            return self._chosen

    async def _choice(self) -> Chosen:
        use = self._settings.use
        if use == "trusted":
            logger.warning(WARNING)
            return TrustedEngine(self._environ, **self._pool())
        if use == "portable":
            return self._portable()
        try:
            return await self._test_exact()
        except EngineCrashed as error:
            if use == "exact" or self._settings.exact.require_layers:
                raise EngineUnavailable("exact", str(error)) from None
            self._fall_back(error)
            return self._portable()

    async def _test_exact(self) -> ExactEngine:
        if missing := ExactEngine.missing_here():
            raise EngineCrashed(missing)
        exact = self._exact = self._exact or self._make_exact()
        try:
            await exact.open()
        except EngineCrashed:
            self._exact = None
            await exact.aclose()
            raise
        return exact

    def _fall_back(self, error: EngineCrashed) -> None:
        self._why_not = str(error)
        logger.warning("programs run in the portable engine, the exact one is unavailable: %s", error)
        if not ExactEngine.missing_here():
            why = f"{FELL_BACK}: {error}. ot.reload() tries it again"
            self.news = self.news.follow_with(f"note: programs run in the portable engine: {why}")

    async def try_again(self) -> None:
        """Use the exact engine from now on, if it was to be used and passes its self-test now."""
        async with self._choosing:
            if not self._why_not or self._chosen is None:
                return
            try:
                engine = await self._test_exact()
            except EngineCrashed as error:
                return self._fall_back(error)
            self._before.append(self._chosen)
            self._chosen, self._why_not = engine, ""
            self.news = self.news.follow_with("note: programs run in the exact engine again", is_good=True)

    def _exact_engine(self, packages: Packages | None = None) -> ExactEngine:
        layers = self._settings.exact.require_layers
        return ExactEngine(require_layers=layers, packages=packages, sessions=self._sessions, **self._pool())

    async def _have_packages(self) -> None:
        """Wait for the packages or raise EngineUnavailable; the first caller starts it, and leaving ends nothing."""
        if self._packages is None or not isinstance(await self.choose(), ExactEngine):
            return
        if self._adding is None or (self._adding.done() and self._adding.exception()):
            self._adding = asyncio.ensure_future(self._add(self._packages))
            self._adding.add_done_callback(lambda added: added.cancelled() or added.exception())
        await asyncio.shield(self._adding)

    async def _add(self, packages: AnalysisPackages) -> None:
        engine = self._exact_engine(await packages.install())
        try:
            await engine.open()
        except EngineCrashed as error:
            await engine.aclose()
            raise EngineUnavailable("exact", str(error)) from None
        if isinstance(self._chosen, ExactEngine):
            self._before.append(self._chosen)
        self._chosen = engine

    def _pool(self) -> dict[str, Any]:
        exact = self._settings.exact
        return {"processes": exact.processes, "ready": exact.ready, "queue_seconds": exact.queue_seconds}

    def _portable(self) -> PortableEngine:
        portable = self._settings.portable
        return PortableEngine(processes=portable.processes, queue_seconds=portable.queue_seconds)

    # ---------------------------------------------------------------- the engine that it stands for

    async def start(self, limits: Limits) -> None:
        """Make the choice, and start the engine ahead of the first run.

        Raises:
            EngineUnavailable: As ``choose``.
        """
        await (await self.choose()).start(limits)
        try:
            await self._have_packages()
        except EngineUnavailable as error:
            logger.warning("%s", error)

    def refuse(self, program: Program, reach: Reach) -> None:
        """Check that the engine can run *program*; before the choice ``run`` looks.

        Raises:
            NotSupported: It cannot.
        """
        if self._chosen is not None:
            self._chosen.refuse(program, reach)

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline) -> Outcome:
        """Return the program's outcome; raise RunError if it ended without one."""
        if self._chosen is None:
            (await self.choose()).refuse(program, reach)
        if self._packages and imports_packages(program):
            await self._have_packages()
        engine: Engine = await self.choose()
        return await engine.run(program, reach, limits, deadline)

    async def open_session(self) -> EngineSession:
        """Return a new session of the engine.

        Raises:
            EngineUnavailable: As ``choose``.
        """
        return await (await self.choose()).open_session()

    async def health(self) -> EngineHealth:
        """Return the engine's health, and why it is not the exact one."""
        health = await (await self.choose()).health()
        if not self._why_not:
            return health
        # Where no machine of this kind can have it, nothing is broken.
        status = health.status if ExactEngine.missing_here() else "degraded"
        return replace(health, status=status, details={**health.details, "exact_engine": f"not used: {self._why_not}"})

    async def aclose(self) -> None:
        """End everything that was started."""
        if self._adding is not None:
            self._adding.cancel()
        if self._packages is not None:
            await self._packages.aclose()
        for engine in (self._exact, self._chosen, *self._before):
            if engine is not None:
                await engine.aclose()


BUSY = "this client's programs hold half of the engine's processes, which is all that one client may: try again later"


class EngineShare:
    """At most half of an engine's processes: whatever one client runs, another finds a place."""

    def __init__(self, engine: Engine, settings: Engines) -> None:
        """Use *engine*, which was made of *settings*."""
        self._engine = engine
        # Which of the two is chosen may not be known yet.
        pools = {"portable": [settings.portable], "auto": [settings.portable, settings.exact]}
        pool = min(pools.get(settings.use, [settings.exact]), key=lambda pool: pool.processes)
        self._queue_seconds = pool.queue_seconds
        self._places = asyncio.Semaphore(max(1, pool.processes // 2))

    @property
    def name(self) -> str:
        """The engine's name."""
        return self._engine.name

    def refuse(self, program: Program, reach: Reach) -> None:
        """Check that the engine can run *program* faithfully; raise NotSupported, and run nothing, if not."""
        self._engine.refuse(program, reach)

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline) -> Outcome:
        """Return the program's outcome, once this client has a place for it, or raise RunError."""
        try:
            async with deadline.timeout(self._queue_seconds):
                await self._places.acquire()
        except TimeoutError:
            raise Overloaded(BUSY) from None
        try:
            return await self._engine.run(program, reach, limits, deadline)
        finally:
            self._places.release()

    async def open_session(self) -> EngineSession:
        """Return a new session; the settings bound how many a client has."""
        return await self._engine.open_session()

    async def health(self) -> EngineHealth:
        """Return the state of the engine, of all clients together."""
        return await self._engine.health()

    async def aclose(self) -> None:
        """Leave the engine to the others: whoever made it ends it."""

"""ServerShelf: what the configured servers offer, as far as it is known, and finding out the rest."""

from __future__ import annotations

import asyncio
import contextvars
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ot.execution.servers.server_pool import ServerPool
from ot.execution.servers.server_spec import ServerSpec
from ot.registry.definition_limits import within_limits
from ot.registry.definition_pins import DefinitionPins
from ot.registry.learned_shapes import LearnedShapes
from ot.registry.proxied_source import proxied_pack
from ot.registry.server_catalogue import ServerCatalogue
from ot.registry.server_definitions import ServerDefinitions
from ot.registry.server_identity import ServerIdentity
from ot.registry.tool_registry import Pack

LATER_SECONDS = 1.0


class ServerShelf:
    """The servers of one configuration after the other; what they offer is kept on disk beyond the process."""

    def __init__(
        self, pool: ServerPool, catalogue: ServerCatalogue, pins: DefinitionPins, shapes: LearnedShapes
    ) -> None:
        """Keep definitions in *catalogue*, hold them against *pins*, and show what was learned of results."""
        self.stale = False
        """Whether something is known that the last packs did not show."""
        self._pool = pool
        self._catalogue = catalogue
        self._pins = pins
        self._shapes = shapes
        self._known: dict[ServerIdentity, ServerDefinitions] = {}
        self._specs: Mapping[str, ServerSpec] = {}
        self._asking: asyncio.Task[None] | None = None

    def packs(self, specs: Mapping[str, ServerSpec]) -> list[Pack]:
        """Return a pack for each of *specs*, from what is known of it."""
        self._specs = specs
        for spec in specs.values():
            if spec.identity not in self._known and (found := self._catalogue.read(spec.identity)):
                self._known[spec.identity] = found
        self.stale = False
        return [self._pack(spec) for spec in specs.values()]

    def _pack(self, spec: ServerSpec) -> Pack:
        state = self._pool.states().get(spec.name, {})
        why = spec.problem or str(state.get("why") or "")
        return proxied_pack(
            spec.identity,
            spec.pack,
            self._known.get(spec.identity),
            why,
            spec.tools,
            timeout=spec.call_seconds,
            shapes=self._shapes,
            pins=self._pins,
        )

    # ---------------------------------------------------------------- finding out

    def learned(self, server: str, definitions: ServerDefinitions) -> None:
        """Take what a server says that it offers."""
        spec = self._specs.get(server)
        if spec is None:
            return
        before = self._known.get(spec.identity)
        if before is None or _differs(before, definitions):
            self._known[spec.identity] = definitions
            self.stale = True
            self._catalogue.write(spec.identity, definitions)
            # At once: the call that is about to be made is held to it, and not only the next run.
            self._pins.observe(spec.identity, spec.pack, within_limits(definitions)[0])

    def unknown(self) -> list[ServerSpec]:
        """Return the servers of which nothing is known."""
        return [spec for spec in self._specs.values() if spec.identity not in self._known and not spec.problem]

    async def ask_named(self, texts: Iterable[str]) -> None:
        """Find out what those servers offer whose packs are named in *texts* and of which nothing is known."""
        if unknown := self.unknown():
            words = [re.compile(rf"\b{re.escape(spec.pack)}\b") for spec in unknown]
            told = tuple(texts)
            named = [spec for spec, word in zip(unknown, words, strict=True) if any(map(word.search, told))]
            await self._pool.list_all(named, limit=max(len(named), 1))
            # A pack that could not be had says now why.
            self.stale = self.stale or bool(named)

    def ask_others_later(self) -> None:
        """Begin to find out what the others offer, a few at a time; nobody waits for it."""
        if self._asking is None and self.unknown():
            self._asking = asyncio.get_running_loop().create_task(self._ask_others(), context=contextvars.Context())

    async def _ask_others(self) -> None:
        # The reply goes out first, and perhaps another program comes: a process is not started for nothing.
        await asyncio.sleep(LATER_SECONDS)
        await self._pool.list_all(self.unknown())

    def reloaded(self) -> None:
        """Ask again after a reload what could not be found out before."""
        if self._asking is not None and self._asking.done():
            self._asking = None

    async def aclose(self) -> None:
        """Ask no more."""
        if self._asking:
            self._asking.cancel()
            await asyncio.wait((self._asking,), timeout=5.0)


def _differs(one: ServerDefinitions, other: ServerDefinitions) -> bool:
    # Nothing is copied: the event loop waits while a list of thousands of tools is compared.
    return replace(one, listed_at=0.0) != replace(other, listed_at=0.0)

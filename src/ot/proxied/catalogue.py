"""ServerCatalogue: what the configured servers offer, as far as it is known, and finding out the rest."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

import anyio.to_thread

from ot.execution.caller import Caller
from ot.proxied.catalogue_files import CatalogueFiles
from ot.proxied.definition_pins import DefinitionPins
from ot.proxied.definitions import ServerDefinitions, within_limits
from ot.proxied.learned_shapes import LearnedShapes
from ot.proxied.pin_books import Change
from ot.proxied.pool import ServerPool
from ot.proxied.proxied_pack import make_kept_pack, make_proxied_pack
from ot.proxied.spec import ServerSpec
from ot.registry.tool_registry import Pack

LATER_SECONDS = 1.0
PATIENCE_SECONDS = 2.0
"""How long those who list all tools wait, all together, for servers that nobody has asked yet."""


class ServerCatalogue:
    """The servers of one configuration after the other; what they offer is kept on disk beyond the process."""

    def __init__(self, pool: ServerPool, files: CatalogueFiles, pins: DefinitionPins, shapes: LearnedShapes) -> None:
        """Keep definitions in *files*, hold them against *pins*, and show what was learned of results."""
        self.stale = False
        """Whether something is known that the last packs did not show."""
        self._pool = pool
        self._files = files
        self._pins = pins
        self._shapes = shapes
        self._known: dict[str, ServerDefinitions] = {}
        self._unread: set[str] = set()
        """Keys of those that are in a file which nobody needed yet."""
        self._specs: dict[str, ServerSpec] = {}
        self._asking: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        """Set when somebody waits for the answers."""
        self._patience = PATIENCE_SECONDS

    def packs(self, specs: Mapping[str, ServerSpec]) -> list[Pack]:
        """Return a pack for each of *specs*, from what is known of it."""
        self._specs = {spec.key: spec for spec in specs.values()}
        for key, spec in self._specs.items():
            if key not in self._known and not self._files.holds(spec.identity):
                self._read(spec)  # an older version may have kept it elsewhere
            elif key not in self._known:
                self._unread.add(key)
        self.stale = False
        return [
            make_kept_pack(spec.identity, spec.pack, partial(self._open, spec))
            if key in self._unread
            else self._pack(spec)
            for key, spec in self._specs.items()
        ]

    def _open(self, spec: ServerSpec) -> Pack:
        self._read(spec)
        return self._pack(spec)

    def _read(self, spec: ServerSpec) -> None:
        """Take what was kept of the server, unless it is known already; one whose file is damaged is unknown again."""
        self._unread.discard(spec.key)
        if spec.key not in self._known and (found := self._files.read(spec.identity)):
            self._known[spec.key] = found

    def list_changes(self) -> dict[str, list[Change]]:
        """Return the unapproved definitions, by server."""
        for spec in self._specs.values():
            if spec.key in self._unread:
                self._open(spec)
        return self._pins.all_changed()

    def _pack(self, spec: ServerSpec) -> Pack:
        state = self._pool.state(spec)
        return make_proxied_pack(
            spec.identity,
            spec.pack,
            self._known.get(spec.key),
            spec.problem or str(state.get("why") or ""),
            spec.tools,
            timeout=spec.call_seconds,
            shapes=self._shapes,
            pins=self._pins,
            needs_login=state.get("state") == "login needed",
            tried=not spec.problem and bool(state.get("why")),
        )

    # ---------------------------------------------------------------- finding out

    def learned(self, spec: ServerSpec, definitions: ServerDefinitions) -> bool:
        """Take what a server says that it offers, and return whether it is new.

        One that is not configured any more is not listened to.
        """
        if spec.key not in self._specs:
            return False
        shown = spec.key in self._known or spec.key in self._unread
        self._read(spec)
        is_new = self._is_new(spec, definitions)
        if is_new:
            self._files.write(spec.identity, definitions)
            self._show(spec, definitions)
        # Another workspace that uses the server may have kept it in the file a moment ago.
        self.stale = self.stale or not shown
        return is_new

    async def read_again(self) -> None:
        """Take what another replica has learned of servers that are known here, from the files that it wrote."""
        for spec in [spec for key, spec in self._specs.items() if key in self._known]:
            found = await anyio.to_thread.run_sync(self._files.read, spec.identity)
            if found and self._is_new(spec, found):
                self._show(spec, found)

    def _is_new(self, spec: ServerSpec, definitions: ServerDefinitions) -> bool:
        before = self._known.get(spec.key)
        # Nothing is copied: the event loop waits while a list of thousands of tools is compared.
        return before is None or replace(before, listed_at=0.0) != replace(definitions, listed_at=0.0)

    def _show(self, spec: ServerSpec, definitions: ServerDefinitions) -> None:
        self._known[spec.key] = definitions
        self.stale = True
        # At once: the call that is about to be made is held to it, and not only the next run.
        self._pins.observe(spec.identity, spec.pack, within_limits(definitions))

    def unknown(self) -> list[ServerSpec]:
        """Return the servers of which nothing is known."""
        known = self._known.keys() | self._unread
        return [spec for key, spec in self._specs.items() if key not in known and not spec.problem]

    async def ask_named(self, names: Collection[str], caller: Caller | None = None) -> None:
        """Find out what those servers offer whose packs are among *names* and of which nothing is known.

        One that wants a login has it asked for at *caller*: what it offers is known only to those who logged in.
        """
        for spec in [spec for spec in self._specs.values() if spec.pack in names and spec.key in self._unread]:
            self._read(spec)
            self.stale = self.stale or spec.key not in self._known
        if named := [spec for spec in self.unknown() if spec.pack in names]:
            await self._pool.list_all(named, len(named), caller)
            self.stale = True  # a pack that is unavailable now says why

    def ask_others_later(self) -> None:
        """Begin to find out what the others offer, a few at a time; nobody waits for it."""
        if self._asking is None and self.unknown():
            self._asking = asyncio.get_running_loop().create_task(self._ask_others(), context=contextvars.Context())

    async def ask_others(self) -> None:
        """Find out what the others offer, and wait for it a moment; what is not known then is found out later."""
        self._hurry.set()
        self.ask_others_later()
        if self._asking is None or self._asking.done() or self._patience <= 0:
            return
        started = time.monotonic()
        await asyncio.wait((self._asking,), timeout=self._patience)
        self._patience -= time.monotonic() - started
        self.stale = True  # a pack that is unavailable now says why

    async def _ask_others(self) -> None:
        # The reply goes out first, and perhaps another program comes: a process is not started for nothing.
        with suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), LATER_SECONDS)
        await self._pool.list_all(self.unknown())

    def reload(self) -> None:
        """Ask again after a reload what could not be found out before."""
        if self._asking is not None and self._asking.done():
            self._asking, self._patience = None, PATIENCE_SECONDS
            self._hurry.clear()

    async def aclose(self) -> None:
        """Ask no more."""
        if self._asking:
            self._asking.cancel()
            await asyncio.wait((self._asking,), timeout=5.0)

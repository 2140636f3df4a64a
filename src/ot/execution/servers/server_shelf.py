"""ServerShelf: what the configured servers offer, as far as it is known, and finding out the rest."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ot.execution.servers.server_pool import ServerPool
from ot.execution.servers.server_spec import ServerSpec
from ot.registry.proxied_source import proxied_pack
from ot.registry.server_definitions import ServerDefinitions
from ot.registry.tool_registry import Pack

logger = logging.getLogger(__name__)

UNKNOWN = "its server has not been asked yet what it offers; it is asked when a program names the pack"
LATER_SECONDS = 1.0
WORD = re.compile(r"\w+")


class ServerShelf:
    """The servers of one configuration after the other; what they offer is kept on disk beyond the process."""

    def __init__(self, pool: ServerPool, directory: Path) -> None:
        """Keep definitions below *directory*."""
        self.stale = False
        """Whether something is known that the last packs did not show."""
        self._pool = pool
        self._directory = directory
        self._known: dict[str, ServerDefinitions] = {}
        self._specs: Mapping[str, ServerSpec] = {}
        self._asking: asyncio.Task[None] | None = None

    def packs(self, specs: Mapping[str, ServerSpec]) -> list[Pack]:
        """Return a pack for each of *specs*, from what is known of it."""
        self._specs = specs
        for spec in specs.values():
            if spec.endpoint not in self._known and (found := self._read(spec)):
                self._known[spec.endpoint] = found
        self.stale = False
        return [self._pack(spec) for spec in specs.values()]

    def _pack(self, spec: ServerSpec) -> Pack:
        state = self._pool.states().get(spec.name, {})
        why = spec.problem or str(state.get("why") or UNKNOWN)
        pack = proxied_pack(spec.name, spec.pack, self._known.get(spec.endpoint), why, spec.tools)
        return pack if spec.call_seconds is None else _timed(pack, spec.call_seconds)

    # ---------------------------------------------------------------- finding out

    def learned(self, server: str, definitions: ServerDefinitions) -> None:
        """Take what a server says that it offers."""
        spec = self._specs.get(server)
        if spec is None:
            return
        before = self._known.get(spec.endpoint)
        if before is None or _differs(before, definitions):
            self._known[spec.endpoint] = definitions
            self.stale = True
            self._write(spec, definitions)

    def unknown(self) -> list[ServerSpec]:
        """Return the servers of which nothing is known."""
        return [spec for spec in self._specs.values() if spec.endpoint not in self._known and not spec.problem]

    async def ask_named(self, texts: Iterable[str]) -> None:
        """Find out what those servers offer whose packs are named in *texts* and of which nothing is known."""
        if unknown := self.unknown():
            words = {word for text in texts for word in WORD.findall(text)}
            named = [spec for spec in unknown if spec.pack in words]
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

    # ---------------------------------------------------------------- the disk

    def _file(self, spec: ServerSpec) -> Path:
        return self._directory / f"{spec.name}-{spec.endpoint[:16]}.json"

    def _read(self, spec: ServerSpec) -> ServerDefinitions | None:
        try:
            found: dict[str, Any] = json.loads(self._file(spec).read_bytes())
            lists = {key: tuple(found.pop(key)) for key in ("tools", "prompts")}
            return ServerDefinitions(**lists, **found)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            logger.warning("what is kept of the server %s cannot be read: %s", spec.name, error)
            return None

    def _write(self, spec: ServerSpec, definitions: ServerDefinitions) -> None:
        file = self._file(spec)
        part = file.with_suffix(f".{os.getpid()}.part")
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            part.write_text(json.dumps(asdict(definitions)), encoding="utf-8")
            part.replace(file)
        except OSError as error:
            logger.warning("what the server %s offers cannot be kept: %s", spec.name, error)


def _timed(pack: Pack, seconds: float) -> Pack:
    return replace(pack, read_tools=lambda: [replace(tool, timeout=seconds) for tool in pack.tools.values()])


def _differs(one: ServerDefinitions, other: ServerDefinitions) -> bool:
    return {**asdict(one), "listed_at": 0} != {**asdict(other), "listed_at": 0}

"""PackEnvironments: the interpreter that a pack runs on, with its dependencies installed by uv."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ot.errors import ToolUnavailable
from ot.execution.workers.child_environ import uv_environ, worker_environ
from ot.execution.workers.pack_directory import PackDirectory
from ot.execution.workers.uv_command import UvCommand
from ot.registry.pep723 import ScriptMetadata, script_metadata, script_problem

__all__ = ["PackEnvironment", "PackEnvironments", "uv_environ", "worker_environ"]

PACKS = "packs"
"""Where copies of packs are kept, below the user's directory."""
INSTALL_SECONDS = 120.0
ISOLATED = ("-I",)
BARE = ("-I", "-S")
"""Without site-packages: those of the server's interpreter are not the pack's."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PackEnvironment:
    """How a pack is started: ``python *arguments <bootstrap>``, with its files in ``directory``."""

    python: Path
    arguments: tuple[str, ...]
    directory: Path
    main: Path


@dataclass(frozen=True)
class Flight:
    """One preparation that is under way, and who wants to hear of it."""

    task: asyncio.Task[PackEnvironment]
    listeners: list[Progress] = field(default_factory=list[Progress])


class PackEnvironments:
    """Prepares environments, each once: for callers at the same time, for servers at the same time, and for good."""

    def __init__(self, state: Path, environ: Mapping[str, str]) -> None:
        """Keep packs below *state*, and run uv with what it may see of *environ*."""
        self._packs = state / PACKS
        self._environ = environ
        self._flights: dict[tuple[str, str], Flight] = {}

    async def prepare(
        self,
        pack: str,
        files: Mapping[str, bytes],
        main: str,
        *,
        budget: float = INSTALL_SECONDS,
        progress: Progress | None = None,
        consented: bool = False,
    ) -> PackEnvironment:
        """Return the environment of *files*, whose file *main* is the pack; *progress* gets the lines that uv writes.

        A caller that is cancelled does not stop it for the others. *consented*: the user has agreed that packages
        come from other places than the index.

        Raises:
            ToolUnavailable: The pack's metadata is wrong, or its dependencies could not be installed within *budget*.
        """
        try:
            directory = PackDirectory(self._packs, files, main)
            text = files[main].decode()
        except ValueError as error:
            raise ToolUnavailable(pack, str(error)) from error
        metadata = usable_metadata(pack, text, consented)
        flight = self._flight(pack, directory, metadata, budget)
        if progress is not None:
            flight.listeners.append(progress)
        try:
            return await asyncio.shield(flight.task)
        finally:
            if progress is not None:
                flight.listeners.remove(progress)

    async def aclose(self) -> None:
        """Stop what is under way."""
        tasks = [flight.task for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _flight(self, pack: str, directory: PackDirectory, metadata: ScriptMetadata, budget: float) -> Flight:
        key = (pack, directory.key)
        if key not in self._flights:
            listeners: list[Progress] = []

            def tell(line: str) -> None:
                for listener in listeners:
                    listener(line)

            task = asyncio.create_task(Preparation(pack, directory, metadata, self._environ, tell).run(budget))
            task.add_done_callback(lambda done: self._land(key, done))
            self._flights[key] = Flight(task, listeners)
        return self._flights[key]

    def _land(self, key: tuple[str, str], task: asyncio.Task[PackEnvironment]) -> None:
        del self._flights[key]
        if not task.cancelled():
            task.exception()  # nobody may be waiting any more; then it is not worth a warning


class Preparation:
    """The way of one pack from its files to an interpreter."""

    def __init__(
        self, pack: str, directory: PackDirectory, metadata: ScriptMetadata, environ: Mapping[str, str], tell: Progress
    ) -> None:
        """Prepare *pack* in *directory*."""
        self._pack = pack
        self._directory = directory
        self._metadata = metadata
        self._environ = environ
        self._tell = tell
        self._uv: UvCommand | None = None

    async def run(self, budget: float) -> PackEnvironment:
        """Return the environment, made within *budget* seconds unless it is there already.

        Raises:
            ToolUnavailable: It cannot be made.
        """
        try:
            if ready := self._ready():
                return ready
            async with asyncio.timeout(budget), self._directory.locked():
                return self._write() or await self._install()
        except TimeoutError:
            words = self._uv.last_words() if self._uv else ""
            why = f"its dependencies were not installed within {budget:g} s{words}"
            raise ToolUnavailable(self._pack, why) from None
        except OSError as error:
            raise ToolUnavailable(self._pack, f"its files cannot be written: {error}") from error

    def _ready(self) -> PackEnvironment | None:
        """Return the environment if it is complete already; uv is not asked."""
        if not self._directory.intact():
            return None
        if not self._metadata.present:
            return self._environment(base_python(), BARE)
        python = self._directory.stamped_python()
        return self._environment(python, ISOLATED) if python and os.access(python, os.X_OK) else None

    def _write(self) -> PackEnvironment | None:
        # Another server may have done it all while this one waited for the lock.
        if not self._directory.intact():
            self._directory.write()
        return self._ready()

    async def _install(self) -> PackEnvironment:
        directory, main = self._directory, str(self._directory.main)
        # Not in the pack's own directory: a uv.toml among its files would choose where packages come from.
        uv = self._uv = UvCommand(self._pack, directory.path.parent, self._environ, self._tell)
        choice = python_choice(self._metadata.requires_python)
        if not directory.brought_lock and directory.stamped_python() is None:
            # Whatever is there was left by a uv that did not end well.
            directory.script_lock.unlink(missing_ok=True)
            await uv.run("lock", *choice, "--script", main)
        # Compiled now: workers write no bytecode, and would compile every import at every start.
        await uv.run("sync", *choice, "--locked", "--compile-bytecode", "--script", main)
        python = Path(await uv.run("python", "find", "--script", main))
        # For a script without an environment uv names the base interpreter, and says that all is well.
        if not is_script_environment(python):
            raise ToolUnavailable(self._pack, f"uv names {python}, which is not the environment of this pack")
        directory.stamp(python)
        return self._environment(python, ISOLATED)

    def _environment(self, python: Path, arguments: tuple[str, ...]) -> PackEnvironment:
        return PackEnvironment(python, arguments, self._directory.path, self._directory.main)


def usable_metadata(pack: str, text: str, consented: bool) -> ScriptMetadata:
    """Return what the pack's file declares.

    Raises:
        ToolUnavailable: It is malformed, or the user has not consented to it.
    """
    metadata = script_metadata(text)
    if metadata is None:
        raise ToolUnavailable(pack, script_problem(text))
    if metadata.needs_consent and not consented:
        raise ToolUnavailable(pack, "it wants packages from other places than the index, and nobody has agreed to that")
    return metadata


def base_python() -> Path:
    """Return the interpreter that the server's environment was made from."""
    return Path(getattr(sys, "_base_executable", "") or os.path.realpath(sys.executable))


def python_choice(requires_python: str) -> tuple[str, ...]:
    """Return the option that makes uv take the server's own interpreter, if the pack can run on it."""
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415 - only a pack that is being installed needs it

    fits = SpecifierSet(requires_python).contains(platform.python_version(), prereleases=True)
    # Otherwise uv would take the first it finds, perhaps too old for the worker's side of the wire, or download one.
    return ("--python", str(base_python())) if fits else ()


def is_script_environment(python: Path) -> bool:
    """Return whether *python* belongs to an environment that uv keeps for a script, in ``environments-<version>``."""
    root = python.parent.parent
    return root.parent.name.startswith("environments-") and (root / "pyvenv.cfg").is_file()

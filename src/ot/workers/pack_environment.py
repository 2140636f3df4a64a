"""PackEnvironments: the interpreter that a pack runs on, with its dependencies installed by uv."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import logging
import os
import platform
import re
import shutil
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ot.errors import ToolUnavailable
from ot.log_span import LOG_FILE_ONLY
from ot.processes.child_environ import uv_environ
from ot.processes.guarded_process import GuardedProcess
from ot.registry.pep723 import ScriptMetadata, script_metadata, script_problem
from ot.workers.pack_directory import PackDirectory, hold_lock

logger = logging.getLogger(__name__)

PACKS = "packs"
"""Where copies of packs are kept, below the user's directory."""
INSTALL_SECONDS = 120.0
ISOLATED = ("-I",)
BARE = ("-I", "-S")
"""Without site-packages: those of the server's interpreter are not the pack's."""
Progress = Callable[[str], None]
TEXT_CHARACTERS = 2000
LINES = 100
PROCESSES = 256
"""Building packages takes more processes than a tool should."""
REQUIREMENTS = "requirements.lock"
"""The file of a pack that lists all its packages with their hashes, as pip writes it; uv's own names an index."""
LOCKED_LINE = re.compile(
    r"\s*(?:#.*)?|[A-Za-z0-9][\w.\[\],-]*==[\w.+!]+(?: ; [^\\]*)?(?: --hash=sha256:[0-9a-f]{64})*\s*\\?"
    r"|\s+--hash=sha256:[0-9a-f]{64}\s*\\?"
)
"""No addresses and no options, which would choose where packages come from."""
ENVIRONMENTS, COMPLETE = "onetool-environments", ".complete"
LOGIN = re.compile(r"(?<=://)[^/\s@]+@")


@dataclass(frozen=True, slots=True)
class PackEnvironment:
    """How a pack is started: ``python *arguments <bootstrap>``, with its files in ``directory``."""

    python: Path
    arguments: tuple[str, ...]
    directory: Path
    main: Path


class PackEnvironments:
    """Prepares environments, each once: for callers at the same time, for servers at the same time, and for good."""

    def __init__(self, state: Path, environ: Mapping[str, str]) -> None:
        """Keep packs below *state*, and run uv with what it may see of *environ*."""
        self._packs = state / PACKS
        self._environ = environ
        self._flights: dict[tuple[str, str], Preparation] = {}

    async def prepare(
        self,
        pack: str,
        files: Mapping[str, bytes],
        main: str,
        *,
        budget: float = INSTALL_SECONDS,
        progress: Progress | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> PackEnvironment:
        """Return the environment of *files*, whose file *main* is the pack; *progress* gets the lines that uv writes.

        A caller that is cancelled does not stop it for the others. One whose own *environ* is given has uv run with
        what it may see of that.

        Raises:
            ToolUnavailable: The pack's metadata is wrong, or its dependencies could not be installed within *budget*.
        """
        directory, metadata = self._describe(pack, files, main)
        flight = self._flight(pack, directory, metadata, budget, self._environ if environ is None else environ)
        if progress is not None:
            flight.listeners.append(progress)
        try:
            return await asyncio.shield(flight.task)
        finally:
            if progress is not None:
                flight.listeners.remove(progress)

    def find(self, pack: str, files: Mapping[str, bytes], main: str) -> PackEnvironment | None:
        """Return the environment of *files* if it is complete already.

        Raises:
            ToolUnavailable: The pack's metadata is wrong.
        """
        return Preparation(pack, *self._describe(pack, files, main), self._environ).find()

    def _describe(self, pack: str, files: Mapping[str, bytes], main: str) -> tuple[PackDirectory, ScriptMetadata]:
        try:
            directory = PackDirectory(self._packs, files, main)
            text = files[main].decode()
        except ValueError as error:
            raise ToolUnavailable(pack, str(error)) from error
        return directory, usable_metadata(pack, text)

    async def aclose(self) -> None:
        """Stop what is under way."""
        tasks = [flight.task for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _flight(
        self, pack: str, directory: PackDirectory, metadata: ScriptMetadata, budget: float, environ: Mapping[str, str]
    ) -> Preparation:
        key = (pack, directory.key)
        if key not in self._flights:
            flight = self._flights[key] = Preparation(pack, directory, metadata, environ)
            flight.task = asyncio.create_task(flight.run(budget))
            flight.task.add_done_callback(lambda done: self._land(key, done))
        return self._flights[key]

    def _land(self, key: tuple[str, str], task: asyncio.Task[PackEnvironment]) -> None:
        del self._flights[key]
        if not task.cancelled():
            task.exception()  # nobody may be waiting any more; then it is not worth a warning


class Preparation:
    """The way of one pack from its files to an interpreter."""

    task: asyncio.Task[PackEnvironment]

    def __init__(
        self, pack: str, directory: PackDirectory, metadata: ScriptMetadata, environ: Mapping[str, str]
    ) -> None:
        """Prepare *pack* in *directory*."""
        self.listeners: list[Progress] = []
        """Who gets the lines that uv writes."""
        self._pack = pack
        self._directory = directory
        self._metadata = metadata
        self._environ = environ
        self._uv: UvCommand | None = None

    def _tell(self, line: str) -> None:
        for listener in self.listeners:
            listener(line)

    async def run(self, budget: float) -> PackEnvironment:
        """Return the environment, made within *budget* seconds unless it is there already.

        Raises:
            ToolUnavailable: It cannot be made.
        """
        try:
            if ready := self.find():
                return ready
            async with asyncio.timeout(budget), self._directory.hold_lock():
                return self._write() or await self._install()
        except TimeoutError:
            words = self._uv.last_words() if self._uv else ""
            why = f"its dependencies were not installed within {budget:g} s (workers.install_seconds){words}"
            raise ToolUnavailable(self._pack, why) from None
        except OSError as error:
            raise ToolUnavailable(self._pack, f"its files cannot be written: {error}") from error

    def find(self) -> PackEnvironment | None:
        """Return the environment if it is complete already; uv is not asked."""
        if not self._directory.intact():
            return None
        if not self._metadata.present:
            return self._environment(base_python(), BARE)
        python = self._directory.read_stamped_python()
        return self._environment(python, ISOLATED) if python and os.access(python, os.X_OK) else None

    def _write(self) -> PackEnvironment | None:
        # Another server may have done it all while this one waited for the lock.
        if not self._directory.intact():
            self._directory.write()
        return self.find()

    async def _install(self) -> PackEnvironment:
        directory, main = self._directory, str(self._directory.main)
        # Not in the pack's own directory: a uv.toml among its files would choose where packages come from.
        uv = self._uv = UvCommand(self._pack, directory.path.parent, self._environ, self._tell)
        choice = python_choice(self._metadata.requires_python)
        if not directory.brought_lock and (directory.path / REQUIREMENTS).is_file():
            try:
                python = await self._install_requirements(uv, choice)
            except ToolUnavailable as error:
                how = f"needs the network once, at the first call or by 'onetool prefetch {self._pack}'"
                why = f"its packages could not be installed, which {how}: {error.why}"
                raise ToolUnavailable(self._pack, why) from error
            directory.stamp(python)
            return self._environment(python, ISOLATED)
        if not directory.brought_lock and directory.read_stamped_python() is None:
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

    async def _install_requirements(self, uv: UvCommand, choice: tuple[str, ...]) -> Path:
        """Return the interpreter of an environment that holds exactly the packages of the pack's requirements.lock.

        It lies in uv's cache, as those of scripts do, under a hash of what it holds: packs of any version share it.
        """
        file = self._directory.path / REQUIREMENTS
        for line in file.read_text(encoding="utf-8").splitlines():
            if not LOCKED_LINE.fullmatch(line):
                why = f"{REQUIREMENTS} may list names, versions and hashes alone, not '{line[:100]}'"
                raise ToolUnavailable(self._pack, why)
        content = hashlib.sha256(file.read_bytes() + " ".join((*choice, sys.version)).encode()).hexdigest()[:32]
        place = Path(await uv.run("cache", "dir")) / ENVIRONMENTS / content
        python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        async with hold_lock(place.with_suffix(".lock")):
            if not (place / COMPLETE).exists():
                await uv.run("venv", "--clear", *choice, str(place))
                # Compiled now, as above.
                await uv.run(
                    *("pip", "sync", "--python", str(python), "--require-hashes", "--compile-bytecode", str(file))
                )
                (place / COMPLETE).touch()
        return python

    def _environment(self, python: Path, arguments: tuple[str, ...]) -> PackEnvironment:
        return PackEnvironment(python, arguments, self._directory.path, self._directory.main)


def usable_metadata(pack: str, text: str) -> ScriptMetadata:
    """Return the metadata of the pack's file.

    Raises:
        ToolUnavailable: It is malformed, or wants packages from other places than the index.
    """
    metadata = script_metadata(text)
    if metadata is None:
        raise ToolUnavailable(pack, script_problem(text))
    if metadata.needs_consent:
        raise ToolUnavailable(pack, "it wants packages from sources other than the index, which is not allowed")
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


def find_uv(environ: Mapping[str, str]) -> str | None:
    """Return the uv that is on the PATH, else the one that came as a Python package."""
    if found := shutil.which("uv", path=environ.get("PATH", "")):
        return str(Path(found).absolute())
    try:
        return str(importlib.import_module("uv").find_uv_bin())
    except (ImportError, FileNotFoundError):
        return None


class UvCommand:
    """Runs uv for a pack, passes its progress on and turns its failures into the pack's."""

    def __init__(self, pack: str, directory: Path, environ: Mapping[str, str], tell: Callable[[str], None]) -> None:
        """Run for *pack* in *directory*, where settings of uv are obeyed; raise ToolUnavailable if there is no uv."""
        uv = find_uv(environ)
        if uv is None:
            raise ToolUnavailable(pack, "its dependencies need uv, which is not on the PATH: run 'pip install uv'")
        self._uv = uv
        self._pack = pack
        self._directory = directory
        self._environ = uv_environ(environ)
        self._tell = tell
        self._lines: deque[str] = deque(maxlen=LINES)

    async def run(self, *arguments: str) -> str:
        """Run uv and return its output; cancelling leaves no process.

        Raises:
            ToolUnavailable: It failed.
        """
        process = await self._start(arguments)
        try:
            process.stdin.close()
            output = await process.stdout.read()
            ending = await process.wait()
        finally:
            process.kill()
            await process.wait()
        if (ending.kind, ending.number) != ("exit", 0):
            raise ToolUnavailable(self._pack, f"'uv {arguments[0]}' failed ({ending.text}){self.last_words()}")
        return output.decode(errors="replace").strip()

    def last_words(self) -> str:
        """Return the end of what uv has said, without logins of indexes, to be put behind a sentence."""
        text = LOGIN.sub("***@", "\n".join(self._lines)).strip()
        return f":\n{text[-TEXT_CHARACTERS:]}" if text else ""

    async def _start(self, arguments: tuple[str, ...]) -> GuardedProcess:
        argv = [self._uv, *arguments, "--color", "never", "--no-progress"]
        try:
            return await GuardedProcess.start(
                argv, env=self._environ, cwd=self._directory, processes=PROCESSES, on_line=self._hear
            )
        except OSError as error:
            raise ToolUnavailable(self._pack, f"uv cannot be started: {error}") from error

    def _hear(self, line: str) -> None:
        self._lines.append(line)
        shown = LOGIN.sub("***@", line)
        logger.info("uv, for the pack %s: %s", self._pack, shown, extra=LOG_FILE_ONLY)
        self._tell(shown)

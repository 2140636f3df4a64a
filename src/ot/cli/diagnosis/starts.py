"""Starts every pack and every server once, as a run would, or servers that are new, and reports which of them start."""

from __future__ import annotations

import asyncio
import importlib
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Literal

from ot.cli.terminal import echo_progress
from ot.config.clients.server_entry import RUNNERS
from ot.config.load import Loaded
from ot.config.paths import Paths
from ot.errors import LoginNeeded, OneToolError
from ot.execution.call_context import CallContext
from ot.logs import configure_logs
from ot.proxied.catalogue_files import FOLDER, CatalogueFiles
from ot.proxied.definition_pins import DefinitionPins
from ot.proxied.definitions import ServerDefinitions, within_limits
from ot.proxied.pin_books import open_pins
from ot.proxied.place import ADVICE as TRUST_ADVICE
from ot.proxied.spec import ServerSpec, resolve_specs, why_not_startable
from ot.registry.tool_registry import Pack
from ot.workspace import Workspace

AT_ONCE = 4
FETCH_SECONDS = 120.0
"""How long a first start may take where a package has to be fetched."""
SPARE_SECONDS = 10.0
"""Beyond what the settings give a pack or a server to start."""
MARKS = re.compile(r"^[^\w'\"`(]*(?:(?:cause|error):\s*)?")
"""What uv puts before a line of its messages."""

AT_FIRST_CALL = "its packages are installed at its first call"

Tell = Callable[[str], None]
Work = Callable[[Tell], Awaitable[None]]


@dataclass(frozen=True)
class StartOutcome:
    """How one pack or server started; ``why`` is what kept it from starting, and ``advice`` what to do about it."""

    kind: Literal["pack", "server", "project"]
    name: str
    state: Literal["started", "not started", "login needed", "cannot start"] = "started"
    why: str = ""
    advice: str = ""
    file: str = ""
    """The pack's file, where it is the user's own."""
    seconds: float = 0.0

    @property
    def row(self) -> dict[str, Any]:
        """The same as JSON has it."""
        told = {"kind": self.kind, "name": self.name, "state": self.state, "seconds": round(self.seconds, 2)}
        more = {"why": self.why, "advice": self.advice, "file": self.file}
        return {**told, **{key: text for key, text in more.items() if text}}


async def start_all(app: Workspace) -> list[StartOutcome]:
    """Start each pack and server of *app*, a few at a time, and return how it went; a terminal shows the progress."""
    # What goes wrong is in the report; the log would say it a second time.
    configure_logs("CRITICAL", app.picture.loaded.secrets.redact)
    startable = [*_packs(app), *_servers(app), *_project(app)]
    if any(found.kind == "server" and work for found, work, _ in startable):
        # Before any clock starts: the first import of the protocol's library takes seconds.
        importlib.import_module("ot.proxied.connection")
    places = asyncio.Semaphore(AT_ONCE)

    async def start(found: StartOutcome, work: Work | None, seconds: float) -> StartOutcome:
        if work is None:
            return found
        async with places:
            return await _attempt_start(found, work, seconds, app.picture.loaded.secrets.redact)

    return list(await asyncio.gather(*(start(*one) for one in startable)))


async def _attempt_start(found: StartOutcome, work: Work, seconds: float, redact: Callable[[str], str]) -> StartOutcome:
    begun = time.monotonic()
    echo_progress(f"starting {found.kind} {found.name} ...")
    try:
        async with asyncio.timeout(seconds):
            await work(lambda line: echo_progress(redact(line)))
    except TimeoutError:
        ended = _mark_failed(found, f"it did not start within {seconds:g} s")
    except LoginNeeded as error:
        ended = replace(found, state="login needed", why=error.why, advice=f"onetool auth login {found.name}")
    except OneToolError as error:
        ended = _mark_failed(found, redact(str(getattr(error, "why", error))))
    else:
        ended = found
    ended = replace(ended, seconds=time.monotonic() - begun)
    echo_progress(f"{found.kind} {found.name}: {ended.state} ({ended.seconds:.1f} s)")
    return ended


# ---------------------------------------------------------------- what there is

Startable = tuple[StartOutcome, Work | None, float]
"""What is to be started, how, and how long that may take."""


def _packs(app: Workspace) -> Iterator[Startable]:
    workers = app.picture.loaded.config.workers
    seconds = workers.install_seconds + workers.start_seconds + SPARE_SECONDS
    for pack in app.picture.registry.packs.values():
        if pack.source == "proxy":
            continue
        spec = app.picture.workers.get(pack.name)
        # Only a worker's pack has a file that its user can change.
        found = StartOutcome("pack", pack.name, file=str(Path(pack.origin) / spec.main) if spec else "")
        if why := pack.broken:
            yield _mark_failed(found, why), None, 0.0
        elif pack.bundled and spec and not app.host.workers.find_installed(spec):
            advice = f"onetool prefetch {pack.name}"
            yield replace(found, state="not started", why=AT_FIRST_CALL, advice=advice, file=""), None, 0.0
        else:
            yield found, partial(_start_pack, app, pack), seconds


async def _start_pack(app: Workspace, pack: Pack, tell: Tell) -> None:
    def tell_progress(what: str, tool: str, details: Mapping[str, Any]) -> None:
        tell(str(details.get("message", "")))

    context = CallContext(app.own_caller, "check", 0, float("inf"), told=tell_progress)
    for tool in pack.tools.values():
        await app.picture.runner.executor.prepare(tool, context)


def _servers(app: Workspace) -> Iterator[Startable]:
    for name, server in app.picture.loaded.config.servers.items():
        found, spec = StartOutcome("server", name), app.picture.servers.get(name)
        if spec is None or not server.enabled:
            yield replace(found, state="not started", why="it is disabled", advice=f"onetool enable {name}"), None, 0.0
        elif spec.in_workspace and spec.problem.endswith(TRUST_ADVICE):
            yield replace(found, state="not started", why=spec.problem), None, 0.0
        elif why := why_not_startable(spec):
            yield _mark_failed(found, why), None, 0.0
        else:
            yield found, partial(_start_server, app, spec), spec.start_seconds + SPARE_SECONDS


async def _start_server(app: Workspace, spec: ServerSpec, tell: Tell) -> None:
    await app.host.servers.connection(spec).ready()


def _project(app: Workspace) -> Iterator[Startable]:
    state = app.picture.loaded.project_state
    if state not in ("none", "trusted"):
        why = f"it is {state}: none of its packs and servers is used"
        yield StartOutcome("project", str(app.paths.project_dir), "not started", why, TRUST_ADVICE), None, 0.0


# ---------------------------------------------------------------- servers that are new here


async def start_new_servers(loaded: Loaded, paths: Paths, names: Collection[str]) -> dict[str, StartOutcome]:
    """Start the servers *names*, a few at a time, and return how it went; what each offers is kept."""
    specs = resolve_specs(loaded, paths)
    redact = loaded.secrets.redact
    configure_logs("CRITICAL", redact)
    importlib.import_module("ot.proxied.connection")
    places = asyncio.Semaphore(AT_ONCE)

    async def start(name: str) -> StartOutcome:
        found, spec = StartOutcome("server", name), specs.get(name)
        if spec is None:
            return replace(found, state="cannot start", why="it is not used in this directory")
        if spec.missing:
            why, file = f"it needs {', '.join(spec.missing)}", loaded.secret_files[0]
            return replace(found, state="cannot start", why=why, advice=f"add it to {file}")
        if why := why_not_startable(spec):
            return _mark_failed(found, why)
        spec = with_patience(spec)
        async with places:
            return await _attempt_start(
                found, partial(_list_tools, paths, spec), spec.start_seconds + SPARE_SECONDS, redact
            )

    return dict(zip(names, await asyncio.gather(*map(start, names)), strict=True))


def with_patience(spec: ServerSpec) -> ServerSpec:
    """Return *spec* with time to fetch its package, where a program starts it that does so."""
    fetches = PurePath(spec.command).stem in RUNNERS
    return replace(spec, start_seconds=max(spec.start_seconds, FETCH_SECONDS)) if fetches else spec


async def _list_tools(paths: Paths, spec: ServerSpec, tell: Tell) -> None:
    await list_tools(paths, spec)


async def list_tools(paths: Paths, spec: ServerSpec) -> ServerDefinitions:
    """Return what a server offers, and keep it, so that the next program need not wait and a change is noticed.

    Raises:
        ServerUnavailable: It cannot be started or reached, or does not answer.
    """
    from ot.proxied.connection import probe  # imports the protocol's library

    found = await probe(spec)
    directory = paths.global_dir / FOLDER
    CatalogueFiles(directory).write(spec.identity, found)
    DefinitionPins(open_pins(paths)).observe(spec.identity, spec.pack, within_limits(found))
    return found


# ---------------------------------------------------------------- what went wrong


def _mark_failed(found: StartOutcome, why: str) -> StartOutcome:
    return replace(found, state="cannot start", why=_cause(why), advice=_advice(found, why))


def _cause(why: str) -> str:
    """Return the first line of *why* and the last, which names the cause in tracebacks and in what uv says."""
    first, *rest = [line for line in why.splitlines() if line.strip()] or [why]
    return f"{first.rstrip(': ')}: {MARKS.sub('', rest[-1])}" if rest else first


def _advice(found: StartOutcome, why: str) -> str:
    if found.kind == "server":
        return f"change its settings, or: onetool disable {found.name}"
    if not (file := found.file):
        return "install OneTool again, or the package that brought this pack"
    if "ModuleNotFoundError" in why:
        return f"name the missing package in its '# /// script' block, then: onetool dev {file}"
    if why.startswith("'uv "):
        return f"correct the dependencies in its '# /// script' block, then: onetool dev {file}"
    return f"correct it, then: onetool dev {file}"

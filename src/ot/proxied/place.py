"""Where a server works: the directory that it is started in, its program, and the roots that it is told."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from ot.config.expand import WORKSPACE, names_in
from ot.config.models import Server
from ot.config.paths import HOMES, Paths, expand_home
from ot.config.trust import ServerHere, Trust
from ot.config.workspace_trust import Seal, launcher_files
from ot.files.no_links import make_private
from ot.files.private_file import write_new
from ot.registry.proxy_target import ServerIdentity

type Roots = Sequence[tuple[str, str]]
"""Addresses of directories, each with a name or an empty one."""
type AskRoots = Callable[[], Awaitable[Roots]]

PYTHON = re.compile(r"(?:python|pypy)[\d.]*w?")
RUNNERS = frozenset({"uv", "uvx", "pipx", "poetry", "pdm", "hatch", "rye"})
MODULE = re.compile(r"-[bBdEiIOPqsSuvx]*[mc]")
"""How python is told to run a module or a text: its first import is then sought in the working directory."""
INTERPRETERS = re.compile(r"(?:python|pypy)[\d.]*w?|node|bun|deno|tsx|ts-node|ruby|php|perl|(?:ba|da|z)?sh")
CHANGES_SHOWN = 5
ROOTS_SECONDS = 0.5
MAX_ROOTS = 50
ADVICE = "look at it, then run 'onetool trust'"
BARRIERS: Mapping[str, str] = {
    "package.json": '{"private": true}\n',
    "pyproject.toml": "[tool.uv]\nmanaged = false\n",
}
"""Where npm's and uv's search for a project to obey ends, which otherwise goes up to the root."""
PLACES = (
    *("~/.local/bin", "~/.cargo/bin", "~/.bun/bin", "~/.deno/bin", "~/.volta/bin"),
    *("/usr/local/bin", "/opt/homebrew/bin"),
)
"""Where uv, node and their kin are installed; clients that are started from a desktop do not look there."""


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """Where a server is started; ``seal`` is what must be there unchanged, ``problem`` why it may not start."""

    home: str
    cwd: str
    private: bool = False
    in_workspace: bool = False
    seal: Seal | None = None
    problem: str = ""


def place_of_server(
    identity: ServerIdentity, server: Server, cwd: str, paths: Paths, project: Path | None, *, trusted: bool = False
) -> ServerPlace:
    """Return where *server* is started, whose expanded ``cwd`` is *cwd*.

    In the workspace it is only started while the user trusts that directory for it, or is *trusted* for this once.
    """
    # Another one when something else is written of the server, or by another project.
    name = f"{re.sub(r'[^A-Za-z0-9_.-]', '_', identity.server)}-{identity.written}"
    home = str(paths.global_dir / HOMES / name)
    if not server.cwd:
        return ServerPlace(home, home, private=True)
    directory = os.path.normpath(paths.cwd / expand_home(cwd))
    if not _in_workspace(server.cwd, cwd, directory, paths, project):
        return ServerPlace(home, directory)
    seal, problem = (None, "") if trusted else _seal(identity.server, server, directory, paths, project)
    return ServerPlace(home, directory, in_workspace=True, seal=seal, problem=problem)


def server_here(server: Server, directory: Path, workspace: Path, project: Path | None) -> ServerHere:
    """Return what is to be trusted for *server* to start in *directory* of *workspace*."""
    modules, script = runs_modules(server.command, server.args), script_in(server, directory, workspace)
    files = launcher_files(directory, modules=modules, script=script)
    return ServerHere(written=_fingerprint(server, project), files=files)


def make_home(directory: Path) -> None:
    """Make *directory* for a server, readable by its user alone; what is there is kept.

    Raises:
        OSError: It cannot be made.
    """
    make_private(directory)
    for name, text in BARRIERS.items():
        with suppress(FileExistsError):
            write_new(directory / name, text.encode())


def find_program(command: str, environ: Mapping[str, str], cwd: Path) -> tuple[str, dict[str, str]]:
    """Return the program's path, from *cwd* on where it is one, and *environ* with a PATH for the program's own kin.

    Raises:
        FileNotFoundError: There is no such program.
    """
    # A relative entry would be sought where the client happens to stand.
    entries = environ.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(entry for entry in entries if Path(entry).is_absolute())
    if os.path.dirname(command):  # noqa: PTH120 - pathlib takes ./program for a bare name
        command = str(cwd / command)
    if found := shutil.which(command, path=path):
        return found, dict(environ)
    home = environ.get("HOME", "~")
    more = [place.replace("~", home, 1) for place in PLACES]
    if found := shutil.which(command, path=os.pathsep.join(more)):
        return found, {**environ, "PATH": f"{Path(found).parent}{os.pathsep}{path}"}
    raise FileNotFoundError(f"the command '{command}' was not found: install it, or write its full path")


def runs_modules(command: str, args: Sequence[str]) -> bool:
    """Return whether this starts a Python that looks for modules in its working directory."""
    pythons = [at for at, word in enumerate(args) if PYTHON.fullmatch(PurePath(word).name)]
    runs = PYTHON.fullmatch(PurePath(command).name) or PurePath(command).stem in RUNNERS
    first = -1 if runs else min(pythons, default=len(args))
    return any(MODULE.match(word) for word in args[first + 1 :])


def script_of(server: Server) -> str:
    """Return the script argument of an interpreter as written, or nothing."""
    if not INTERPRETERS.fullmatch(PurePath(server.command).stem) or runs_modules(server.command, server.args):
        return ""
    return next((word for word in server.args if not word.startswith("-")), "")


def script_in(server: Server, directory: Path, workspace: Path) -> str:
    """Return the script that *server*, started in *directory*, runs, if that is inside *workspace*."""
    if not (script := script_of(server)):
        return ""
    written = script.replace(f"${{{WORKSPACE}}}", str(workspace))
    path = Path(os.path.normpath(directory / expand_home(written)))
    return str(path) if path.is_relative_to(workspace) else ""


def _in_workspace(written: str, cwd: str, directory: str, paths: Paths, project: Path | None) -> bool:
    if WORKSPACE in names_in(written) or not expand_home(cwd).is_absolute():
        return True
    # What the user wrote out is the user's choice. A project that wrote its own path would leave its files unchecked.
    return project is not None and Path(os.path.realpath(directory)).is_relative_to(os.path.realpath(paths.cwd))


def _seal(name: str, server: Server, directory: str, paths: Paths, project: Path | None) -> tuple[Seal | None, str]:
    known = Trust(paths.global_dir).servers_in(paths.cwd).get(name)
    if known is None:
        return None, f"servers.{name}.cwd is {directory}, which is not trusted for this server: {ADVICE}"
    if known.written != _fingerprint(server, project):
        return None, f"servers.{name}.cwd is {directory}, which was trusted for other settings of this server: {ADVICE}"
    script = script_in(server, Path(directory), paths.cwd)
    seal = Seal(directory, runs_modules(server.command, server.args), known.files, script)
    changed = seal.changes(trees=False)
    return (
        seal,
        f"servers.{name}.cwd is {directory}, which {describe_changed_files(changed)}: {ADVICE}" if changed else "",
    )


def describe_changed_files(changed: Sequence[str]) -> str:
    """Describe what *changed*, with the first few by name."""
    more = ["and more"] if len(changed) > CHANGES_SHOWN else []
    return f"has changed since it was trusted ({'; '.join([*changed[:CHANGES_SHOWN], *more])})"


def _fingerprint(server: Server, project: Path | None) -> str:
    parts = [server.command, server.args, dict(server.env), server.cwd, str(project or "")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class ClientRoots:
    """Asks the client of a workspace whenever a server wants to know; without an answer, it is the workspace.

    Where several clients are served, each is known by its connection, and only a server of its own asks it.
    """

    def __init__(self) -> None:
        self._asks: dict[str, AskRoots] = {}
        self._too_slow: set[str] = set()

    def offer(self, client: str, ask: AskRoots | None) -> None:
        """Take how *client* can be asked, which is a workspace or a connection, if it can be."""
        self._asks.pop(client, None)
        if ask and client not in self._too_slow:
            self._asks[client] = ask

    def forget(self, client: str) -> None:
        """Ask *client* no more: it has gone."""
        self._asks.pop(client, None)
        self._too_slow.discard(client)

    async def of(self, workspace: str, connection: str = "") -> Roots:
        """Return the client's roots, or *workspace*; a client that does not answer at once is not asked again."""
        found: Roots = ()
        client = connection or workspace
        if ask := self._asks.get(client):
            try:
                async with asyncio.timeout(ROOTS_SECONDS):
                    found = await ask()
            except TimeoutError:
                self._too_slow.add(client)
                self._asks.pop(client, None)
        return found[:MAX_ROOTS] or ([(Path(workspace).as_uri(), Path(workspace).name)] if workspace else [])

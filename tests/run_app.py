"""An Workspace in a directory of its own, with packs from real files, for tests that go the whole way of a run."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from ot.config.paths import Paths
from ot.execution.tool_executor import CallRecord
from ot.registry.tool_loader import ToolLoader
from ot.registry.tool_registry import Pack
from ot.runtime.engines.engine import Engine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.reply import Reply
from ot.workspace import Workspace

BRAVE = '''
    """A pack like those that search the web."""

    pack = "brave"
    __all__ = ["search", "web_search"]


    def search(*, query: str) -> str:
        """Search with brave."""
        return f"brave found {query}"


    def web_search(*, query: str, count: int = 2) -> list:
        """Search the web."""
        return [f"{query} {number}" for number in range(count)]
'''

CONTEXT7 = '''
    def search(*, query: str) -> str:
        """Search with context7."""
        return f"context7 found {query}"
'''

BUNDLED = [
    "brave",
    "code",
    "context7",
    "data",
    "documents",
    "file",
    "git",
    "guide",
    "llm",
    "memory",
    "ot",
    "package",
    "proj",
    "rg",
    "web",
]
"""Every pack that comes with OneTool."""


class Calls:
    """An observer of the door that keeps what it was told."""

    def __init__(self) -> None:
        self.records: list[CallRecord] = []

    def finished(self, call: CallRecord) -> None:
        self.records.append(call)

    @property
    def tools(self) -> list[str]:
        return [record.tool for record in self.records]


def paths_in(directory: Path, config: Mapping[str, Any] | None = None) -> Paths:
    """Return a working directory and a user's directory below *directory*, the latter holding *config*."""
    cwd, user = directory / "work", directory / "user"
    for made in (cwd, user):
        made.mkdir(exist_ok=True)
    if config is not None:
        (user / "onetool.yaml").write_text(json.dumps(config), encoding="utf-8")
    return Paths.of(cwd, user)


def write_packs(directory: Path, sources: Mapping[str, str]) -> ToolLoader:
    """Write each source as a pack's file into a package of its own, and return the loader for it."""
    package = directory / f"packs_{secrets.token_hex(4)}"
    package.mkdir()
    for name, source in sources.items():
        (package / f"{name}.py").write_text(dedent(source), encoding="utf-8")
    return ToolLoader(package, package.name)


@contextmanager
def importable(directory: Path) -> Generator[None]:
    """Let packages in *directory* be imported, and forget them afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(directory))
    try:
        yield
    finally:
        sys.path.remove(str(directory))
        for name in set(sys.modules) - before:
            if name.startswith("packs_"):
                del sys.modules[name]


_engines: list[Engine] = []
"""What workspaces use that are given no engine: the last."""


class _Kept:
    """An engine that outlives the workspaces that use it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def aclose(self) -> None:
        """Leave it open."""


@contextmanager
def using_engine(engine: Engine) -> Generator[None]:
    """Let workspaces that are given no engine use *engine* meanwhile, and leave it open."""
    _engines.append(engine)
    try:
        yield
    finally:
        _engines.remove(engine)


@asynccontextmanager
async def running_app(
    directory: Path,
    packs: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
    **options: Any,
) -> AsyncGenerator[Workspace]:
    """Yield a workspace with *packs* (source by name) and *config*, and end it.

    Programs run in the engine that `using_engine` names, else in the portable one, which starts at once, unless an
    *engine* is given (None: its own choice).
    """
    options.setdefault("engine", _Kept(_engines[-1]) if _engines else PortableEngine())
    found: list[Pack] = list(write_packs(directory, packs or {}).packs())
    app = Workspace.alone(paths_in(directory, config), packs=found, **options)
    with importable(directory):
        try:
            yield app
        finally:
            await app.aclose()


async def run_in(
    directory: Path,
    command: str,
    packs: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
    **options: Any,
) -> Reply:
    """Return the reply of a new Workspace to one command."""
    async with running_app(directory, packs, config, **options) as app:
        return await app.run(command)


def value_of(reply: Reply) -> str:
    """Return the only text of a reply that is no failure."""
    assert not reply.is_error, reply.texts
    (text,) = reply.texts
    return text


def error_of(reply: Reply) -> str:
    """Return the error's text of a reply that is a failure."""
    assert reply.is_error, reply.texts
    return reply.texts[-1]

"""A workspace in which programs search code, for tests that go the whole way of a run with real workers."""

from __future__ import annotations

import ast
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from ot.config.paths import Paths
from ot.execution.caller import Caller
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.reply import Reply
from ot.workspace import Workspace


class CodeApp:
    """Runs programs, one after the other, on the files in ``directory``."""

    def __init__(self, portal: BlockingPortal, app: Workspace, directory: Path) -> None:
        self._portal = portal
        self._app = app
        self.directory = directory

    def reply(self, program: str, caller: Caller | None = None) -> Reply:
        """Return what the server answers."""
        return self._portal.call(self._app.run, program, caller)

    def value(self, program: str) -> Any:
        """Return the value of *program*."""
        reply = self.reply(program)
        assert not reply.is_error, reply.texts
        return reply.value

    def error(self, program: str) -> str:
        """Return how *program* failed."""
        reply = self.reply(program)
        assert reply.is_error, reply.value
        return reply.texts[-1]

    def write(self, files: Mapping[str, str]) -> None:
        """Write *files*, by their paths."""
        for name, text in files.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")


@contextmanager
def code_app(directory: Path, user: str = "../user", **tools: Mapping[str, Any]) -> Generator[CodeApp]:
    """Give a workspace in *directory* with settings for its *tools*; the user's directory is at *user* from there."""
    cwd = directory / "work"
    cwd.mkdir()
    home = cwd / user
    home.mkdir(parents=True)
    (home / "onetool.yaml").write_text(json.dumps({"tools": tools}), encoding="utf-8")
    with start_blocking_portal() as portal:
        app = portal.call(lambda: _opened(Paths.of(cwd, home.resolve())))
        try:
            yield CodeApp(portal, app, cwd)
        finally:
            portal.call(app.aclose)


async def _opened(paths: Paths) -> Workspace:
    return Workspace.alone(paths, engine=PortableEngine())


def example_calls(source: Path) -> dict[str, str]:
    """Return the call that the docstring of each tool shows."""
    functions = [
        node for node in ast.parse(source.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)
    ]
    texts = {node.name: ast.get_docstring(node) or "" for node in functions if not node.name.startswith("_")}
    return {name: text.partition("Example:\n")[2].strip() for name, text in texts.items()}

"""The web APIs that packs ask, on loopback: documented answers, errors and limits, and whatever a test puts there."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ot.workspace import Workspace
from run_app import running_app

BRAVE_KEY = "BSA-brave-key-0123456789"
CONTEXT7_KEY = "ctx7sk-context7-key-0123"
JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class Seen:
    """A request that arrived."""

    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]


@dataclass(frozen=True)
class Served:
    """An answer."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=lambda: dict(JSON))


Route = Served | Callable[[Seen], Served]


def answer(value: Any, status: int = 200, **headers: str) -> Served:
    """Return *value* as JSON."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Served(status, json.dumps(value).encode(), {**JSON, **named})


class ApiServer:
    """Answers by path, as ``routes`` say, and keeps what it ``seen``; an unknown path is not found."""

    def __init__(self) -> None:
        self.routes: dict[str, Route] = {}
        self.seen: list[Seen] = []
        self.port = 0

    def reply(self, raw: str, headers: dict[str, str]) -> Served:
        """Return the answer to one request."""
        parts = urlsplit(raw)
        seen = Seen(parts.path, parse_qs(parts.query, keep_blank_values=True), headers)
        self.seen.append(seen)
        route = self.routes.get(parts.path, answer({"message": "Not Found"}, 404))
        return route if isinstance(route, Served) else route(seen)

    @contextmanager
    def instead(self, path: str, route: Route) -> Generator[list[Seen]]:
        """Answer at *path* as *route* says meanwhile; yield what arrives."""
        before, self.routes[path], self.seen = self.routes.get(path), route, []
        try:
            yield self.seen
        finally:
            if before is None:
                del self.routes[path]
            else:
                self.routes[path] = before


@contextmanager
def serving(server: ApiServer) -> Generator[ApiServer]:
    """Let *server* answer on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            served = server.reply(self.path, {name.lower(): text for name, text in self.headers.items()})
            self.send_response(served.status)
            for name, text in served.headers.items():
                self.send_header(name, text)
            self.send_header("content-length", str(len(served.body)))
            self.end_headers()
            try:
                self.wfile.write(served.body)
            except OSError:
                self.close_connection = True  # it had enough

        def log_message(self, format: str, *args: object) -> None:
            """Be silent."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.port = http.server_port
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


class ApiApp:
    """Runs programs that use the packs."""

    def __init__(self, app: Workspace) -> None:
        self._app = app

    async def value(self, program: str) -> Any:
        """Return the value of *program*."""
        reply = await self._app.run(program)
        assert not reply.is_error, reply.texts
        return reply.value

    async def error(self, program: str) -> str:
        """Return how *program* failed."""
        reply = await self._app.run(program)
        assert reply.is_error, reply.value
        return reply.texts[-1]


def settings_of(server: ApiServer, timeout: float = 25.0) -> dict[str, dict[str, Any]]:
    """Return the settings that lead the packs to *server*."""
    here = f"http://127.0.0.1:{server.port}"
    return {
        "brave": {"url": f"{here}/brave/res/v1", "timeout": timeout},
        "context7": {"url": f"{here}/context7/api/v2", "timeout": timeout},
        "package": {
            "pypi_url": f"{here}/python",
            "npm_url": f"{here}/npm",
            "github_url": f"{here}/github",
            "timeout": timeout,
        },
    }


@asynccontextmanager
async def api_app(
    directory: Path, settings: dict[str, dict[str, Any]], secrets: dict[str, str] | None = None, **config: Any
) -> AsyncGenerator[ApiApp]:
    """Yield what runs programs, with these settings of the packs, secrets and other settings."""
    keys = {"BRAVE_API_KEY": BRAVE_KEY, "CONTEXT7_API_KEY": CONTEXT7_KEY} if secrets is None else secrets
    (directory / "user").mkdir(parents=True)
    file = directory / "user/secrets.yaml"
    file.write_text(json.dumps(keys))
    file.chmod(0o600)
    async with running_app(directory, config={"tools": settings, **config}) as app:
        yield ApiApp(app)

"""WebSite: a web server on loopback that serves pages, redirects, bombs and drips, and notes what it was asked."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import unquote

PAUSE = 0.05
"""Between two bytes of a drip."""


@dataclass(frozen=True)
class Served:
    """What is at one path."""

    body: bytes = b""
    type: str | None = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    length: bool = True
    etag: str = ""


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]


type Raw = Callable[[Handler], None]


def redirect(to: str, status: int = 302) -> Served:
    """Return what sends the client on."""
    return Served(status=status, headers={"Location": to})


def zipped(body: bytes, encoding: str = "gzip") -> Served:
    """Return *body* compressed once for each name in *encoding*."""
    for _ in encoding.split(","):
        body = gzip.compress(body)
    return Served(body, headers={"Content-Encoding": encoding})


def drip(start: bytes) -> Raw:
    """Return what sends *start*, and then a byte now and then, for ever."""

    def send(handler: Handler) -> None:
        with suppress(OSError):
            handler.wfile.write(start)
            while not handler.site.closing.wait(PAUSE):
                handler.wfile.write(b"x")

    return send


def raw(data: bytes) -> Raw:
    """Return what sends these very bytes."""

    def send(handler: Handler) -> None:
        with suppress(OSError):
            handler.wfile.write(data)

    return send


def endless(start: bytes, more: bytes = b"x") -> Raw:
    """Return what sends as much as the client takes."""

    def send(handler: Handler) -> None:
        with suppress(OSError):
            handler.wfile.write(start)
            while not handler.site.closing.is_set():
                handler.wfile.write(more * 65536)

    return send


class WebSite(ThreadingHTTPServer):
    """Serves *pages* by path; ``{here}`` in a redirect is its own address."""

    daemon_threads = True

    def __init__(self, pages: Mapping[str, Served | Raw], host: str = "127.0.0.1", port: int = 0) -> None:
        self.closing = threading.Event()
        self.pages = dict(pages)
        self.asked: list[Asked] = []
        super().__init__((host, port), Handler)
        self.host, self.port = host, self.server_port
        self.url = f"http://{host}:{self.port}"
        self._serving = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._serving.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self.shutdown()
        self.server_close()
        self._serving.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Be silent: clients that have enough go away."""

    def paths(self, method: str = "") -> list[str]:
        """Return what was asked for, robots.txt left out."""
        return [asked.path for asked in self.asked if asked.method.startswith(method) and asked.path != "/robots.txt"]


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"

    @property
    def site(self) -> WebSite:
        """The site that this is part of."""
        return cast("WebSite", self.server)

    def do_GET(self) -> None:
        """Serve what is at the path."""
        self.site.asked.append(Asked(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
        found = self.site.pages.get(unquote(self.path.partition("?")[0]), Served(b"nothing here", status=404))
        if not isinstance(found, Served):
            self.close_connection = True
            found(self)
            return
        if found.etag and self.headers.get("If-None-Match") == found.etag:
            found = Served(type=None, status=304, etag=found.etag)
        with suppress(OSError):
            self._send(found)

    do_HEAD = do_GET

    def _send(self, found: Served) -> None:
        self.send_response(found.status)
        if found.type is not None:
            self.send_header("Content-Type", found.type)
        if found.etag:
            self.send_header("ETag", found.etag)
        for name, value in found.headers.items():
            self.send_header(name, value.replace("{here}", self.site.url))
        if found.length:
            self.send_header("Content-Length", str(len(found.body)))
        else:
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(found.body)

    def log_message(self, format: str, *args: object) -> None:
        """Be silent."""

"""The page about OpenAPI documents: its document and its commands, before a library on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from console_blocks import SECONDS, check_printed, typed_commands
from docs_blocks import DOCS, blocks_of

PAGE = DOCS / "how-to/openapi.md"
BOOKS = [{"title": "The Dispossessed", "author": "Le Guin", "year": 1974}]
PORT = "8099"


class Library(BaseHTTPRequestHandler):
    """Answers every question with its books."""

    def do_GET(self) -> None:
        body = json.dumps(BOOKS if self.path == "/books?author=Le+Guin" else []).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Be silent."""


@pytest.fixture
def port() -> Generator[int]:
    """A port on which the library answers."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Library)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    serving.join()


def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path, home: Path, port: int):
    (document,) = [block for block in blocks_of(PAGE) if block.title == "library.yaml"]
    (tmp_path / "library.yaml").write_text(document.text)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in typed_commands(PAGE.read_text().replace(PORT, str(port))):
        shell = ["bash", "-c", command.command]
        done = subprocess.run(
            shell, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=SECONDS
        )
        check_printed(command, done.stdout)  # what it says meanwhile goes to standard error

"""A real ``onetool serve --http`` process for tests, and raw requests to it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx2

import warm_start
from faults.watched import Place
from pace import PATIENCE, patiently

MODERN, CLASSIC = "2026-07-28", "2025-11-25"
ERAS = {"modern": "auto", "classic": "legacy"}
"""What fastmcp.Client calls them."""
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
}
ACCEPT = "application/json, text/event-stream"
CONFIG = "engines: {use: portable}\nlogs: {level: INFO}\n"
START = "import sys; from ot.entry import main; sys.argv[0] = 'onetool'; main()"


def call(command: str, era: str = MODERN, number: int = 1, **meta: Any) -> dict[str, Any]:
    """Return the JSON-RPC request that runs *command*."""
    params: dict[str, Any] = {"name": "run", "arguments": {"command": command}}
    if era == MODERN:
        params["_meta"] = {**META, **meta}
    elif meta:
        params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def reply_of(response: httpx2.Response) -> dict[str, Any]:
    """Return the JSON-RPC answer, which came as JSON or as the last event of a stream."""
    if response.headers["content-type"].startswith("application/json"):
        return response.json()
    return json.loads([line for line in response.text.splitlines() if line.startswith("data:")][-1][5:])


def text_of(response: httpx2.Response) -> str:
    """Return the text of a tool's answer."""
    return "\n".join(block["text"] for block in reply_of(response)["result"]["content"])


@dataclass
class HttpServer:
    """A server process; use ``start``."""

    process: Any
    place: Place
    url: str
    """Of /mcp."""
    token: str
    _errors: Any = field(repr=False)
    _last_words: str = field(default="", repr=False)

    @classmethod
    def start(
        cls,
        root: Path,
        config: str = CONFIG,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        ready: bool = True,
        address: str = "0",
        before: str = "",
    ) -> Self:
        """Start a server with *config* below *root*, on a free port, and wait until it is ready.

        *before* is Python that its process runs first, where a test is about another kind of machine.
        """
        place = Place.make(root, config)
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        process = warm_start.start(
            [sys.executable, "-c", f"{before}\n{START}", "serve", "--http", address, "--json", *arguments],
            cwd=place.cwd,
            env=place.environment() | dict(env or {}),
            stderr=errors.fileno(),
            memory_bytes=None,
            also=warm_start.TEAM,
        )
        server = cls(process, place, "", "", errors)
        try:
            server._read_where()
            if ready:
                server.wait_until_ready()
        except BaseException as error:
            error.add_note(server.stderr_text())
            server.kill()
            raise
        return server

    def _read_where(self) -> None:
        assert select.select([self.process.stdout], [], [], PATIENCE)[0], "it does not say where it listens"
        line = self.process.stdout.readline()
        assert line, "it ended"
        told = json.loads(line)
        self.url = told["url"]
        if told["token_file"]:
            self.token = Path(told["token_file"]).read_text().strip()

    @property
    def origin(self) -> str:
        """The address without a path."""
        return self.url.removesuffix("/mcp")

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.origin.rpartition(":")[2])

    def wait_until_ready(self) -> None:
        """Return once /readyz says so."""
        for _ in patiently():
            if httpx2.get(f"{self.origin}/readyz", verify=False).status_code == 200:
                return
        raise AssertionError(httpx2.get(f"{self.origin}/readyz", verify=False).text)

    def headers(self, era: str = MODERN, token: str | None = None) -> dict[str, str]:
        """Return the headers of a good request of *era*."""
        headers = {"authorization": f"Bearer {token or self.token}", "accept": ACCEPT}
        headers |= {"content-type": "application/json", "mcp-protocol-version": era}
        if era == MODERN:
            headers |= {"mcp-method": "tools/call", "mcp-name": "run"}
        return headers

    def run(self, command: str, era: str = MODERN, token: str | None = None, **meta: Any) -> httpx2.Response:
        """Run *command*."""
        request = call(command, era, **meta)
        headers = self.headers(era, token)
        # Else every call reads all certificates of the machine, for which plain HTTP has no use.
        return httpx2.post(self.url, json=request, headers=headers, timeout=PATIENCE, verify=False)

    def client(self, era: str = MODERN, token: str | None = None) -> httpx2.AsyncClient:
        """Return a client whose requests show the token."""
        return httpx2.AsyncClient(headers=self.headers(era, token), timeout=PATIENCE, verify=False)

    def stderr_text(self) -> str:
        """Return what it has written there so far."""
        if self._errors.closed:
            return self._last_words
        self._errors.seek(0)
        return self._errors.read().decode()

    def wait_for_stderr(self, text: str) -> None:
        """Return once it has written *text*."""
        for _ in patiently():
            if text in self.stderr_text():
                return
        raise AssertionError(self.stderr_text())

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Send it a signal."""
        os.kill(self.process.pid, number)

    def wait(self) -> int:
        """Return the exit code once it has ended."""
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """End it, and all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        self.process.stdin.close()
        self.process.stdout.close()
        self._last_words = self.stderr_text()
        self._errors.close()

    def close(self) -> int:
        """Ask it to end, and return its exit code."""
        try:
            self.signal()
            return self.wait()
        except (ProcessLookupError, subprocess.TimeoutExpired):
            return -1
        finally:
            self.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

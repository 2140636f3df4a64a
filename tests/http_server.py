"""Real processes of the team's plugin, ``onetool serve --http`` above all, and raw requests to it."""

from __future__ import annotations

import json
import select
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import httpx2

import warm_start
from bed import Bed
from onetool_team.state.shared_home import MARK
from pace import PATIENCE, patiently
from server_process import ServerProcess

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


class TeamProcess(ServerProcess):
    """A command of the team's plugin in a bed of its own, which says in one line of JSON when it is up."""

    def __init__(self, place: Bed, *command: str, env: Mapping[str, str] | None = None, before: str = "") -> None:
        """Start ``onetool`` with the words of *command*; *before* is Python that its process runs first."""
        args = [sys.executable, "-c", f"{before}\n{START}", *command]
        super().__init__(args, cwd=place.cwd, env=place.environment(**(env or {})), also=warm_start.TEAM)
        self.place = place

    def read_told(self) -> dict[str, Any]:
        """Return what it says when it is up."""
        try:
            assert select.select([self.output], [], [], PATIENCE)[0], "it does not say that it is up"
            line = self.output.readline()
            assert line, "it ended"
            return json.loads(line)
        except BaseException as error:
            error.add_note(self.stderr_text())
            raise

    def wait(self) -> int:
        """Return the exit code once it has ended."""
        return self.wait_for_end()


class HttpServer(TeamProcess):
    """A server over HTTP; use ``start``."""

    url = ""
    """Of /mcp."""
    token = ""

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
        mark: str = "of-tests",
    ) -> Self:
        """Start a server with *config* below *root*, on a free port, and wait until it is ready.

        Its home has the *mark* of one that replicas share, or none if that is empty.
        *before* is Python that its process runs first, where a test is about another kind of machine.
        """
        place = Bed.make(root, config)
        if mark:
            (place.config.parent / MARK).write_text(mark)
        server = cls(place, "serve", "--http", address, "--json", *arguments, env=env, before=before)
        try:
            told = server.read_told()
            server.url = told["url"]
            if told["token_file"]:
                server.token = Path(told["token_file"]).read_text().strip()
            if ready:
                server.wait_until_ready()
        except BaseException:
            server.kill()
            raise
        return server

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
            if self.get("/readyz").status_code == 200:
                return
        raise AssertionError(self.get("/readyz").text)

    def get(self, path: str, **headers: str) -> httpx2.Response:
        """Return what answers a request for *path* without a token; a busy machine may take its time."""
        return httpx2.get(self.origin + path, headers=headers, timeout=PATIENCE, verify=False)

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

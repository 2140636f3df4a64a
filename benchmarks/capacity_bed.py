"""What capacity is measured on: a team's server, Redis, PostgreSQL, a host for packs and a worker, in processes."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(1, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(1, str(Path(__file__).parents[1] / "plugins" / "onetool-team" / "tests"))

from benchmarks.http_ratio import META, MODERN
from benchmarks.process_costs import cpu_ns, pss_bytes

from onetool_team.auth.static_tokens import new_token, token_hash
from postgres_server import PostgresServer, postgres_server
from state.redis_process import running_redis

ROOT = Path(__file__).parents[1]
CODE = "import sys; from ot.entry import main; sys.argv[0] = 'onetool'; main()"
PACK = '''"""Calls that do next to nothing, so that what is measured is the way to them."""

import time

__ot_read_only__ = ["echo", "hold", "burn"]


def echo(*, text: str) -> str:
    """Return *text*."""
    return text


def note(*, text: str) -> str:
    """Return *text*; nobody said that this changes nothing, so the ledger records it."""
    return text


def hold(*, seconds: float) -> float:
    """Wait."""
    time.sleep(seconds)
    return seconds


def burn(*, seconds: float) -> float:
    """Use the processor, to see whether it is counted."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    return seconds
'''
CONFIG = """
engines: {{use: {engine}}}
policy: {{allow: ["near.*", "far.*"]}}
servers: {{far: {{url: "{far}", headers: {{Authorization: "Bearer {far_token}"}}}}}}
state: {{redis: "{redis}", postgres: "{postgres}", keys: ["{key}"]}}
limits: {{calls: 1000}}
http:
  workspaces: {{each: "{people}"}}
  quotas: {{in_flight: 1000, waiting: 10000, runs_per_minute: 1000000}}
  tokens: {{bench: {{hash: "{hash}"}}}}
"""

START_SECONDS = 60.0


@dataclass
class Bed:
    """The processes, and a client of the server."""

    home: Path
    port: int
    token: str
    processes: dict[str, int]
    postgres: PostgresServer | None
    sent: int = 0
    received: int = 0
    _connection: http.client.HTTPConnection | None = field(default=None, repr=False)

    def run(self, command: str) -> str:
        """Return the text of one run, over a connection that is kept open."""
        body = _request(command)
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self._connection.request("POST", "/mcp", body, self._headers())
        answer = self._connection.getresponse()
        data = answer.read()
        self.sent, self.received = len(body), len(data)
        if answer.status != 200:
            raise RuntimeError(data.decode())
        return _text(data.decode())

    def wait_until_ready(self) -> None:
        """Return once the server answers /readyz with yes."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
            connection.close()
            time.sleep(0.1)
        raise RuntimeError("the server is not ready")

    def as_another(self, token: str) -> Bed:
        """Return the same for whoever has *token*, with a connection of its own."""
        return Bed(self.home, self.port, token, self.processes, self.postgres)

    def another(self) -> Bed:
        """Return the same with a connection of its own."""
        return Bed(self.home, self.port, self.token, self.processes, self.postgres)

    def cpu_ms(self, *names: str) -> float:
        """Return the CPU time so far of the named processes, or of all."""
        return cpu_ns(self._pids(names)) / 1e6

    def pss_mb(self, *names: str) -> float:
        """Return the memory of the named processes, or of all."""
        return pss_bytes(self._pids(names)) / (1 << 20)

    def ledger_bytes(self) -> int:
        """Return what the ledger takes on disk now, with its indexes."""
        asked = "SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables WHERE schemaname = 'onetool'"
        assert self.postgres is not None, "it is measured with workers"
        return int(self.postgres.run(asked))

    def _pids(self, names: Sequence[str]) -> list[int]:
        return [pid for name, pid in self.processes.items() if not names or name in names]

    def _headers(self) -> dict[str, str]:
        return {
            "authorization": f"Bearer {self.token}",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": MODERN,
            "mcp-method": "tools/call",
            "mcp-name": "run",
        }


def _request(command: str) -> bytes:
    params = {"name": "run", "arguments": {"command": command}, "_meta": META}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def _text(data: str) -> str:
    found: dict[str, Any] = json.loads(data if data.startswith("{") else data[data.rindex("data:") + 5 :])
    text = "\n".join(block.get("text", "") for block in found["result"]["content"])
    if found["result"].get("isError"):
        raise RuntimeError(text)
    return text


@contextmanager
def bed(engine: str) -> Generator[Bed]:
    """Yield everything, started."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        redis = stack.enter_context(running_redis())
        assert redis.process is not None
        postgres = stack.enter_context(postgres_server("fsync=on"))
        there = make_home(root / "there", "far", f"engines: {{use: {engine}}}\n")
        far = start_process(stack, there, "serve", "--http", "0", "--json", "--packs", "far")
        token = new_token()
        config = CONFIG.format(
            engine=engine, far=far.told["url"], far_token=Path(far.told["token_file"]).read_text().strip(),
            redis=redis.url, postgres=postgres.address,
            hash=token_hash(token), key=secrets.token_hex(32), people=root / "people",
        )  # fmt: skip
        here = make_home(root / "here", "near", config)
        server = start_process(stack, here, "serve", "--http", "0", "--json")
        processes = {"server": server.pid, "redis": redis.process.pid, "far": far.pid}
        processes["postgres"] = postgres.processes()[0].pid
        processes["worker"] = start_process(stack, here, "worker", "--json").pid
        place = Bed(here, int(server.told["url"].split(":")[2].split("/")[0]), token, processes, postgres)
        place.wait_until_ready()
        yield place


@dataclass(frozen=True)
class Started:
    pid: int
    told: dict[str, Any]


def make_home(home: Path, pack: str, config: str) -> Path:
    """Return a home directory with a pack and a configuration."""
    tools = home / ".onetool" / "tools" / pack
    tools.mkdir(parents=True)
    (tools / f"{pack}_tools.py").write_text(PACK)
    (home / ".onetool" / "onetool.yaml").write_text(config)
    return home


def start_process(stack: ExitStack, home: Path, *arguments: str) -> Started:
    """Start a command of ours, and return what it says once it is ready."""
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT / "src")}
    errors = (home / "errors.txt").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, *arguments], cwd=home, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=errors,
    )  # fmt: skip
    stack.callback(errors.close)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError((home / "errors.txt").read_text())
    return Started(process.pid, json.loads(line))

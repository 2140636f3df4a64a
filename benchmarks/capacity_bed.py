"""What capacity is measured on: a team's server, Redis, a host for packs and a worker, each a process of its own."""

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

from benchmarks.http_ratio import META, MODERN
from benchmarks.process_costs import cpu_ns, pss_bytes
from redis import Redis

from ot.team.auth.static_tokens import new_token, token_hash
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
state: {{redis: "{redis}", keys: ["{key}"]}}
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
    redis_url: str
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

    def another(self) -> Bed:
        """Return the same with a connection of its own."""
        return Bed(self.home, self.port, self.token, self.processes, self.redis_url)

    def cpu_ms(self, *names: str) -> float:
        """Return the CPU time so far of the named processes, or of all."""
        return cpu_ns(self._pids(names)) / 1e6

    def pss_mb(self, *names: str) -> float:
        """Return the memory of the named processes, or of all."""
        return pss_bytes(self._pids(names)) / (1 << 20)

    def redis_bytes(self) -> int:
        """Return what Redis holds now."""
        client: Any = Redis
        with client.from_url(self.redis_url) as redis:
            return int(redis.info("memory")["used_memory"])

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
    """Yield everything, started; the worker only where this release has one."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        redis = stack.enter_context(running_redis())
        assert redis.process is not None
        there = _home(root / "there", "far", f"engines: {{use: {engine}}}\n")
        far = _started(stack, there, "serve", "--http", "0", "--json", "--packs", "far")
        token = new_token()
        config = CONFIG.format(
            engine=engine, far=far.told["url"], far_token=Path(far.told["token_file"]).read_text().strip(),
            redis=redis.url, hash=token_hash(token), key=secrets.token_hex(32), people=root / "people",
        )  # fmt: skip
        here = _home(root / "here", "near", config)
        server = _started(stack, here, "serve", "--http", "0", "--json")
        processes = {"server": server.pid, "redis": redis.process.pid, "far": far.pid}
        if "worker" in _commands():
            processes["worker"] = _started(stack, here, "worker", "--json").pid
        place = Bed(here, int(server.told["url"].split(":")[2].split("/")[0]), token, processes, redis.url)
        place.wait_until_ready()
        yield place


@dataclass(frozen=True)
class _Started:
    pid: int
    told: dict[str, Any]


def _home(home: Path, pack: str, config: str) -> Path:
    """Return a home directory with a pack and a configuration."""
    tools = home / ".onetool" / "tools" / pack
    tools.mkdir(parents=True)
    (tools / f"{pack}_tools.py").write_text(PACK)
    (home / ".onetool" / "onetool.yaml").write_text(config)
    return home


def _started(stack: ExitStack, home: Path, *arguments: str) -> _Started:
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
    return _Started(process.pid, json.loads(line))


def _commands() -> str:
    from ot.cli import command_table  # noqa: PLC0415 - which commands there are is asked when the bed is made

    return Path(command_table.__file__).read_text()

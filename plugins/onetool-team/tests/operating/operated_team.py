"""A whole team's server on one home that its operator looks at: two replicas, a worker, Redis, an object store."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis import Redis

import warm_start
from http_server import START, HttpServer, text_of
from onetool_team.results.object_place import ObjectPlace
from onetool_team.state.state_keys import StateKeys
from onetool_team.workspaces import directory_name
from output.s3_process import S3Process
from pace import PATIENCE, patiently
from team.background.worker_process import WorkerProcess
from team.whole_team import WholeTeam, whole_team

MORE = """
telemetry: {{audit: "{root}/audit.jsonl"}}
servers: {{notes: {{url: "http://127.0.0.1:9/mcp", auth: oauth}}}}
background: {{at_once: 4}}
"""
"""Of the places of the worker, one person may have half."""
TABLES = "SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = '{schema}'"


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> Any:
        """What it printed as JSON."""
        return json.loads(self.out)


@dataclass
class OperatedTeam:
    """The team, and the operator's command line."""

    team: WholeTeam
    worker: WorkerProcess

    @property
    def server(self) -> HttpServer:
        """One of its replicas, whose home all processes share."""
        return self.team.replicas[0]

    @property
    def audit(self) -> Path:
        """The audit log."""
        return self.team.root / "audit.jsonl"

    def onetool(self, *words: str) -> Ended:
        """Run one command as the operator."""
        with tempfile.TemporaryFile() as errors:
            process = warm_start.start(
                [sys.executable, "-c", START, *words],
                cwd=self.server.place.cwd,
                env=self.server.place.environment(),
                stderr=errors.fileno(),
                memory_bytes=None,
                also=warm_start.TEAM,
            )
            process.stdin.close()
            too_late = threading.Timer(2 * PATIENCE, os.kill, (process.pid, signal.SIGKILL))
            too_late.start()
            try:
                out = process.stdout.read().decode()
                code = process.wait(PATIENCE)
            finally:
                too_late.cancel()
                process.stdout.close()
            errors.seek(0)
            return Ended(code, out, errors.read().decode())

    def ask(self, *words: str) -> Any:
        """Return what one command says as JSON."""
        ended = self.onetool("team", *words, "--json")
        assert ended.code == 0, ended.err
        return ended.told

    def run(self, name: str, command: str, replica: int = 0) -> str:
        """Return what a program of *name* says."""
        return text_of(self.team.replicas[replica].run(command, token=self.team.tokens[name]))

    def until(self, holds: Any) -> None:
        """Return once *holds* does."""
        for _ in patiently():
            if holds():
                return
        raise AssertionError(holds)

    @property
    def keys(self) -> StateKeys:
        """The keys of what is shared."""
        return StateKeys([self.team.tokens["ann"]])

    def names_of(self, principal: str) -> list[bytes]:
        """Return all that stands for *principal* somewhere, as bytes to look for."""
        hidden, folder = self.keys.hide(principal), directory_name(principal)
        return [text.encode() for text in (principal, hidden, folder, folder.rpartition("-")[2])]

    def search(self, wanted: Iterable[bytes]) -> list[str]:
        """Return the places in all stores where one of *wanted* is, the configuration and the audit log left out."""
        pattern = re.compile(b"|".join(map(re.escape, wanted)))
        found = [f"redis {key!r}" for key, held in self._redis() if pattern.search(key + held)]
        found += [f"table {table}" for table, rows in self._tables() if pattern.search(rows)]
        found += [
            f"bucket {name}" for name, held in _objects(self.team.s3, self.team.root.name) if pattern.search(held)
        ]
        for file in (*self.team.root.rglob("*"), *self.team.postgres.data.rglob("*")):
            if file.name not in ("onetool.yaml", "audit.jsonl"):
                # PostgreSQL removes files at any moment.
                with suppress(FileNotFoundError, IsADirectoryError):
                    found += [f"file {file}"] if pattern.search(bytes(file) + file.read_bytes()) else []
        return found

    def _tables(self) -> Generator[tuple[str, bytes]]:
        """Yield each table of the ledger with its rows, as an operator reads them."""
        schema = self.team.root.name
        for table in self.team.postgres.run(TABLES.format(schema=schema)).splitlines():
            yield table, self.team.postgres.run(f'SELECT t::text FROM "{schema}".{table} t').encode()

    def _redis(self) -> Generator[tuple[bytes, bytes]]:
        with Redis.from_url(self.team.redis.url) as client:
            for key in client.scan_iter(count=1000):
                if held := client.dump(key):
                    # DUMP may compress: what a reader would see is looked at, too.
                    yield key, held + _shown(client, key)


def _shown(client: Any, key: bytes) -> bytes:
    match client.type(key):
        case b"string":
            return client.get(key) or b""
        case b"hash":
            return b" ".join(b"%s %s" % pair for pair in client.hgetall(key).items())
        case b"zset":
            return b" ".join(client.zrange(key, 0, -1))
        case b"set":
            return b" ".join(client.smembers(key))
        case b"list":
            return b" ".join(client.lrange(key, 0, -1))
        case _:
            return repr(client.xrange(key)).encode()


def _objects(s3: S3Process, prefix: str) -> Generator[tuple[str, bytes]]:
    place = ObjectPlace(s3.settings(prefix))
    for entry in place.list_objects(""):
        yield entry["path"], entry["path"].encode() + place.part(entry["path"], 0, entry["size"])


@contextmanager
def operated_team(root: Path) -> Generator[OperatedTeam]:
    """Yield it, with both replicas and the worker on one home, as on one volume."""
    with whole_team(root, more=MORE.format(root=root)) as team:
        team.replicas.pop().close()
        with HttpServer.start(root / "one", team.config()) as second:
            team.replicas.append(second)
            worker = team.start_worker("one")
            try:
                yield OperatedTeam(team, worker)
            finally:
                worker.close()
                team.replicas.pop()

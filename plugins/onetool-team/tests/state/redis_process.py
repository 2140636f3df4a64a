"""A real Redis of a test's own: empty, on a unix socket, and killed, frozen or restarted when a test wants it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from redis import Redis

from free_ports import free_port
from system_package import require_programs

READY = "ready to accept connections"
START_SECONDS = 20.0


@dataclass
class RedisProcess:
    """One redis-server that keeps nothing on disk; ``tcp`` has it listen on a free port instead of a socket."""

    options: tuple[str, ...] = ()
    tcp: bool = False
    directory: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="redis")))
    port: int = 0
    process: subprocess.Popen[str] | None = None
    host: str = "127.0.0.1"
    within: str = ""
    """The network namespace that it runs in."""

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"redis://{self.host}:{self.port}/0" if self.tcp else f"unix://{self.directory}/redis.sock?db=0"

    @property
    def limits_url(self) -> str:
        """The address as the limits library writes it."""
        return f"async+{self.url}" if self.tcp else f"async+redis+{self.url.partition('?')[0]}"

    def start(self) -> Self:
        """Start it, and return when it takes connections."""
        require_programs("redis-server")
        if self.tcp and not self.port:
            self.port = free_port()
        where = (
            ["--port", str(self.port), "--bind", self.host, "--protected-mode", "no"] if self.tcp else ["--port", "0"]
        )
        inside = ["ip", "netns", "exec", self.within] if self.within else []
        command = [*inside, "redis-server", *where, "--save", "", "--appendonly", "no", "--dir", str(self.directory)]
        if not self.tcp:
            command += ["--unixsocket", str(self.directory / "redis.sock")]
        self.process = subprocess.Popen([*command, *self.options], stdout=subprocess.PIPE, text=True)
        self._await_ready(self.process)
        return self

    def _await_ready(self, process: subprocess.Popen[str]) -> None:
        too_late = threading.Timer(START_SECONDS, process.kill)
        too_late.start()
        assert process.stdout is not None
        try:
            if not any(READY in line.lower() for line in process.stdout):
                raise RuntimeError("redis-server did not start")
        finally:
            too_late.cancel()

    def kill(self) -> None:
        """End it at once; what it held is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def freeze(self) -> None:
        """Let it take connections, and answer nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it answer again."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def fill(self) -> None:
        """Leave no memory for anything new. A limit below what it uses: keys that expire would make room again."""
        self._limit_memory(1)

    def make_room(self) -> None:
        """Let it keep new values again."""
        self._limit_memory(0)

    def _limit_memory(self, size: int) -> None:
        with Redis.from_url(self.url) as client:
            client.config_set("maxmemory", size)

    def close(self) -> None:
        """End it, and leave nothing behind."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


@contextmanager
def running_redis(
    *options: str, tcp: bool = False, host: str = "127.0.0.1", within: str = ""
) -> Generator[RedisProcess]:
    """Yield a Redis that ends with the block; *within* a network namespace, *host* is its address there."""
    redis = RedisProcess(options, tcp, host=host, within=within)
    try:
        yield redis.start()
    finally:
        redis.close()

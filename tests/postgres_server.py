"""A PostgreSQL server of its own for tests, from the system's package; it listens on a socket in its own directory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from pace import patiently, wait_while

PASSWORD = "correct-horse-battery"
SECONDS = 60


@dataclass(frozen=True)
class PostgresServer:
    """A server, whose administrator is ``admin``."""

    programs: Path
    socket: Path
    options: tuple[str, ...] = ()
    as_user: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def data(self) -> Path:
        """Where it keeps everything."""
        return self.socket / "data"

    def url(self, user: str) -> str:
        """Return the address of its database without the password."""
        return f"postgresql://{user}@/postgres?host={self.socket}"

    @property
    def address(self) -> str:
        """The address with all that is needed to use it."""
        return f"postgresql://admin:{PASSWORD}@/postgres?host={self.socket}"

    def run(self, sql: str, user: str = "admin") -> str:
        """Return what psql prints for *sql*."""
        argv = [self.programs / "psql", self.url(user), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql]
        done = subprocess.run(
            argv, env={**os.environ, "PGPASSWORD": PASSWORD}, capture_output=True, text=True, timeout=SECONDS
        )
        assert not done.returncode, done.stderr
        return done.stdout.strip()

    def start(self) -> None:
        """Start it. What a killed one leaves behind keeps the next from starting for a moment."""
        given = " ".join(f"-c {option}" for option in self.options)
        options = f"-k {self.socket} -c listen_addresses= -c shared_buffers=16MB {given}"
        for _ in patiently():
            with suppress(subprocess.CalledProcessError):
                self.control(self.programs / "pg_ctl", "-D", self.data, "-o", options, "-w", "start")
                return
        raise AssertionError((self.socket / "said").read_text())

    def stop(self, mode: str = "immediate") -> None:
        """End it."""
        self.control(self.programs / "pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    def kill(self) -> None:
        """End all of it at once, as a machine does that stops, and return when none of it is left."""
        processes = self.processes()
        self._signal(signal.SIGKILL)
        _, left = psutil.wait_procs(processes, SECONDS)
        assert not left, left

    def promote(self) -> None:
        """Let a standby take the place of the server that it followed."""
        self.control(self.programs / "pg_ctl", "-D", self.data, "-w", "promote")

    def freeze(self) -> None:
        """Let it answer nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it answer again."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def processes(self) -> list[psutil.Process]:
        """Return its processes, the first of all first."""
        try:
            first = psutil.Process(int((self.data / "postmaster.pid").read_text().split()[0]))
            return [first, *first.children()]
        except (FileNotFoundError, psutil.NoSuchProcess):
            return []

    def control(self, *argv: object) -> None:
        """Run one of its programs."""
        # To a file: what the server holds open would keep a pipe from ending.
        with (self.socket / "said").open("ab") as said:
            subprocess.run(
                [*map(str, argv)],
                cwd=self.socket,
                stdout=said,
                stderr=said,
                check=True,
                timeout=SECONDS,
                **self.as_user,
            )


@contextmanager
def postgres_server(*options: str) -> Generator[PostgresServer]:
    """Yield a server with *options*, and end it; the test is skipped where the package is missing.

    It forgets all in a loss of power unless an option says ``fsync=on``.
    """
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("not installed: postgresql; run .ci/system")
    place, as_user = _make_place()
    password = place / "password"
    password.write_text(PASSWORD)
    shutil.chown(password, *(("postgres", "postgres") if as_user else (os.geteuid(), os.getegid())))
    server = PostgresServer(found[-1].parent, place, ("fsync=off", *options), as_user)
    try:
        make = ("-U", "admin", "-A", "scram-sha-256", f"--pwfile={password}", "--no-sync", "--locale=C", "-E", "UTF8")
        server.control(server.programs / "initdb", "-D", server.data, *make)
        with _running(server):
            yield server
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def standby_of(primary: PostgresServer, name: str = "standby") -> Generator[PostgresServer]:
    """Yield a server that follows *primary*, whose commits wait from now on until they are on its disk, too."""
    place, as_user = _make_place()
    standby = PostgresServer(primary.programs, place, primary.options, as_user)
    try:
        followed = f"{primary.address}&application_name={name}"
        standby.control(standby.programs / "pg_basebackup", "-D", standby.data, "-d", followed, "-R", "-c", "fast")
        with _running(standby):
            primary.run(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
            primary.run("SELECT pg_reload_conf()")
            wait_while(lambda: primary.run("SELECT sync_state FROM pg_stat_replication") != "sync")
            primary.run("CHECKPOINT")  # whoever makes it lets commits wait, once it has read the settings
            yield standby
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _make_place() -> tuple[Path, dict[str, Any]]:
    """Return a directory for a server, and as whom it runs: it refuses to run as root."""
    place = Path(tempfile.mkdtemp(prefix="ot-pg-"))
    if os.geteuid():
        return place, {}
    shutil.chown(place, "postgres", "postgres")
    return place, {"user": "postgres", "group": "postgres"}


@contextmanager
def _running(server: PostgresServer) -> Generator[None]:
    server.start()
    server.socket.chmod(0o755)
    try:
        yield
    finally:
        server.thaw()
        if server.processes():
            server.stop()

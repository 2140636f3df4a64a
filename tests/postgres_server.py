"""A PostgreSQL server of its own for tests, from the system's package; it listens on a socket in its own directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "correct-horse-battery"
SECONDS = 60


@dataclass(frozen=True)
class PostgresServer:
    """A running server, whose administrator is ``admin``."""

    programs: Path
    socket: Path

    def url(self, user: str) -> str:
        """Return the address of its database without the password."""
        return f"postgresql://{user}@/postgres?host={self.socket}"

    def run(self, sql: str, user: str = "admin") -> str:
        """Return what psql prints for *sql*."""
        argv = [self.programs / "psql", self.url(user), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql]
        done = subprocess.run(
            argv, env={**os.environ, "PGPASSWORD": PASSWORD}, capture_output=True, text=True, timeout=SECONDS
        )
        assert not done.returncode, done.stderr
        return done.stdout.strip()


@contextmanager
def postgres_server() -> Generator[PostgresServer]:
    """Yield a server, and end it; the test is skipped where the package is missing."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("not installed: postgresql; run .ci/system")
    programs = found[-1].parent
    place = Path(tempfile.mkdtemp(prefix="ot-pg-"))
    as_user: dict[str, Any] = {}
    if os.geteuid() == 0:  # it refuses to run as root
        shutil.chown(place, "postgres", "postgres")
        as_user = {"user": "postgres", "group": "postgres"}
    password = place / "password"
    password.write_text(PASSWORD)
    shutil.chown(password, *(("postgres", "postgres") if as_user else (os.geteuid(), os.getegid())))
    data = place / "data"

    def control(*argv: object) -> None:
        # To a file: what the server holds open would keep a pipe from ending.
        with (place / "said").open("ab") as said:
            subprocess.run(
                [*map(str, argv)], cwd=place, stdout=said, stderr=said, check=True, timeout=SECONDS, **as_user
            )

    try:
        make = ("-U", "admin", "-A", "scram-sha-256", f"--pwfile={password}", "--no-sync", "--locale=C", "-E", "UTF8")
        control(programs / "initdb", "-D", data, *make)
        options = f"-k {place} -c listen_addresses= -c fsync=off -c shared_buffers=16MB"
        control(programs / "pg_ctl", "-D", data, "-o", options, "-w", "start")
        place.chmod(0o755)
        try:
            yield PostgresServer(programs, place)
        finally:
            control(programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(place, ignore_errors=True)

"""SharedHouse: one user's home with a shared server of its own, and the clients that are started there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.watched import Place
from mcp_wire import WireServer
from pace import PATIENCE, wait_while
from server.asked_talk import place as place_with_pack
from shared_server.published_clients import own_command

SHARED = own_command("serve", "--shared")


@dataclass(frozen=True)
class SharedHouse:
    """A home, directories to work in, and where the sockets are."""

    place: Place
    runtime: Path

    def environment(self, **more: str) -> dict[str, str]:
        """Return what a client of this user inherits."""
        return {**self.place.environment(), "XDG_RUNTIME_DIR": str(self.runtime), **more}

    def client(
        self, cwd: Path | None = None, *, command: Sequence[str] = SHARED, handshake: bool = True, **more: str
    ) -> WireServer:
        """Start a client's relay, in the usual directory or in *cwd*."""
        return WireServer.start(
            command, cwd=cwd or self.place.cwd, env=self.environment(**more), handshake=handshake, warm=False
        )

    def directory(self, name: str) -> Path:
        """Make another directory to work in."""
        made = self.place.cwd.parent / name
        made.mkdir()
        return made

    def typed(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Type a command of ``onetool``, and wait until it has ended."""
        return subprocess.run(
            own_command(*arguments),
            cwd=self.place.cwd,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            timeout=PATIENCE * 2,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def servers(self) -> list[dict[str, Any]]:
        """Return the shared servers that run, as ``onetool ps`` shows them."""
        done = self.typed("ps", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["servers"]

    def daemon(self) -> int:
        """Return the process id of the one shared server."""
        (server,) = self.servers()
        return server["pid"]

    def living(self) -> int:
        """Return the same without asking the server, as its own file says."""
        (life,) = self.runtime.rglob("*.life")
        return int(life.read_text().split()[0])


@contextmanager
def shared_house(root: Path, config: str = "") -> Generator[SharedHouse]:
    """Yield a house below *root*; whatever was started there is ended with it."""
    # A socket's path is short, and that of a test's directory is not.
    runtime = Path(tempfile.mkdtemp(prefix="ot", dir="/tmp"))
    house = SharedHouse(place_with_pack(root, config), runtime)
    try:
        yield house
    finally:
        ended = house.typed("stop", "--now")
        shutil.rmtree(runtime, ignore_errors=True)
        assert ended.returncode == 0, ended.stderr


def wait_until_gone(pid: int) -> None:
    """Return when there is no such process any more."""
    wait_while(lambda: Path(f"/proc/{pid}").exists() and not _is_dead(pid))


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith(("Z", "X"))
    except OSError:
        return True


def kill(pid: int) -> None:
    """Kill a process, if it is still there."""
    try:
        os.kill(pid, 9)
    except ProcessLookupError:
        return

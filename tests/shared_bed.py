"""SharedBed: a bed whose clients share one server, for tests to hurt; its sockets are in a directory of their own."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from bed import ONETOOL, Bed
from mcp_wire import WireServer
from ot.relay.header import CONTROL, Header
from pace import PATIENCE, wait_while
from server.asked_talk import add_pack
from server_process import process_stat

CONFIG = """\
engines: {use: portable, portable: {processes: 4}}
limits: {cpu_seconds: 60}
output: {max_inline_size: 0}
logs: {level: INFO}
"""
HASTY = (
    "import ot.relay.tries as tries, ot.relay.relay as relay; "
    "import ot.relay.reach as reach; "
    "tries.SHARED_SECONDS = {shared}; reach.LOCK_SECONDS = 1.0; tries.ALONE_SECONDS = relay.LOOK_SECONDS = {alone}; "
    "from ot.entry import main; main()"
)
"""A relay that does not wait as long as others before it serves its client alone, or looks for the shared server."""
BUSY = "n = 0\nwhile True:\n    n = n + 1"
"""A program that never ends by itself."""


@dataclass(frozen=True)
class SharedBed(Bed):
    """A bed, and where the sockets of its user are."""

    runtime: Path = Path()

    @classmethod
    def make(cls, root: Path, config: str = CONFIG) -> Self:
        """Make the directories below *root*; a socket's path must be short, so its directory is elsewhere."""
        bed = Bed.make(root, config)
        return cls(bed.home, bed.cwd, Path(tempfile.mkdtemp(prefix="ot", dir="/tmp")))

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of the user's clients."""
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        return {**kept, "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.runtime), **more}

    def directory_beside(self, name: str) -> Path:
        """Make another directory to work in."""
        made = self.cwd.parent / name
        made.mkdir()
        return made

    def servers(self) -> list[dict[str, Any]]:
        """Return the shared servers that run, as ``onetool ps`` shows them."""
        done = self.typed("ps", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["servers"]

    def busy(self) -> list[dict[str, Any]]:
        """Return the clients with open runs; a server that a busy machine keeps from telling may have some."""
        clients = [one for server in self.servers() for one in server.get("connections", [{"runs": "silent"}])]
        return [one for one in clients if one["runs"]]

    def client(
        self, *arguments: str, handshake: bool = True, cwd: Path | None = None, shared: bool = True, **more: str
    ) -> WireServer:
        """Start a client's relay, or its own server if it is not to be *shared*."""
        command = [ONETOOL, "serve", *(["--shared"] if shared else []), *arguments]
        return WireServer.start(
            command, cwd=cwd or self.cwd, env=self.environment(**more), handshake=handshake, warm=not shared
        )

    def hasty_client(self) -> WireServer:
        """Start a relay that serves its client alone as soon as it cannot reach the shared server."""
        script = HASTY.format(shared=0.0, alone=15.0)
        command = [sys.executable, "-P", "-c", script, "serve", "--shared"]
        return WireServer.start(command, cwd=self.cwd, env=self.environment(), warm=False)

    @property
    def directory(self) -> Path:
        """Where the files of the shared server are."""
        return self.runtime / "onetool"

    def lives(self) -> list[Path]:
        """Return the files of the shared servers that live."""
        return [file for file in self.directory.glob("*.life") if _is_locked(file)]

    def daemons(self) -> list[int]:
        """Return the process ids of the shared servers that live and can be reached."""
        written = [file.read_text().split() for file in self.lives()]
        return [int(words[0]) for words in written if words]  # one that begins has written nothing yet

    def daemon(self) -> int:
        """Return the process id of the one shared server."""
        [pid] = self.daemons()
        return pid

    def socket(self) -> Path:
        """Return the socket of the one shared server."""
        [life] = self.lives()
        return life.with_suffix(".sock")

    def kill_daemon(self) -> int:
        """Kill the shared server as the system does for want of memory, and return what its process id was."""
        pid = self.daemon()
        kill(pid)
        wait_until_gone(pid)
        return pid

    def control(self, *words: bytes) -> dict[str, Any]:
        """Ask the shared server about itself."""
        with self.connected(Header(b"any", b"/", (CONTROL, *words), {})) as client, client.makefile("rb") as lines:
            assert lines.readline() == b"+\n"
            return json.loads(lines.readline())

    def connections(self) -> int:
        """Return how many clients are connected."""
        return len(self.control()["connections"])

    def connected(self, header: Header | None = None) -> socket.socket:
        """Return a raw connection to the shared server."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(PATIENCE)
        client.connect(str(self.socket()))
        if header:
            client.sendall(header.pack())
        return client


@contextmanager
def shared_bed(root: Path) -> Generator[SharedBed]:
    """Yield a bed, whose shared servers end with the block, however they are."""
    bed = SharedBed.make(root)
    try:
        yield bed
    finally:
        for file in bed.directory.glob("*.life"):
            with suppress(OSError, ValueError, IndexError):
                os.kill(int(file.read_text().split()[0]), signal.SIGKILL)
        shutil.rmtree(bed.runtime, ignore_errors=True)  # what ends may remove its own files meanwhile


@contextmanager
def asked_bed(root: Path, config: str = "logs: {level: WARNING}\n") -> Generator[SharedBed]:
    """Yield a bed with a pack that asks; its shared servers are told to end with the block."""
    bed = SharedBed.make(root, config)
    add_pack(bed)
    try:
        yield bed
    finally:
        ended = bed.typed("stop", "--now")
        shutil.rmtree(bed.runtime, ignore_errors=True)
        assert ended.returncode == 0, ended.stderr


def own_command(*arguments: str) -> tuple[str, ...]:
    """Return the command line of ``onetool`` as it is installed."""
    return (ONETOOL, *arguments)


def kill(pid: int) -> None:
    """Kill a process, if it is still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def is_alone(client: WireServer) -> bool:
    """Return whether the client has a server of its own."""
    return "served alone" in client.stderr_text()


def wait_until_gone(pid: int) -> None:
    """Return when the process has ended."""
    wait_while(lambda: process_stat(pid) and f"process {pid} lives")


def wait_until_connected(socket: Path, count: int) -> None:
    """Return when *count* clients have connected to *socket*, whether anybody takes them or not."""

    def missing() -> str:
        # The listening socket itself has a line, too, and all have the name that it was made with.
        lines = [line for line in Path("/proc/net/unix").read_text().splitlines() if f" {socket}." in line]
        return "" if len(lines) > count else f"{len(lines) - 1} are connected"

    wait_while(missing)


def _is_locked(file: Path) -> bool:
    with file.open("rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False

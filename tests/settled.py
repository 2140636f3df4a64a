"""A server that has come to rest: it holds what it keeps while nothing runs, and what it let go of has ended.

The exact engine refills its ready children after the replies, and statistics are opened half a second after the first
run; a baseline that is taken before takes either for a leak later.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from mcp_wire import WireServer
from ot.config.models import ExactEngineSettings
from pace import wait_while
from server_process import process_tree

PIDFD = "anon_inode:[pidfd]"
STATISTICS = "stats.db-shm"


def wait_until_settled(server: WireServer) -> None:
    """Return when *server*, which has run something and runs nothing now, waits with all its ready children."""
    reply = server.run("1")
    ready = ExactEngineSettings().ready if reply.meta["engine"] == "exact" else 0
    wait_while(lambda: _unsettled(server, ready))


def _unsettled(server: WireServer, ready: int) -> str:
    found = server.fds()
    if not any(fd.endswith(STATISTICS) for fd in found):
        return "the statistics are not open"
    tree = process_tree(server.pid)
    held = {_pid_behind(server.pid, fd.partition(":")[0]) for fd in found if fd.endswith(PIDFD)}
    zygotes = {stat.parent for stat in tree if stat.pid in held and stat.parent != server.pid}
    forked = {stat.pid for stat in tree if stat.parent in zygotes}
    if len(forked) != ready or not forked <= held:
        return f"the zygote has {len(forked)} children, the server holds {len(forked & held)}, {ready} would be ready"
    return ""


def _pid_behind(server: int, fd: str) -> int:
    with contextlib.suppress(OSError):  # closed meanwhile
        for line in Path(f"/proc/{server}/fdinfo/{fd}").read_text().splitlines():
            if line.startswith("Pid:"):
                return int(line.split()[1])
    return -1

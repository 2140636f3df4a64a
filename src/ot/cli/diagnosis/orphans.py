"""Finds processes of servers that are gone: guards of workers, and zygotes."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ot.cli.diagnosis.finding import Finding

ZYGOTE = re.compile(r"from ot\.runtime\.engines\.jail\.zygote import main.* # of server (\d+)\Z", re.DOTALL)
GUARD = "/ot/execution/workers/guard.py"
GUARD_SERVER = 3
"""The place of the server's number among the guard's arguments."""
OWN_UIDS = 0x7FFE0000
"""Zygotes that root starts become users from here on."""
MOST_ANCESTORS = 100


@dataclass(frozen=True)
class Orphan:
    """A process of ours whose server, as it was told at its start, is none of its ancestors."""

    pid: int
    kind: str
    server: int
    born: str


def orphan_findings() -> Iterator[Finding]:
    """Return a finding for each orphan; on systems without /proc nothing is known."""
    if sys.platform != "linux":
        return
    found = list(orphans())
    for orphan in found:
        text = f"{orphan.kind} {orphan.pid} has outlived its server {orphan.server}"
        yield Finding("processes", "problem", text, f"kill {orphan.pid}", partial(_end, orphan))
    if not found:
        yield Finding("processes", "ok", "no process of an ended server is left")


def orphans() -> Iterator[Orphan]:
    """Yield the orphans of this user, in this namespace of processes."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (orphan := _orphan(int(entry.name))):
            yield orphan


def _orphan(pid: int) -> Orphan | None:
    try:
        found = marked(Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1])
        if found is None or not _is_ours(pid):
            return None
        kind, server = found
        return None if server in _ancestors(pid) else Orphan(pid, kind, server, _stat(pid)[19])
    except (OSError, ValueError, IndexError):
        return None  # it ended while it was looked at


def marked(argv: list[str]) -> tuple[str, int] | None:
    """Return what kind of our processes has this command line, and which server started it."""
    if argv and (match := ZYGOTE.search(argv[-1])):
        return "the zygote", int(match[1])
    guards = [place for place, word in enumerate(argv[:6]) if word.endswith(GUARD)]
    return ("the guard", int(argv[guards[0] + GUARD_SERVER])) if guards else None


def _is_ours(pid: int) -> bool:
    """Whether it is a process of this user, numbered as its server was: one of a container has other numbers."""
    status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    uid, me = int(lines["Uid"].split()[0]), os.getuid()
    here = len(lines.get("NSpid", "1").split()) == 1
    return here and (uid == me or (me == 0 and uid >= OWN_UIDS))


def _ancestors(pid: int) -> set[int]:
    found: set[int] = set()
    while pid > 1 and len(found) < MOST_ANCESTORS:
        pid = int(_stat(pid)[1])
        found.add(pid)
    return found


def _stat(pid: int) -> list[str]:
    """Return what the kernel tells of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def _end(orphan: Orphan) -> str:
    try:
        handle = os.pidfd_open(orphan.pid)
    except ProcessLookupError:
        return f"{orphan.kind} {orphan.pid} has ended by itself"
    try:
        # Held by its handle the number cannot pass to another process any more.
        if _orphan(orphan.pid) != orphan:
            return f"{orphan.kind} {orphan.pid} has ended by itself"
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return f"{orphan.kind} {orphan.pid} has ended by itself"
    finally:
        os.close(handle)
    return f"{orphan.kind} {orphan.pid} was ended"

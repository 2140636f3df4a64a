"""Finds what is left over: processes of servers that are gone, and files of old packs and expired results."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ot.cli.diagnosis import Finding
from ot.files.no_links import names_in
from ot.output.result_files import FILE_OF_RESULT
from ot.workers.pack_environment import PACKS
from ot.workspace import Workspace

DAY = 24 * 3600.0
PACK_DAYS = 30
UNFINISHED_SECONDS = 3600.0
PACK_DIRECTORY = re.compile(r"[0-9a-f]{32}\Z")
HALF_WRITTEN = re.compile(r"\..+\.[0-9a-f]{16}\Z")
ZYGOTE = re.compile(
    r"from ot\.runtime\.engines\.(?:forked\.)?jail\.zygote import main.* # of server (\d+)\Z", re.DOTALL
)
GUARD = "/ot/processes/guard.py"
GUARD_SERVER = 3
"""The place of the server's number among the guard's arguments."""
OWN_UIDS = 0x7FFE0000
"""Zygotes that root starts become users from here on."""
MAX_ANCESTORS = 100
GRACE_SECONDS = 2.0
"""How long a guard may take to end what its dead server left behind."""


# ---------------------------------------------------------------- processes


@dataclass(frozen=True)
class Orphan:
    """One of OneTool's processes whose server, as named at its start, is not one of its ancestors."""

    pid: int
    kind: str
    server: int
    born: str


def orphan_findings() -> Iterator[Finding]:
    """Return a finding for each orphan; on systems without /proc nothing is known."""
    if sys.platform != "linux":
        return
    found = _lasting_orphans()
    for orphan in found:
        text = f"{orphan.kind} {orphan.pid} has outlived its server {orphan.server}"
        yield Finding("processes", "problem", text, f"kill {orphan.pid}", partial(_end, orphan))
    if not found:
        yield Finding("processes", "ok", "no processes of ended servers are left")


def _lasting_orphans() -> list[Orphan]:
    """Return the orphans that stay: those that a guard is just ending need no help."""
    end, found = time.monotonic() + GRACE_SECONDS, list(orphans())
    while found and time.monotonic() < end:
        time.sleep(0.1)
        left = set(orphans())
        found = [orphan for orphan in found if orphan in left]
    return found


def orphans() -> Iterator[Orphan]:
    """Yield the orphans of this user, in this namespace of processes."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (orphan := _orphan(int(entry.name))):
            yield orphan


def _orphan(pid: int) -> Orphan | None:
    try:
        found = identify(Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1])
        if found is None or not _is_ours(pid):
            return None
        kind, server = found
        return None if server in _ancestors(pid) else Orphan(pid, kind, server, _stat(pid)[19])
    except (OSError, ValueError, IndexError):
        return None  # it ended while it was looked at


def identify(argv: list[str]) -> tuple[str, int] | None:
    """Return the kind of OneTool process that has this command line, and the server that started it."""
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
    while pid > 1 and len(found) < MAX_ANCESTORS:
        pid = int(_stat(pid)[1])
        found.add(pid)
    return found


def _stat(pid: int) -> list[str]:
    """Return the kernel's data about a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def _end(orphan: Orphan) -> str:
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(orphan.pid)
        try:
            # While the handle is held, the pid cannot be reused by another process.
            if _orphan(orphan.pid) == orphan:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return f"{orphan.kind} {orphan.pid} was ended"
        finally:
            os.close(handle)
    return f"{orphan.kind} {orphan.pid} has ended by itself"


# ---------------------------------------------------------------- files


def leftover_findings(app: Workspace) -> Iterator[Finding]:
    """Report what can be removed, one finding for each kind."""
    output = app.picture.loaded.config.output
    loaded = app.picture.loaded
    kinds = {
        f"copies of packs, not used for {PACK_DAYS} days": _old_packs(app.paths.global_dir / PACKS),
        "half-written files": [*_half_written(app.paths.global_dir), *_half_written(app.paths.global_dir / PACKS)],
        "expired stored results": _find_expired(loaded.results_dir, loaded.below, output.result_ttl),
    }
    for kind, found in kinds.items():
        if found:
            size = sum(map(_size, found))
            text = f"{len(found)} {kind}, {size / 1e6:.1f} MB"
            yield Finding("disk", "note", text, "onetool doctor --fix removes them", partial(_remove, kind, found))
    if not any(kinds.values()):
        yield Finding("disk", "ok", "nothing is left over")


def _old_packs(packs: Path) -> list[Path]:
    """Return copies that nothing has been read from for long; a pack that is used again is copied again."""
    found = [path for path in _entries(packs) if PACK_DIRECTORY.match(path.name) and path.is_dir()]
    old = [path for path in found if _age(path, *_entries(path)) > PACK_DAYS * DAY]
    running = _commands_running() if old else ""
    return [path for path in old if path.name not in running]


def _commands_running() -> str:
    """Return the command lines of all processes: a worker's names the copy that it runs from."""
    lines: list[str] = []
    for entry in _entries(Path("/proc")):
        if entry.name.isdigit():
            with suppress(OSError):
                lines.append((entry / "cmdline").read_bytes().decode(errors="replace"))
    return "\n".join(lines)


def _half_written(place: Path) -> list[Path]:
    found = [path for path in _entries(place) if HALF_WRITTEN.match(path.name)]
    return [path for path in found if _age(path) > UNFINISHED_SECONDS]


def _find_expired(place: Path, below: Path | None, ttl: float) -> list[Path]:
    try:
        with names_in(place, below=below):
            pass
    except OSError:
        return []  # a link on the way: its target is not OneTool's to remove
    found = [path for path in _entries(place) if FILE_OF_RESULT.fullmatch(path.name)]
    return [path for path in found if ttl and _age(path) > ttl + UNFINISHED_SECONDS]


def _entries(place: Path) -> list[Path]:
    with suppress(OSError):
        return list(place.iterdir())
    return []


def _age(*paths: Path) -> float:
    """Return how long ago the youngest of *paths* was read or written, as far as the file system notes it."""
    times = [0.0]
    for path in paths:
        with suppress(OSError):
            found = path.lstat()
            # Looking into a directory counts as reading it, and we have just done that.
            times.append(found.st_mtime if path.is_dir() else max(found.st_mtime, found.st_atime))
    return time.time() - max(times)


def _size(path: Path) -> int:
    size = 0
    for file in [path, *path.rglob("*")] if path.is_dir() and not path.is_symlink() else [path]:
        with suppress(OSError):
            size += file.lstat().st_size
    return size


def _remove(kind: str, found: Sequence[Path]) -> str:
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return f"removed {len(found)} {kind}"

"""Finds what old packs, crashed servers and expired results have left on disk."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from ot.app import App
from ot.cli.diagnosis.finding import Finding
from ot.execution.workers.pack_environment import PACKS
from ot.no_links import names_in
from ot.output.result_files import FILE_OF_RESULT

DAY = 24 * 3600.0
PACK_DAYS = 30
UNFINISHED_SECONDS = 3600.0
PACK_DIRECTORY = re.compile(r"[0-9a-f]{32}\Z")
HALF_WRITTEN = re.compile(r"\..+\.[0-9a-f]{16}\Z")


def leftover_findings(app: App) -> Iterator[Finding]:
    """Return what can be removed, each kind as one finding."""
    output = app.picture.loaded.config.output
    loaded = app.picture.loaded
    kinds = {
        f"copies of packs, not used for {PACK_DAYS} days": _old_packs(app.paths.global_dir / PACKS),
        "half-written files": [*_half_written(app.paths.global_dir), *_half_written(app.paths.global_dir / PACKS)],
        "stored results whose time is over": _expired(loaded.results_dir, loaded.below, output.result_ttl),
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


def _expired(place: Path, below: Path | None, ttl: float) -> list[Path]:
    try:
        with names_in(place, below=below):
            pass
    except OSError:
        return []  # a link on the way: what is behind it is not ours to remove
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

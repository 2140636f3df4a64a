"""Finds the git repository that a path lies in, as far up as programs may look."""

from __future__ import annotations

from pathlib import Path

from ot.files.path_guard import PathGuard


def repository_top(guard: PathGuard, start: Path) -> Path | None:
    """Return the nearest directory with a ``.git``, from the real path *start* up to where the guard ends."""
    for directory in (start, *start.parents):
        try:
            guard.status(str(directory / ".git"))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return None  # above the allowed directories
        return directory
    return None

"""Finds the git repository that a path lies in, as far up as programs may look."""

from __future__ import annotations

import os
from pathlib import Path

from ot.files.path_guard import PathGuard, checked_path


def real_place(guard: PathGuard, path: str) -> Path:
    """Return where *path*, as a program gives it, really is; whether that is allowed, the guard says on opening it.

    Raises:
        TypeError, ValueError: The system can have no such path.
    """
    return Path(os.path.realpath(given_place(guard, path)))


def given_place(guard: PathGuard, path: str) -> Path:
    """Return the same without following links."""
    text = checked_path(path)
    start = Path(text).expanduser() if text.split("/", 1)[0] == "~" else text  # '~name' is a name, as for the guard
    return guard.roots[0].absolute() / start


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

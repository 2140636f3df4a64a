"""Copies of files as they were before a command changed them, in the user's own directory."""

from __future__ import annotations

import time
from pathlib import Path

from ot.files.private_file import write_private

FOLDER = "backups"
MOST = 50


def keep_backup(global_dir: Path, name: str, suffix: str, text: str) -> Path:
    """Keep *text* as a private copy, and return where; of all copies with the first word of *name* the last 50 stay.

    Raises:
        OSError: It cannot be written.
    """
    folder = global_dir / FOLDER
    backup = folder / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**9:09}{suffix}"
    write_private(backup, text)
    copies = folder.glob(f"{name.partition('-')[0]}-*{suffix}")
    for outdated in sorted(copies, key=lambda file: file.stat().st_mtime)[:-MOST]:
        outdated.unlink(missing_ok=True)
    return backup

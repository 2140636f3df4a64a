"""Every stored format of this release."""

from __future__ import annotations

import shutil
from pathlib import Path

from stored_formats import (
    databases,
    files_of_runs,
    files_of_servers,
    files_of_user,
    images_of_runs,
    ledgers,
    notes_of_memory,
    people_in_postgres,
    values_in_redis,
)
from stored_formats.frozen_world import frozen
from stored_formats.stored_format import StoredFormat

SAMPLES = Path(__file__).parent / "samples"
FORMATS = (
    *files_of_user.FORMATS,
    *files_of_servers.FORMATS,
    *databases.FORMATS,
    *ledgers.FORMATS,
    *notes_of_memory.FORMATS,
    *people_in_postgres.FORMATS,
    *images_of_runs.FORMATS,
    *files_of_runs.FORMATS,
    *values_in_redis.FORMATS,
)


def make(one: StoredFormat, directory: Path) -> None:
    """Write a sample into *directory*, without the locks, which are empty and hold nothing."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with frozen():
        one.make(directory)
    for lock in [*directory.rglob("*.lock"), *directory.rglob(".*.lock")]:
        lock.unlink(missing_ok=True)

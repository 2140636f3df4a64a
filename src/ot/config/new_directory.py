"""A .onetool directory to start from: the configuration, its schema, and what version control leaves out."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from ot.config.paths import CONFIG_FILE
from ot.config.schema import SCHEMA_FILE, json_schema
from ot.errors import ConfigError

IGNORED = "tmp/\nlogs/\nstats/\nsessions/\nsecrets*.yaml\n"
"""What of a .onetool directory does not belong into version control."""


def write_new_directory(directory: Path, text: str) -> None:
    """Write the configuration *text* and what goes with it into *directory*, where there is none yet.

    Raises:
        ConfigError: It cannot be written.
    """
    try:
        _write(directory, {CONFIG_FILE: text, SCHEMA_FILE: json.dumps(json_schema(), indent=2) + "\n"})
    except OSError as error:
        raise ConfigError(f"{error.filename or directory} cannot be written: {error.strerror}") from None


def _write(directory: Path, files: dict[str, str]) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, text in files.items():
        _write_new(directory / name, text)
    write_ignored(directory)


def write_ignored(directory: Path) -> None:
    """Say to version control what it leaves out of *directory*, unless something has that name there already."""
    with suppress(FileExistsError):
        _write_new(directory / ".gitignore", IGNORED)


def _write_new(path: Path, text: str) -> None:
    # Not through a link, also one that leads nowhere yet.
    with path.open("x", encoding="utf-8") as file:
        file.write(text)

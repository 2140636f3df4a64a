"""Paths: the directories that a configuration is read from."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ot.errors import ConfigError

FOLDER = ".onetool"
CONFIG_FILE = "onetool.yaml"
PROMPTS_FILE = "prompts.yaml"
SECRETS_FILE = "secrets.yaml"
HOMES = "homes"
"""Where the private directories of servers are, below the user's directory."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Where a server works and where its settings are; ``ignored`` says why a project's directory is not used."""

    cwd: Path
    project_dir: Path | None
    global_dir: Path
    ignored: str = ""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False, compare=False)
    """The environment of whoever works there: nothing but this reads the process's own."""

    @classmethod
    def find(cls, environ: Mapping[str, str] = os.environ, cwd: Path | None = None) -> Paths:
        """Return the directories of this process, or of a client's that runs in *cwd*; no parent is searched.

        Raises:
            ConfigError: ``OT_CWD`` or *cwd* names no directory, or the user has no home.
        """
        return replace(cls.of(_working_directory(environ, cwd), _home() / FOLDER), environ=environ)

    @classmethod
    def of(cls, cwd: Path, global_dir: Path) -> Paths:
        """Return the directories for a server that works in *cwd*."""
        found = cwd / FOLDER
        if not os.path.lexists(found):
            return cls(cwd, None, global_dir)
        if why := _unusable(found):
            return cls(cwd, None, global_dir, why)
        # In the home directory both are the same one, and the user's own needs no trust.
        is_global = os.path.realpath(found) == os.path.realpath(global_dir)
        return cls(cwd, None if is_global else found, global_dir)

    def look_again(self) -> Paths:
        """Return the same directories, with the project that is there now."""
        return replace(Paths.of(self.cwd, self.global_dir), environ=self.environ)


def expand_home(path: str) -> Path:
    """Return *path* with ``~`` written out; the home of a user who does not exist stays as it is."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path's own raises where a user is not known


def _working_directory(environ: Mapping[str, str], here: Path | None) -> Path:
    given = environ.get("OT_CWD", "")
    try:
        written = Path(given).expanduser()
        cwd = written if written.is_absolute() else (here or Path.cwd()) / written
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"the working directory is not known: {error}", hint="set OT_CWD") from None
    if os.path.isdir(cwd):  # noqa: PTH112 - pathlib's own raises where it may not look
        return cwd
    if given:
        raise ConfigError(f"OT_CWD is not a directory: {given}")
    raise ConfigError(f"the working directory does not exist: {cwd}", hint="set OT_CWD")


def _home() -> Path:
    """Return the user's home; an empty HOME counts as none, and the system's list of users is asked."""
    try:
        home = Path.home() if os.environ.get("HOME") != "" else _look_up_home()
    except (RuntimeError, KeyError):
        raise ConfigError("the home directory is not known", hint="set HOME") from None
    if not home.is_absolute():
        raise ConfigError(f"HOME is not an absolute path: {home}", hint="set HOME")
    return home


def _look_up_home() -> Path:
    import pwd  # noqa: PLC0415 - not on Windows, where HOME means nothing

    return Path(pwd.getpwuid(os.getuid()).pw_dir)


def _unusable(directory: Path) -> str:
    """Return why *directory* is not used: what it holds could change hands without the user's doing."""
    found = directory.lstat()
    if stat.S_ISLNK(found.st_mode):
        return f"{directory} is a symbolic link and is not used"
    if not stat.S_ISDIR(found.st_mode):
        return f"{directory} is not a directory and is not used"
    if os.name == "posix" and found.st_uid != os.getuid():
        return f"{directory} belongs to another user and is not used"
    return ""

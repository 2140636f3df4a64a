"""WorkspaceDirectories: where each principal of a team's server works, and where its own secrets are."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from onetool_team.disk_room import DiskRoom
from onetool_team.settings import People
from ot.config.paths import SECRETS_FILE, Paths, expand_home
from ot.config.principal import Owner
from ot.errors import ConfigError
from ot.files.no_links import make_private, open_directory
from ot.workers.spool_directories import SpoolDirectories

logger = logging.getLogger(__name__)

PEOPLE = "people"
"""Where the operator puts principals' own secrets, below the directory of the configuration."""
OTHERS_WRITE, OTHERS = 0o022, 0o077
MAX_SLUG = 40
DIGITS = 16


def directory_name(principal: str) -> str:
    """Return a name for *principal*'s directory that people can read and no other principal has."""
    subject = principal.rpartition("|")[2]
    slug = re.sub(r"[^a-z0-9]+", "-", subject.lower())[:MAX_SLUG].strip("-") or "principal"
    return f"{slug}-{hashlib.sha256(principal.encode()).hexdigest()[:DIGITS]}"


class WorkspaceDirectories:
    """Makes the directory of each principal. Every method may block: call it in a thread.

    A principal's directory is never a project: what lies in it is data, and brings neither servers nor packs nor
    settings into the operator's process.
    """

    def __init__(self, settings: People, paths: Paths) -> None:
        """Check what the operator said.

        Raises:
            ConfigError: One of the directories cannot be used.
        """
        self._paths = paths
        self._disk_bytes = settings.disk_bytes
        self._lasting = _lasting(settings.each) if settings.each else None
        self._passing = SpoolDirectories(_state_directory(paths.environ) / "workspaces")
        self.shared = tuple(_check_shared(given) for given in settings.shared)
        _require_apart(self.shared, [*([self._lasting] if self._lasting else []), Path(paths.global_dir)])

    def of_operator(self) -> Paths:
        """Return where the operator's own workspace is: an empty directory, never that of the process.

        Raises:
            ConfigError: It cannot be made.
        """
        try:
            return self._at(self._passing.new("operator"))
        except OSError as error:
            hint = "set XDG_STATE_HOME to a directory that this user can write to"
            raise ConfigError(f"no directory can be made for the operator's workspace: {error}", hint=hint) from None

    def of(self, principal: str) -> tuple[Paths, Owner]:
        """Return where *principal* works, with the directory made, and what this one alone has.

        Raises:
            OSError: The directory cannot be made, or is not safe to use.
        """
        name = directory_name(principal)
        cwd = _make_private(self._lasting, name) if self._lasting else self._passing.new(name)
        secrets = self._paths.global_dir / PEOPLE / name
        with suppress(OSError):  # a configuration that nobody may write
            make_private(secrets)
        logger.info("%s works in %s; own secrets are read from %s", principal, cwd, secrets / SECRETS_FILE)
        room = DiskRoom(cwd, self._disk_bytes)
        return self._at(cwd), Owner(principal, secrets / SECRETS_FILE, self.shared, room.take)

    def release(self, cwd: Path) -> None:
        """Remove the directory *cwd* of a principal, if it was not one to last."""
        if not self._lasting:
            shutil.rmtree(cwd, ignore_errors=True)

    def close(self) -> None:
        """Remove all directories that were not to last."""
        self._passing.close()

    def _at(self, cwd: Path) -> Paths:
        # Not Paths.of(): that would take what lies there for a project.
        return replace(self._paths, cwd=cwd, project_dir=None, ignored="")


def _lasting(given: str) -> Path:
    """Return the real directory in which everyone has one, made if it is not there."""
    path = expand_home(given)
    if not path.is_absolute():
        raise ConfigError(f"http.workspaces.each must be an absolute path: {given}")
    try:
        make_private(path)
        real = Path(os.path.realpath(path))
        found = real.stat()
    except OSError as error:
        raise ConfigError(f"http.workspaces.each cannot be used: {error}") from None
    if found.st_uid not in (0, os.getuid()) or found.st_mode & OTHERS_WRITE:
        raise ConfigError(
            f"http.workspaces.each: other users can write {real}",
            hint="run chmod go-w on it, or give another directory",
        )
    return real


def _check_shared(given: str) -> Path:
    path = expand_home(given)
    if not path.is_absolute() or not path.is_dir():
        raise ConfigError(f"http.workspaces.shared must name directories by their full path: {given}")
    return Path(os.path.realpath(path))


def _require_apart(shared: tuple[Path, ...], private: list[Path]) -> None:
    for one in shared:
        for other in (Path(os.path.realpath(path)) for path in private):
            if one.is_relative_to(other) or other.is_relative_to(one):
                raise ConfigError(f"http.workspaces.shared: {one} and {other} must not contain each other")


def _make_private(above: Path, name: str) -> Path:
    """Return the directory *name* in *above*, which only this user can enter; no link is followed.

    Raises:
        OSError: There is something else, or it belongs to another user.
    """
    fd = open_directory(above / name, below=above, make=True)
    try:
        found = os.fstat(fd)
        if found.st_uid != os.getuid():
            raise PermissionError(f"{above / name} belongs to another user")
        if found.st_mode & OTHERS:
            os.fchmod(fd, 0o700)
    finally:
        os.close(fd)
    return above / name


def _state_directory(environ: Mapping[str, str]) -> Path:
    """Return where programs of this user keep what need not last."""
    given = environ.get("XDG_STATE_HOME", "")
    return (Path(given) if given.startswith("/") else Path.home() / ".local" / "state") / "onetool"

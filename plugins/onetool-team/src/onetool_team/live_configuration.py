"""LiveConfiguration: the operator's configuration, read once per change for everybody; the last good one stays."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio.to_thread

from onetool_team.settings import Http
from ot.config.load import Loaded, UserFiles, installers_places, lead_into, load_config, read_user_files
from ot.config.paths import CONFIG_FILE, PROMPTS_FILE, Paths
from ot.config.principal import Owner
from ot.config.trust import Trust
from ot.errors import ConfigError, OneToolError
from ot.registry.freshness import Freshness

logger = logging.getLogger(__name__)

HASH_CHARS = 12
"""Enough to tell one state of the settings from another."""


class LastGood[T]:
    """What some files say: once they say nothing that can be used, what they said before."""

    def __init__(self, read: Callable[[], tuple[T, Sequence[Path]]]) -> None:
        """Keep what *read* returns, which also names the files.

        Raises:
            ConfigError: They cannot be used, and nothing was before.
        """
        self._read = read
        self._lock = threading.Lock()
        self.value, self._files = read()
        self._stamps = Freshness(self._files, {})
        self.trouble: OneToolError | None = None
        """Why the files are not used as they are now."""

    def is_stale(self) -> bool:
        """Return whether the files have changed, which costs a few microseconds."""
        return self._stamps.is_stale()

    def look(self, *, again: bool = False) -> None:
        """Read the files if they have changed, or *again* in any case; it may block."""
        with self._lock:
            if not again and not self.is_stale():
                return  # somebody else was quicker
            # Stamped before they are read: what changes meanwhile is noticed the next time.
            stamps = Freshness(self._files, {})
            try:
                value, files = self._read()
            except OneToolError as error:
                logger.error("the changed configuration cannot be used, and the one before stays: %s", error)
                self.trouble, self._stamps = error, stamps
                return
            self._stamps = stamps if files == self._files else Freshness(files, {})
            self.value, self._files, self.trouble = value, files, None


@dataclass(frozen=True, slots=True)
class UsedSettings:
    """What tells the settings in use from others, since when they are used, and why those on disk are not."""

    hash: str
    since: float
    why_not_newer: str = ""


@dataclass(frozen=True, slots=True)
class _Configuration:
    loaded: Loaded
    files: UserFiles
    is_for_all: bool
    """Whether it is the same for all who have no secrets of their own, and in whose directory none of *places* lies."""
    places: Sequence[str]
    """Where variables let installers look."""
    used: UsedSettings


class LiveConfiguration:
    """Reads the files when somebody asks and they have changed; errors in them are for the operator to see."""

    def __init__(self, paths: Paths) -> None:
        """Read the configuration in the user's directory of *paths*; no project has a say in it.

        Raises:
            ConfigError: It cannot be used.
        """
        # A picture of the environment: to look into the process's own takes ten times as long.
        self.paths = replace(paths, project_dir=None, ignored="", environ=dict(paths.environ))
        self._trust = Trust(paths.global_dir)
        self._used = UsedSettings("", 0)
        self._configuration = LastGood(self._read)
        self._others: list[LastGood[Any]] = []

    @property
    def loaded(self) -> Loaded:
        """The last good one, as the operator has it."""
        return self._configuration.value.loaded

    @property
    def settings(self) -> Http:
        """What it says of the server now."""
        return self.loaded.config.section(Http)

    @property
    def used(self) -> UsedSettings:
        """What its operator may know of the settings, secrets aside."""
        return replace(self._configuration.value.used, why_not_newer=str(self._error or ""))

    @property
    def _error(self) -> OneToolError | None:
        return next((one.trouble for one in (self._configuration, *self._others) if one.trouble), None)

    @property
    def trouble(self) -> str:
        """Which file is not used as it is now, for everyone to read; what is wrong in it only the log says."""
        error = self._error
        if error is None:
            return ""
        file, line = (error.file, error.line) if isinstance(error, ConfigError) else (None, None)
        place = f" ({file.name}{f':{line}' if line else ''})" if file else ""
        return f"the changed configuration cannot be used{place}: the one before stays, and the log says why"

    def watch(self, other: LastGood[Any]) -> None:
        """Look at *other* files, too, which the settings name."""
        self._others.append(other)

    async def refresh(self) -> None:
        """Take up what has changed on disk."""
        if any(one.is_stale() for one in (self._configuration, *self._others)):
            await anyio.to_thread.run_sync(self._look)

    def _look(self) -> None:
        before = self.settings
        self._configuration.look()
        for other in self._others:
            other.look(again=self.settings != before)

    def of(self, paths: Paths, owner: Owner) -> Loaded:
        """Return the last good configuration for *owner*, who works in *paths*; it may block.

        Raises:
            ConfigError: The owner's own secrets cannot be read.
        """
        known, own = self._configuration.value, owner.secrets_file
        if own is None:
            return known.loaded
        files = (*known.loaded.files, own)
        if known.is_for_all and not os.path.lexists(own) and not lead_into(known.places, paths.cwd):
            return replace(known.loaded, files=files, secret_files=(*known.loaded.secret_files, own))
        return replace(load_config(paths, self._trust, own_secrets=own, user_files=known.files), files=files)

    def load(self, paths: Paths, owner: Owner) -> Loaded:
        """Return the configuration as it is on disk now, for *owner*, who works in *paths*; it may block.

        Raises:
            ConfigError: It cannot be used.
        """
        self._look()
        if self._configuration.trouble:
            raise self._configuration.trouble.with_traceback(None)
        return self.of(paths, owner)

    def _read(self) -> tuple[_Configuration, Sequence[Path]]:
        read = read_user_files(self.paths)
        loaded = load_config(self.paths, self._trust, user_files=read)
        # As they are written: what stands for a secret, and never one.
        written = json.dumps(read.layer.node.plain(), sort_keys=True, default=str)
        named = hashlib.sha256(written.encode()).hexdigest()[:HASH_CHARS]
        if named != self._used.hash:
            self._used = UsedSettings(named, time.time())
        servers = read.layer.node.at("servers").entries.values()
        elsewhere = any(server.get("only_in") for server in servers)
        places = [place for found in installers_places(self.paths.environ).values() for place in found]
        home = self.paths.global_dir
        # With those that are not there yet: whoever has an open workspace uses them at once, too.
        files = tuple(dict.fromkeys((home / CONFIG_FILE, home / PROMPTS_FILE, read.secrets_file, *loaded.files)))
        return _Configuration(replace(loaded, files=files), read, not elsewhere, places, self._used), files

"""WorkerSpec: everything that makes one pack's worker what it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ot.config.models import Config, PackWorker
from ot.config.principal import Owner
from ot.config.secrets import Secrets
from ot.errors import ToolUnavailable
from ot.processes.child_environ import uv_environ, worker_environ
from ot.registry.extension_source import Extension
from ot.workers.pack_directory import content_hash
from ot_sdk.redaction import Redactor

HELPER_IDLE_SECONDS = 60.0
HELPER_MEMORY_MB = 1024
"""Megabytes of address space, of which the interpreter with its libraries takes about 150."""


@dataclass(frozen=True)
class WorkerSpec:
    """A pack's files as they were read, its settings, secrets and environment; when one differs, so does the worker."""

    pack: str
    files: Mapping[str, bytes] = field(repr=False)
    main: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    processes: int = 1
    serial: bool = False
    idle_seconds: float = 600.0
    start_seconds: float = 20.0
    install_seconds: float = 120.0
    memory_mb: int = 0
    state: str = ""
    """What tells its files from others without reading them, of a bundled pack."""
    environ: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """All environment variables of its process."""
    principal: str = ""
    """Whose calls it carries out: others neither wait for these nor end with them. Empty: everybody's."""
    directory: Path | None = None
    """Where its file is found, of the server's own code, which runs on the server's interpreter and packages."""
    install_environ: Mapping[str, str] | None = field(default=None, repr=False, compare=False)
    """What uv may see when it installs the pack; None: what the server was started with."""

    @cached_property
    def redactor(self) -> Redactor:
        """What takes its secrets out of what its process says on the way past its own redaction."""
        return Redactor(self.secrets)

    @cached_property
    def key(self) -> str:
        """What tells this worker from every other one."""
        content = [self.pack, self.state or content_hash(self.files, self.main), self.serial, self.memory_mb]
        parts = [self.principal, *content, dict(self.settings), dict(self.secrets), dict(self.environ)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def specs_of(extensions: Iterable[Extension], config: Config, secrets: Secrets, owner: Owner) -> dict[str, WorkerSpec]:
    """Return the specs of the workers of *extensions* for *owner*, by pack: files, settings, and secrets it may have.

    The user's own packs have the secrets that they declare. A project's packs have those that the project brought,
    and of the user's only those that the user's configuration grants them.
    """
    workers = config.workers
    environ, install_environ = worker_environ(secrets.environment), uv_environ(secrets.environment)

    def spec_of(extension: Extension) -> WorkerSpec:
        own = workers.packs.get(extension.name, PackWorker())
        return WorkerSpec(
            pack=extension.name,
            files=extension.files,
            main=extension.main,
            settings=config.tools.get(extension.name, {}),
            secrets=_grant(extension, own, secrets),
            processes=own.processes,
            serial=own.serial,
            idle_seconds=own.idle_seconds or workers.idle_seconds,
            start_seconds=workers.start_seconds,
            install_seconds=workers.install_seconds,
            memory_mb=own.memory_mb,
            state=extension.state,
            environ=environ,
            principal="" if owner.is_user else owner.principal,
            install_environ=install_environ,
        )

    return {extension.name: spec_of(extension) for extension in extensions}


def helper_spec(main: Path, environ: Mapping[str, str], processes: int) -> WorkerSpec:
    """Return the spec of the helpers that carry out heavy calls of bundled packs, with the file *main*."""
    return WorkerSpec(
        pack="helper",
        files={},
        main=f"{main.parent.name}/{main.name}",
        processes=processes,
        serial=True,
        idle_seconds=HELPER_IDLE_SECONDS,
        memory_mb=HELPER_MEMORY_MB,
        state=str(main),
        environ=worker_environ(environ),
        directory=main.parents[1],
    )


def _grant(extension: Extension, own: PackWorker, secrets: Secrets) -> dict[str, str]:
    try:
        declared = extension.secrets
    except ToolUnavailable:
        return {}
    brought: Mapping[str, str] = secrets.project if extension.of_project else {}
    granted = own.secrets if extension.of_project else declared
    found = {name: brought.get(name) or (secrets.get(name) if name in granted else None) for name in declared}
    return {name: value for name, value in found.items() if value is not None}

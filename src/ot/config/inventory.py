"""What a project's .onetool directory would run, found without running any of it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ot.config.document import Node, Place
from ot.config.layer import Layer, read_layer
from ot.config.paths import CONFIG_FILE, SECRETS_FILE
from ot.config.project_rules import secrets_file_of
from ot.config.secrets import secrets_in
from ot.config.shown import leaves
from ot.config.snapshot import Snapshot, take_snapshot
from ot.errors import ConfigError

PACK = re.compile(r"tools/(?P<pack>[^/]+)/(?P=pack)_tools\.py")
NAMED = ("servers", "snippets")
"""Sections that are listed by the names in them."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """One reading of a directory: what would run, the hash of every file, and why it cannot be trusted."""

    snapshot: Snapshot
    packs: Mapping[str, str]
    code: tuple[str, ...]
    servers: Mapping[str, Mapping[str, Any]]
    snippets: Mapping[str, Mapping[str, str]]
    settings: Mapping[str, str]
    secrets_file: str
    secrets: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def root(self) -> Path:
        """The .onetool directory."""
        return self.snapshot.root

    @property
    def hashes(self) -> Mapping[str, str]:
        """The SHA-256 of every file that counts, by its path in the directory."""
        return self.snapshot.hashes


def take_inventory(project_dir: Path) -> Inventory:
    """Return what *project_dir* would run; nothing in it is imported or started."""
    return inventory_of(take_snapshot(project_dir, of_project=True))


def inventory_of(snapshot: Snapshot) -> Inventory:
    """Return what the files of *snapshot* would run."""
    layer, problems = _layer(snapshot)
    settings: dict[str, Any] = layer.node.plain()
    packs = {found["pack"]: name for name in snapshot.hashes if (found := PACK.fullmatch(name))}
    secrets_file = _name_of(secrets_file_of(layer, snapshot.root), snapshot.root)
    return Inventory(
        snapshot=snapshot,
        packs=packs,
        code=tuple(name for name in snapshot.hashes if _is_code(name) and name not in packs.values()),
        servers=settings.get("servers", {}),
        snippets={name: dict(leaves(entry)) for name, entry in settings.get("snippets", {}).items()},
        settings=dict(leaves({key: value for key, value in settings.items() if key not in NAMED})),
        secrets_file=secrets_file,
        secrets=_names_of_secrets(snapshot, secrets_file),
        problems=(*snapshot.problems, *problems),
    )


def _layer(snapshot: Snapshot) -> tuple[Layer, tuple[str, ...]]:
    try:
        return read_layer(snapshot), ()
    except ConfigError as error:
        return Layer(Node(Place(snapshot.root / CONFIG_FILE), {}), ()), (str(error),)


def _is_code(name: str) -> bool:
    return name.endswith((".py", ".pyc", ".pyd", ".so", ".sh"))


def _name_of(file: Path, root: Path) -> str:
    top = Path(os.path.normpath(root))
    return file.relative_to(top).as_posix() if file.is_relative_to(top) else SECRETS_FILE


def _names_of_secrets(snapshot: Snapshot, name: str) -> tuple[str, ...]:
    try:
        return tuple(sorted(secrets_in(snapshot.read(name) or b"", snapshot.root / name)[0]))
    except ConfigError:
        return ()  # the configuration is loaded before it is trusted, and says so there

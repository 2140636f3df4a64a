"""What a project's .onetool directory would run, found without running any of it, and as a person is shown it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ot.config.document import Location, Node
from ot.config.layer import Layer, read_layer
from ot.config.paths import CONFIG_FILE, SECRETS_FILE
from ot.config.project_rules import secrets_file_of
from ot.config.secrets import secrets_in
from ot.config.snapshot import Snapshot, take_snapshot
from ot.errors import ConfigError
from ot.visible_text import printable

PACK = re.compile(r"tools/(?P<pack>[^/]+)/(?P=pack)_tools\.py")
CODE = (".py", ".pyc", ".pyd", ".so", ".sh")
NAMED = ("servers", "snippets")
"""Sections that are listed by the names in them."""

BLANKS = re.compile(r"[\s\u115f\u1160\u2800\u3164\uffa0]{9,}")
"""Long runs of what looks like nothing push the rest out of sight; some of it counts as letters."""


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
        code=tuple(name for name in snapshot.hashes if name.endswith(CODE) and name not in packs.values()),
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
        return Layer(Node(Location(snapshot.root / CONFIG_FILE), {}), ()), (str(error),)


def _name_of(file: Path, root: Path) -> str:
    top = Path(os.path.normpath(root))
    return file.relative_to(top).as_posix() if file.is_relative_to(top) else SECRETS_FILE


def _names_of_secrets(snapshot: Snapshot, name: str) -> tuple[str, ...]:
    try:
        return tuple(sorted(secrets_in(snapshot.read(name) or b"", snapshot.root / name)[0]))
    except ConfigError:
        return ()  # the configuration is loaded before it is trusted, and says so there


# ---------------------------------------------------------------- as a person is shown it


def flatten(text: str) -> str:
    """Return *text* on one line, whole; long runs of blanks are counted instead."""
    return printable(BLANKS.sub(_count_blanks, text))


def leaves(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield every text in *value*, plain data, under its path of keys."""
    below: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        below = [(str(key), entry) for key, entry in cast("Mapping[Any, Any]", value).items()]
    elif isinstance(value, list | tuple):
        below = [(str(number), entry) for number, entry in enumerate(cast("list[Any]", value))]
    for key, entry in below:
        yield from leaves(entry, (*above, key))
    if above and not below:
        yield ".".join(above), _text(value)


def server_words(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return a server's settings by name, what would be started or reached first."""
    args = entry.get("args")
    words = [entry.get("command"), *(cast("list[Any]", args) if isinstance(args, list | tuple) else [])]
    line = shlex.join(str(word) for word in words if word is not None)
    first = {"runs": line} if line else {}
    return first | dict(leaves({key: value for key, value in entry.items() if key not in ("command", "args")}))


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: ""}[value]
    return str(value) if not isinstance(value, Mapping | list | tuple) else ""


def _count_blanks(blanks: re.Match[str]) -> str:
    lines = blanks[0].count("\n")
    return f"[{len(blanks[0])} blanks{f', {lines} line ends' if lines else ''}]"

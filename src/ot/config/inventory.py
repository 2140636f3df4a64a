"""What a project's .onetool directory would run, found without running any of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ot.config.document import Node, Place
from ot.config.layer import read_layer
from ot.config.paths import CONFIG_FILE
from ot.config.snapshot import Snapshot, printable, take_snapshot
from ot.errors import ConfigError

PACK = re.compile(r"tools/(?P<pack>[^/]+)/(?P=pack)_tools\.py")
NAMED = ("servers", "snippets")
"""Sections that are listed by the names in them."""

WIDTH = 100
LONGEST = 10_000
"""What would be started is shown whole: the end of a long command line is where one would hide something."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """One reading of a directory: what would run, the hash of every file, and why it cannot be trusted."""

    snapshot: Snapshot
    packs: Mapping[str, str]
    code: tuple[str, ...]
    servers: Mapping[str, str]
    snippets: Mapping[str, str]
    settings: Mapping[str, str]
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
    snapshot = take_snapshot(project_dir, of_project=True)
    node, problems = _settings(snapshot)
    packs = {found["pack"]: name for name in snapshot.hashes if (found := PACK.fullmatch(name))}
    return Inventory(
        snapshot=snapshot,
        packs=packs,
        code=tuple(name for name in snapshot.hashes if _is_code(name) and name not in packs.values()),
        servers=dict(_servers(node)),
        snippets=dict(_named(node, "snippets")),
        settings=dict(_leaves(node)),
        problems=(*snapshot.problems, *problems),
    )


def render_inventory(inventory: Inventory) -> list[str]:
    """Return *inventory* as lines for a person; no name in it can steer the terminal."""
    hashes = {name: f"sha256 {value[:16]}" for name, value in inventory.hashes.items()}
    return [
        printable(str(inventory.root)),
        *_section("packs", inventory.packs),
        *_section("other code", dict.fromkeys(inventory.code, "")),
        *_section("servers", inventory.servers, width=LONGEST),
        *_section("snippets", inventory.snippets),
        *_section("settings", inventory.settings),
        *_section("files", hashes),
        *(_section("cannot be trusted", dict.fromkeys(inventory.problems, "")) if inventory.problems else ()),
    ]


def _section(title: str, entries: Mapping[str, str], width: int = WIDTH) -> Iterator[str]:
    yield f"{title} ({len(entries)})"
    for name, text in entries.items():
        yield f"  {printable(name)}" + (f"  {_cut(printable(text), width)}" if text else "")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[:width]}..."


def _settings(snapshot: Snapshot) -> tuple[Node, tuple[str, ...]]:
    try:
        return read_layer(snapshot).node, ()
    except ConfigError as error:
        return Node(Place(snapshot.root / CONFIG_FILE), {}), (str(error),)


def _is_code(name: str) -> bool:
    return name.endswith((".py", ".pyc", ".pyd", ".so", ".sh"))


def _named(node: Node, section: str) -> Iterator[tuple[str, str]]:
    named = node.get(section)
    for name, entry in named.entries.items() if named else ():
        yield name, "; ".join(f"{key}: {text}" for key, text in _flat(entry, ()))


def _servers(node: Node) -> Iterator[tuple[str, str]]:
    """Yield each server with what would be started or reached first."""
    named = node.get("servers")
    for name, entry in named.entries.items() if named else ():
        rest = [
            f"{key}: {text}" for key, text in _flat(entry, ()) if key.split(".")[0] not in ("command", "args", "url")
        ]
        yield name, "; ".join([_endpoint(entry), *rest])


def _endpoint(entry: Node) -> str:
    command, args, url = entry.get("command"), entry.get("args"), entry.get("url")
    words = [*([command] if command else ()), *(args.items if args else ())]
    return " ".join([*([url.text] if url else ()), shlex.join(word.text for word in words)]).strip()


def _leaves(node: Node) -> Iterator[tuple[str, str]]:
    for key, entry in node.entries.items():
        if key not in NAMED:
            yield from _flat(entry, (key,))


def _flat(node: Node, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    below: Iterable[tuple[str, Node]] = node.entries.items() or [(str(n), item) for n, item in enumerate(node.items)]
    for key, entry in below:
        yield from _flat(entry, (*above, key))
    if not below:
        yield ".".join(above), node.text

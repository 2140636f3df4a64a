"""What `onetool trust` shows before it asks: all that a project would run, or what has changed in it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

from ot.config.inventory import Inventory, flatten, inventory_of, server_words
from ot.config.trust import Before
from ot.config.workspace_trust import changes

if TYPE_CHECKING:
    from ot.config.models import Config

FETCHERS = frozenset({"npx", "bunx", "uvx", "pipx", "pnpm", "yarn", "npm", "uv", "bun", "docker", "podman"})
"""Programs that fetch what they start."""
VERBS = frozenset({"run", "exec", "dlx", "x", "tool"})
NAMES_PACKAGE = frozenset({"-p", "--package", "--from", "--with", "--spec"})
TITLES = {"code": "other code", "problems": "cannot be trusted"}
MAX_LINES = 5_000
MAX_DIFF = 2_000
POWER = (
    "A trusted project's packs and servers are programs that run as you, outside the sandbox:",
    "they can read what you can read, ~/.onetool/secrets.yaml too, and change ~/.onetool/trust.json.",
)


@dataclass(frozen=True, slots=True)
class Known:
    """What is there without the project: the user's own settings, and every pack with whose it is."""

    config: Config
    packs: Mapping[str, str]


def screen_of(inventory: Inventory, known: Known) -> dict[str, Any]:
    """Return the trust screen as plain data: sections, each with its entries by name."""
    screen: dict[str, Any] = {
        "packs": {name: _pack(inventory, name, file, known) for name, file in inventory.packs.items()},
        "code": list(inventory.code),
        "servers": {name: _server(name, entry, known) for name, entry in inventory.servers.items()},
        "snippets": {
            name: {**words, **_replaces(name in known.config.snippets, f"your snippet '{name}'")}
            for name, words in inventory.snippets.items()
        },
        "settings": dict(inventory.settings),
        "replaces": list(_settings_replaced(inventory, known)),
        "secrets": {inventory.secrets_file: list(inventory.secrets)} if inventory.secrets else {},
        "files": dict(inventory.hashes),
        "problems": list(inventory.problems),
    }
    return {title: entries for title, entries in screen.items() if entries or title not in ("replaces", "problems")}


def lines_of(screen: Mapping[str, Any]) -> list[str]:
    """Return *screen* as lines for a person; nothing in it is cut, and nothing can steer the terminal."""
    lines = [line for title, entries in screen.items() for line in _section(title, entries)]
    return [*lines, *(POWER if screen.get("packs") or screen.get("servers") else ())]


def changes_of(inventory: Inventory, before: Before, known: Known) -> dict[str, Any]:
    """Return the changes since it was trusted: files, and unified diffs of what would run and of their texts."""
    old, texts = before.snapshot, before.snapshot.contents
    changed = [name for name, found in inventory.hashes.items() if old.hashes.get(name) != found]
    kept = {name: texts.get(name, b"" if name not in old.hashes else None) for name in changed}
    found: dict[str, Any] = {
        "trusted": before.time,
        "changes": list(changes(old.hashes, inventory.hashes)),
        "diff": _screen_diff(inventory, before, known),
        "files": {
            name: _diff(data, inventory.snapshot.contents.get(name))
            for name, data in kept.items()
            if name != inventory.secrets_file
        },
    }
    return found


def lines_of_changes(changes: Mapping[str, Any]) -> list[str]:
    """Return *changes* as lines for a person."""
    diffs = [f"  {line}" for line in changes["diff"] or ()]
    lines = [f"trusted {changes['trusted']}, and {'changed' if changes['changes'] else 'unchanged'} since"]
    lines += [f"  {flatten(change)}" for change in changes["changes"]]
    lines += ["what would run", *(diffs or ["  as before"])]
    for name, diff in changes["files"].items():
        lines += [flatten(name), *(f"  {line}" for line in diff)]
    return [*lines, *POWER]


def _section(title: str, entries: Any) -> Iterator[str]:
    yield f"{TITLES.get(title, title)} ({len(entries)})"
    if isinstance(entries, list):
        yield from (f"  {flatten(str(entry))}" for entry in cast("list[Any]", entries))
        return
    for name, entry in cast("Mapping[str, Any]", entries).items():
        if title == "files":
            yield f"  {flatten(name)}  sha256 {entry[:16]}"
        elif title == "secrets":
            yield f"  {flatten(name)}  values are not shown: {', '.join(entry)}"
        elif isinstance(entry, str):
            yield f"  {flatten(name)}  {flatten(entry)}".rstrip()
        else:
            yield from _entry(name, entry)


def _entry(name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    file = entry.get("file")
    yield f"  {flatten(name)}" + (f"  {flatten(str(file))}" if file else "")
    for key, value in entry.items():
        for text in cast("list[str]", value) if isinstance(value, list) else [str(value)]:
            yield from () if key == "file" else (f"    {flatten(key)}: {flatten(text)}",)


def _pack(inventory: Inventory, name: str, file: str, known: Known) -> dict[str, Any]:
    from ot.registry.pep723 import script_metadata, script_problem

    text = inventory.snapshot.contents.get(file, b"").decode(errors="replace")
    metadata = script_metadata(text)
    words: dict[str, Any] = {"file": file}
    if metadata is None:
        words["problem"] = script_problem(text)
    elif metadata.dependencies:
        words["installs"] = list(metadata.dependencies)
    if metadata and metadata.needs_consent:
        words["installs from"] = "sources other than your own package index: see its file"
    return words | _replaces(name in known.packs, f"{known.packs.get(name, '')} '{name}'")


def _server(name: str, entry: Mapping[str, Any], known: Known) -> dict[str, Any]:
    words: dict[str, Any] = dict(server_words(entry))
    if fetched := list(_list_packages(entry)):
        words["installs"] = fetched
    own = f"your server '{name}', and what your policy allows it"
    return words | _replaces(name in known.config.servers, own)


def _list_packages(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the packages that a launcher would fetch, as far as its command line says."""
    program, given = PurePath(str(entry.get("command", ""))).stem, entry.get("args")
    words = [str(word) for word in cast("list[Any]", given)] if isinstance(given, list | tuple) else []
    if program not in FETCHERS:
        return
    named = False
    for number, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag in NAMES_PACKAGE:
            named = named or flag != "--with"
            yield value if equals else "".join(words[number + 1 : number + 2])
    after = [number + 1 for number, word in enumerate(words) if word in NAMES_PACKAGE]
    plain = [word for number, word in enumerate(words) if word[:1] != "-" and word not in VERBS and number not in after]
    if plain and not named:
        yield plain[0]


def _replaces(is_there: bool, what: str) -> dict[str, str]:
    return {"replaces": what} if is_there else {}


def _settings_replaced(inventory: Inventory, known: Known) -> Iterator[str]:
    """Yield the settings by which the project reaches into what is not its own."""
    for key in inventory.settings:
        section, _, rest = key.partition(".")
        name = rest.partition(".")[0]
        if section == "aliases" and name in known.config.aliases:
            yield f"your alias '{name}', which is {known.config.aliases[name]}"
        elif section == "projects" and name in known.config.projects and key.endswith(".path"):
            yield f"your project '{name}'"
        elif section == "tools" and name in known.packs and name not in inventory.packs:
            yield f"{key}, a setting of {known.packs[name]} '{name}'"


def _screen_diff(inventory: Inventory, before: Before, known: Known) -> list[str] | None:
    """Return the diff of what would run; nothing unless all old texts are known."""
    old = inventory_of(before.snapshot)
    if old.problems:
        return None
    if before.snapshot.hashes.get(inventory.secrets_file) == inventory.hashes.get(inventory.secrets_file):
        old = replace(old, secrets=inventory.secrets)
    screens = [screen_of(each, known) for each in (old, inventory)]
    for screen in screens:
        del screen["files"]  # their differences are shown apart
    return _difference(*map(lines_of, screens))


def _diff(old: bytes | None, new: bytes | None) -> list[str]:
    if old is None or new is None:
        return ["its text is not kept, or too large: look at the file"]
    try:
        one, other = old.decode().split("\n"), new.decode().split("\n")
    except UnicodeDecodeError:
        return ["it is not text: look at the file"]
    if max(len(one), len(other)) > MAX_LINES:
        return [f"it has more than {MAX_LINES:,} lines: look at the file"]
    return _difference(one, other)


def _difference(old: Sequence[str], new: Sequence[str]) -> list[str]:
    lines = [line.rstrip("\n") for line in difflib.unified_diff(old, new, n=1, lineterm="")][2:]
    rest = [f"and {len(lines) - MAX_DIFF:,} more lines: look at the file"] if len(lines) > MAX_DIFF else []
    return [*map(flatten, lines[:MAX_DIFF]), *rest]

"""Every command of ``onetool`` under its group. ``--help`` is written from this, so it imports nothing but hooks."""

from __future__ import annotations

import sys

from ot import hooks

type Row = tuple[str, str, str, str]

SUMMARY = "One MCP server, one tool: a model's program calls packs of tools, contained."

OURS, DATA = __package__ or "ot.cli", "commands.ini"
"""The package of our own commands, and the file in it, or in a plugin's, that has the rows."""

EVERYDAY = frozenset((
    "init", "connect", "serve", "run", "answer", "list", "search", "show", "add", "servers", "auth login", "allow",
    "trust", "doctor", "logs",
))  # fmt: skip
"""What ``onetool --help`` names; ``--all`` names the rest too."""


def all_commands() -> dict[str, tuple[Row, ...]]:
    """Return the rows by group, those of plugins below ours; a name that is taken is left out."""
    groups: dict[str, list[Row]] = {}
    known: set[str] = set()
    for package in _packages():
        for name, row in read_rows(package).items():
            if name not in known and "function" in row:
                known.add(name)
                shown = (name, row["function"], row.get("summary", ""), row.get("example", f"onetool {name}"))
                groups.setdefault(row.get("group", "More"), []).append(shown)
    return {group: tuple(rows) for group, rows in groups.items()}


def read_families() -> dict[str, str]:
    """Return what is said of the first word of commands that have two: rows that name no function."""
    rows = [row for package in _packages() for row in read_rows(package).items()]
    return {name: row["summary"] for name, row in rows if "function" not in row}


def _packages() -> list[str]:
    return [OURS, *(hook.module for hook in hooks.hooks(hooks.COMMANDS))]


def read_rows(package: str) -> dict[str, dict[str, str]]:
    """Return the rows that *package* has as data, found as an import would find it, but not imported."""
    for place in sys.path:
        try:
            with open(f"{place or '.'}/{package.replace('.', '/')}/{DATA}", encoding="utf-8") as file:  # noqa: PTH123 - pathlib's import takes longer than everything here
                return hooks.read_sections(file.read())
        except OSError:
            continue
    return {}

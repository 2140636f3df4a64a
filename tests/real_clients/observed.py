"""What was observed of each client, kept in a file that tests compare and that the table of the docs is made of.

RECORD=1 pytest tests/real_clients writes the file anew, and python tests/real_clients/observed.py the table.
"""

from __future__ import annotations

import json
import os
from operator import itemgetter
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("observed.json")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "clients.md"
BEGIN, END = "<!-- observed -->\n", "<!-- end -->\n"
HEADS = (
    "client",
    "version",
    "protocol",
    "the model's name for `run`",
    "progress",
    "images",
    "own dialogue",
    "without a person before it",
)
YES = {True: "yes", False: "no"}


def recorded() -> dict[str, dict[str, Any]]:
    """Return what was observed, by client and by part."""
    return json.loads(FILE.read_text())


def compare(client: str, part: str, seen: dict[str, Any]) -> None:
    """Compare what was *seen* of *client* with the file; with RECORD in the environment, write it there."""
    kept = recorded()
    if os.environ.get("RECORD"):
        kept.setdefault(client, {})[part] = seen
        FILE.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n")
    assert kept[client][part] == seen, f"{client}, {part}: {seen}"


def recorded_versions() -> dict[str, str]:
    """Return the version of each client that was observed."""
    return {name: seen["version"] for name, parts in recorded().items() for seen in parts.values()}


def table() -> str:
    """Return the table of the docs."""
    rows = [HEADS, ("---",) * len(HEADS), *(_row(name, parts) for name, parts in sorted(recorded().items()))]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(name: str, parts: dict[str, Any]) -> tuple[str, ...]:
    # A library is observed in each era of the protocol, an agent in the one that it chooses.
    tasks = [seen for part, seen in parts.items() if part != "dialogue"]
    tasks.sort(key=itemgetter("protocol"))
    seen = tasks[-1]
    declined = {"cancel": 'answers "cancel" at once, then ', "decline": 'answers "no" at once, then '}
    return (
        name,
        seen["version"],
        ", ".join(task["protocol"] for task in tasks),
        f"`{seen['tool']}`",
        YES[seen["progress"]],
        YES[bool(seen["image"])],
        YES["dialogue" in parts or "dialogue" in seen],
        "".join(declined[answer] for answer in seen["nobody there"][:1]) + "`onetool answer`"
        if "nobody there" in seen
        else "up to its program",
    )


def written(page: str) -> str:
    """Return *page* with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))

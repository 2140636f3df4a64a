"""Measures what real servers' tools cost a model before its first word: listed flat, and behind OneTool.

    python benchmarks/token_cost.py            prints the table of docs/reference/benchmarks.md
    python benchmarks/token_cost.py --write    puts it into the page

Every server of tests/real_servers/server_table.py is installed, started and asked for tools/list; OneTool is started
with all of them in its configuration and asked the same. Counted are the bytes of the answers' tools as compact JSON:
all that came over the wire, and of it what clients usually hand to a model (name, description and input schema, not
output schemas and annotations). Tokens are the latter's bytes / 4, an estimate: tokenizers and clients differ.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
START, END = "<!-- tokens -->\n", "<!-- end of tokens -->\n"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

from proxies import Wire  # noqa: E402 - the path comes first

from real_servers.catalogues import command_of, real_catalogues  # noqa: E402 - as above
from real_servers.server_table import REAL_SERVERS  # noqa: E402 - as above

HELP = "ot.help(query='{query}')"
WORDS = "create a pull request"
"""What a task that needs one tool looks up: the words, then the tool."""


def size(tools: Sequence[Any]) -> int:
    """Return how many bytes the definitions are."""
    return len(json.dumps(list(tools), ensure_ascii=False, separators=(",", ":")).encode())


def shown(tools: Sequence[Any]) -> int:
    """Return how many bytes of the definitions a model sees."""
    return size([{key: tool[key] for key in ("name", "description", "inputSchema") if key in tool} for tool in tools])


def tokens(count: int) -> str:
    """Return an estimate for that many bytes."""
    return f"{round(count / 4):,}"


def home_of_all(directory: Path) -> Path:
    """Return a home whose OneTool has all of the servers."""
    settings = {
        name: {"command": command[0], "args": command[1:], "env": dict(server.env), "cwd": str(directory)}
        for name, server in REAL_SERVERS.items()
        if (command := command_of(server, directory))
    }
    (directory / ".onetool").mkdir()
    (directory / ".onetool" / "onetool.yaml").write_text(json.dumps({"servers": settings}))
    return directory


def ours(directory: Path, count: int) -> tuple[list[Any], int, dict[str, int]]:
    """Return our tools/list, the bytes of our instructions, and of what a task reads to find one tool of *count*."""
    home = home_of_all(directory)
    wire = Wire([str(Path(sys.executable).with_name("onetool")), "serve"], home)
    listed = wire.request("tools/list", {})["tools"]
    greeting = str(wire.greeting.get("instructions", ""))
    # Named, so that all are asked what they offer.
    known = "sum(pack['tool_count'] for pack in ot.packs() if pack['source'] == 'proxy')  # " + " ".join(REAL_SERVERS)
    assert int(wire.call("run", command=known)) >= count
    queries = (WORDS, "github.create_pull_request")
    asked = {query: len(wire.call("run", command=HELP.format(query=query)).encode()) for query in queries}
    wire.close()
    return listed, len(greeting.encode()), asked


def row(name: str, version: str, count: int, wire: int, model: int) -> str:
    """Return a line of the table."""
    return f"| {name} | {version} | {count} | {wire:,} | {model:,} | {tokens(model)} |"


def figures(catalogues: dict[str, list[Any]]) -> list[str]:
    """Return the table, and what it comes to."""
    count, all_of = sum(map(len, catalogues.values())), f"all {len(catalogues)}"
    with tempfile.TemporaryDirectory() as temporary:
        listed, instructions, asked = ours(Path(temporary), count)
    lines = [
        "| server | version | tools | bytes of `tools/list` | shown to a model | tokens |",
        "|---|---|---|---|---|---|",
    ]
    for name, tools in sorted(catalogues.items(), key=lambda item: -shown(item[1])):
        server = REAL_SERVERS[name]
        lines.append(row(f"`{server.package}`", server.version, len(tools), size(tools), shown(tools)))
    flat = sum(shown(tools) for tools in catalogues.values())
    lines.append(row(f"**{all_of}, flat**", "", count, sum(map(size, catalogues.values())), flat))
    fixed = shown(listed) + instructions
    lines.append(row(f"**OneTool with {all_of}**, its instructions too", "", 1, size(listed) + instructions, fixed))
    lines += ["", f"Flat is {flat / fixed:.0f} times as much. What a program then looks up comes on top:", ""]
    return lines + [
        f"- `{HELP.format(query=query)}` answers with {found:,} bytes, about {tokens(found)} tokens"
        for query, found in asked.items()
    ]


def main() -> None:
    """Print the table, or put it into the page."""
    text = "\n".join(figures(asyncio.run(real_catalogues())))
    if "--write" not in sys.argv[1:]:
        print(text)
        return
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(f"{head}{START}\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()

"""What a model reads of the one tool: which tools there are, and how they are called and combined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from ot.errors import ToolUnavailable
from ot.registry.tool import Tool
from ot.registry.tool_registry import Pack

MAX_NAMES = 40
FIRST_NAMES = 8
"""So many packs of each source are named when there are more than can be."""
ROOM = 1_230
"""Characters for the tools of packs; the bundled ones with what they require take about 1,200."""
EVERYDAY = ("file", "git", "data", "documents", "web", "memory", "rg", "code")
"""What their tools require is said before that of others."""

VERY_MANY = 40
"""A pack with more tools than this is named alone."""

BUNDLED_TOOLS = Path(__file__).with_name("bundled_tools.txt")
"""Written by docs/make_pack_pages.py: to read the packs themselves takes as long as half a start."""
GUIDE = "mcp_guide.pack:TOOLS"

COMMAND = "The program, unfenced."
SESSION = "Runs of one name share variables."

DESCRIPTION = """\
Run a Python program that calls tools. Result: the last expression or return, and prints.
Call pack.tool(name=value) at once: a wrong call runs nothing and answers with the signatures. \
Results are plain dicts, lists and texts. Tools, with what they require:
{tools}
For what cannot be guessed:
  ot.help(query="words of the task")
  ot.help(query="git.log")
Gather in parallel, return little:
  import asyncio
  texts = await asyncio.gather(*[file.read(path=p) for p in file.glob(pattern="*.txt")])
  return [text.count("TODO") for text in texts]
A large result is stored:
  ot.result(handle="...", offset=1, limit=100, search="regex")
PermissionError: not allowed here; tell the user.
Long work: ot.background(command="...")
ot.show(x) shows an image. __format__ = "json"|"json_h"|"yml"|"yml_h"|"raw" sets output.
"""
SANDBOX = {
    "portable": """\
Sandboxed: open() and pathlib reach the workspace; network, processes, environment only through tools. \
Modules: asyncio base64 bisect collections copy csv dataclasses datetime decimal functools hashlib itertools json \
math os pathlib random re time tomllib. Not available: yield, del, inheritance, other modules.""",
    "exact": """\
Full Python and its standard library, no other packages. Sandboxed: open() and pathlib reach the workspace; network, \
processes, environment only through tools.""",
    "trusted": "Full Python with its standard library, not sandboxed.",
}
"""What is true of each engine."""


def run_description(packs: Mapping[str, Pack], engine: str = "") -> str:
    """Return the description of ``run``: the same text as long as there are the same packs with the same tools."""
    return DESCRIPTION.format(tools=tool_lines(packs)) + SANDBOX.get(engine, "")


def tool_lines(packs: Mapping[str, Pack]) -> str:
    """Return a line for each pack: its tools, and what they require, as far as the room goes; else its name.

    Names come before parameters, the packs of every day before other bundled ones, these before the user's own, and
    servers last.
    """
    packs = {name: pack for name, pack in packs.items() if name != "ot"}  # the text around shows what a task needs
    order = sorted(packs, key=lambda name: (not packs[name].bundled, packs[name].source == "proxy", name))
    order.sort(key=lambda name: EVERYDAY.index(name) if name in EVERYDAY else len(EVERYDAY))
    whole = {name: line for name in order if (line := _line(packs[name]))}
    lines: dict[str, str] = {}
    room = ROOM
    for forms in ({name: _without_parameters(line) for name, line in whole.items()}, whole):
        for name, line in forms.items():
            more = len(line) - len(lines.get(name, ""))
            if more <= room and (name in lines or forms is not whole):
                lines[name] = line
                room -= more
    others = {name: pack for name, pack in packs.items() if name not in lines}
    named = [lines[name] for name in sorted(lines)]
    return "\n".join([*named, f"Other packs: {pack_names(others)}"] if others else named)


def _without_parameters(line: str) -> str:
    return " ".join(word.partition("(")[0] for word in line.split(" "))


def _line(pack: Pack) -> str:
    if (pack.bundled or pack.origin == GUIDE) and (line := _bundled_lines().get(pack.name)):
        return line
    tools = _known_tools(pack)
    return f"{pack.name}: {brief_tools(tools)}" if 0 < len(tools) <= VERY_MANY else ""


@cache
def _bundled_lines() -> Mapping[str, str]:
    lines = BUNDLED_TOOLS.read_text(encoding="utf-8").splitlines()
    return {line.partition(":")[0]: line for line in lines}


def brief_tools(tools: Iterable[Tool]) -> str:
    """Return the names of *tools*, each with the parameters that a call must give."""
    required = ((tool.name, ",".join(each.name for each in tool.parameters if each.required)) for tool in tools)
    return " ".join(f"{name}({names})" if names else name for name, names in required)


def _known_tools(pack: Pack) -> list[Tool]:
    """Return the tools of *pack*; none if they are not known yet, cannot be read, or would have to be imported."""
    if pack.pending or pack.imported:
        return []
    try:
        return list(pack.tools.values())
    except ToolUnavailable:
        return []


def pack_names(packs: Mapping[str, Pack]) -> str:
    """Return the names of *packs*; of very many, the first of each source and how many more there are."""
    if len(packs) <= MAX_NAMES:
        return ", ".join(sorted(packs))
    by_source: dict[str, list[str]] = {}
    for name in sorted(packs):
        by_source.setdefault(packs[name].source, []).append(name)
    shown = [_first(names) for _, names in sorted(by_source.items())]
    return f'{"; ".join(shown)}. All: ot.packs(info="list")'


def _first(names: list[str]) -> str:
    more = len(names) - FIRST_NAMES
    return ", ".join(names[:FIRST_NAMES]) + (f" and {more} more" if more > 0 else "")

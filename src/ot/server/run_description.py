"""What a model reads of the one tool: which tools there are, and how they are called and combined."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from ot.errors import ToolUnavailable
from ot.registry.tool import Tool
from ot.registry.tool_registry import Pack

MAX_NAMES = 40
FIRST_NAMES = 8
"""So many packs of each source are named when there are more than can be."""
ROOM = 1_370
"""Characters for the tools of packs; the bundled ones with what they require take about 1,300."""
EVERYDAY = ("file", "git", "data", "documents", "web", "memory", "rg", "code", "package")
"""Their tools are named before those of others."""
OFFERED = ("resources", "resource", "prompt")
"""What a server may have beside its own tools: help names it."""
MAX_OPTIONAL = 6
LITERAL = re.compile(r"Literal\[[^\[\]]*\]|dict\[[^\[\]{}]*\]")
PLAIN = re.compile(r": (?!list\[\{|\{)[^{},]*|\?|\blist(?=\[)| \| None")
"""What of a type says nothing about the fields of its objects."""
RECORD = re.compile(r":?\[?(\{[^{}]*\})\]?")
FIELDS = re.compile(r"[\w$\[\]{}:,-]{1,200}")
"""Names and brackets, and nothing that could be a sentence."""

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
Look at data and act on it in one program. \
Results are plain dicts, lists and texts. Tools, some with what they take and return:
{tools}
For what cannot be guessed:
  ot.help(query="words of the task")
  ot.help(query="git.log")
Gather in parallel, return little:
  texts = await asyncio.gather(*[file.read(path=p) for p in file.glob(pattern="*.txt")])
  return [text.count("TODO") for text in texts]
PermissionError: not allowed here; tell the user.
Long work: ot.background(command="...")
ot.show(x) shows an image.
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


type Forms = tuple[str, ...]
"""How a tool may be written: its name, with what it requires, also what it returns, and all that it takes."""


def tool_lines(packs: Mapping[str, Pack]) -> str:
    """Return a line for each pack: its tools, and what they take and return, as far as the room goes; else its name.

    First come the names of the tools of everyday packs, the user's own and servers, then what the latter two take and
    return: what a bundled tool requires is guessed more easily, and said last.
    """
    packs = {name: pack for name, pack in packs.items() if name != "ot"}  # the text around shows what a task needs
    order = sorted(packs, key=lambda name: (packs[name].source == "proxy", name))
    everyday = [name for name in EVERYDAY if name in packs and _is_bundled(packs[name])]
    own = [name for name in order if not _is_bundled(packs[name])]
    seldom = [name for name in order if name not in everyday and name not in own]
    shown = _ShownTools({name: found for name in order if (found := _forms(packs[name]))}, ROOM)
    shown.name(everyday)
    shown.name(own)
    for form in (1, 2, 3):
        shown.extend(own, form)
    shown.name(seldom)
    shown.extend([*everyday, *seldom], 1)
    unnamed = {name: pack for name, pack in packs.items() if name not in shown.lines}
    named = [f"{name}: {' '.join(tools.values())}" for name, tools in sorted(shown.lines.items())]
    return "\n".join([*named, f"Other packs: {pack_names(unnamed)}"] if unnamed else named)


class _ShownTools:
    """What is said of the tools of each pack, whose *forms* are known, in so much *room*."""

    def __init__(self, forms: Mapping[str, Mapping[str, Forms]], room: int) -> None:
        self.lines: dict[str, dict[str, str]] = {}
        self._forms = forms
        self._room = room

    def name(self, packs: Sequence[str]) -> None:
        """Name the tools of *packs*, of each all or none."""
        for pack in packs:
            names = {tool: tool for tool in self._forms.get(pack, ())}
            length = len(f"{pack}: {' '.join(names)}\n")
            if names and length <= self._room:
                self.lines[pack] = names
                self._room -= length

    def extend(self, packs: Sequence[str], form: int) -> None:
        """Write tools of *packs* that are named in a longer *form*, those first that need no arguments."""
        named = [(pack, tool) for pack in packs if pack in self.lines for tool in self.lines[pack]]
        for pack, tool in sorted(named, key=lambda at: self._forms[at[0]][at[1]][1] != at[1]):
            text = self._forms[pack][tool][form]
            more = len(text) - len(self.lines[pack][tool])
            if more <= self._room:
                self.lines[pack][tool] = text
                self._room -= more


def _is_bundled(pack: Pack) -> bool:
    return pack.bundled or pack.origin == GUIDE


def _forms(pack: Pack) -> dict[str, Forms]:
    if _is_bundled(pack) and (line := _read_bundled_lines().get(pack.name)):
        return {name: (name, word) for word in line.split(" ") if (name := word.partition("(")[0])}
    tools = [tool for tool in _list_known_tools(pack) if pack.source != "proxy" or tool.name not in OFFERED]
    if not 0 < len(tools) <= VERY_MANY:
        return {}
    seen: set[str] = set()
    calls = [(tool.name, _list_required(tool, seen), _optional(tool)) for tool in tools]
    results = [_result(tool, seen) for tool in tools]
    return {
        name: (name, call := _call(name, given), call + result, _call(name, [*given, *optional]) + result)
        for (name, given, optional), result in zip(calls, results, strict=True)
    }


@cache
def _read_bundled_lines() -> Mapping[str, str]:
    lines = BUNDLED_TOOLS.read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines)


def _call(name: str, given: Sequence[str]) -> str:
    return f"{name}({','.join(given)})" if given else name


def _list_required(tool: Tool, seen: set[str]) -> list[str]:
    required = [each for each in tool.parameters if each.required]
    return [each.name + (f":{fields}" if (fields := fields_of(each.annotation, seen)) else "") for each in required]


def _optional(tool: Tool) -> list[str]:
    optional = [f"{each.name}=" for each in tool.parameters if not each.required and each.kind in ("any", "keyword")]
    return optional[:MAX_OPTIONAL]


def _result(tool: Tool, seen: set[str]) -> str:
    if not tool.read_only and any(each.required for each in tool.parameters):
        return ""  # what it does matters more than what it says
    return f"->{fields}" if (fields := fields_of(tool.returns, seen)) else ""


def fields_of(kind: str, seen: set[str]) -> str:
    """Return ``[{id,name}]`` for a type of objects with those fields, without such as were *seen* before."""
    text = PLAIN.sub("", LITERAL.sub("", kind)).replace(" ", "")
    if text.count("{") != text.count("}") or text.count("[") != text.count("]") or not FIELDS.fullmatch(text):
        return ""
    while (shorter := RECORD.sub(lambda found: "" if found[1] in seen else found[0], text)) != text:
        text = shorter
    seen.update(RECORD.findall(text))
    return text if "{" in text and "{}" not in text else ""


def _list_known_tools(pack: Pack) -> list[Tool]:
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

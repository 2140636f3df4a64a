"""What a model reads of the one tool: which packs there are, and how they are found, called and combined."""

from __future__ import annotations

from collections.abc import Mapping

from ot.registry.tool_registry import Pack

MAX_NAMES = 40
FIRST_NAMES = 8
"""So many packs of each source are named when there are more than can be."""

COMMAND = "The program, unfenced."
SESSION = "Runs of one name share variables."

DESCRIPTION = """\
Run a Python program that calls tools. Result: the last expression or return, and prints.
Packs: {packs}
Find tools:
  ot.help(query="words of the task")
  ot.help(query="file")
Call by keyword, gather in parallel, return little:
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
Sandboxed: files, network and environment only through tools. Modules: asyncio base64 bisect collections copy csv
dataclasses datetime decimal functools hashlib itertools json math random re time.
Not available: yield, del, inheritance, other modules.""",
    "exact": """\
Full Python, its standard library. Sandboxed: network, processes, environment only through tools.""",
    "trusted": "Full Python with its standard library, not sandboxed.",
}
"""What is true of each engine."""


def run_description(packs: Mapping[str, Pack], engine: str) -> str:
    """Return the description of ``run``: the same text as long as there are the same packs."""
    return DESCRIPTION.format(packs=pack_names(packs)) + SANDBOX[engine]


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

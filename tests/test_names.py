"""One public name for one idea: no class of the source is named twice."""

from __future__ import annotations

import ast
from collections import defaultdict

from checkout import SOURCES, python_files

ON_BOTH_SIDES = {
    "Config": "every pack calls its settings so",
    "Function": "what a program sees of a tool",
    "Pack": "what a program sees of a pack",
    "ChatError": "goes by this name from the server to the worker",
    "InvalidArguments": "goes by this name from the worker to the server",
    "ResultTooLarge": "goes by this name from the worker to the server",
    "ToolTimeout": "goes by this name from the worker to the server",
    "UnknownTool": "goes by this name from the worker to the server",
}
"""Names whose second class lives in another process, where those who write packs and programs know it by them."""


def classes() -> dict[str, list[str]]:
    """Return where each public class of the source is defined."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, file in python_files(SOURCES).items():
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    return found


def test_no_public_class_name_stands_for_two_ideas() -> None:
    twice = {name: places for name, places in classes().items() if len(places) > 1}
    assert {name: places for name, places in twice.items() if name not in ON_BOTH_SIDES} == {}
    assert twice.keys() >= ON_BOTH_SIDES.keys(), "an exception that is not needed any more"
    for name in ON_BOTH_SIDES:
        assert len({place.startswith(("ot_sdk", "ot_tools")) or "/jail/" in place for place in twice[name]}) == 2

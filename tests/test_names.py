"""What names must be: no class of the source is named twice, and functions are verbs."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

import pytest

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

IRREGULAR = re.compile(
    "beaten|begun|bound|bought|broken|brought|built|caught|chosen|done|drawn|driven|felt|forgotten|found|frozen|given|"
    "gone|grown|heard|held|hidden|kept|known|left|lost|made|meant|met|overridden|paid|said|seen|sent|shown|sold|sought|"
    "spent|spoken|stolen|stopped|stuck|taken|taught|thought|thrown|told|torn|understood|withdrawn|woken|worn|wound|"
    "woven|written"
)
VERBS = frozenset({"bleed", "embed", "exceed", "feed", "heed", "need", "proceed", "seed", "shed", "speed", "succeed"})
PARTICIPLES_AT_MOST = 0.015
"""The share of functions that may begin with a participle: the adjective of a noun, as in ``installed_packs()``."""


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
        there = {place.startswith(("ot_packs", "ot_sdk", "ot_tools")) or "/jail/" in place for place in twice[name]}
        assert len(there) == 2


def is_participle(name: str) -> bool:
    """Return whether *name* begins with a past participle, as ``_opened`` and ``found_by`` do."""
    word = name.strip("_").partition("_")[0]
    return bool(IRREGULAR.fullmatch(word)) or (word.endswith("ed") and len(word) > 3 and word not in VERBS)


def functions() -> list[tuple[str, str]]:
    """Return the place and the name of each function and method; properties and questions are no acts."""
    found: list[tuple[str, str]] = []
    for name, file in python_files(SOURCES).items():
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_value(node):
                found.append((f"{name}:{node.lineno}", node.name))
    return found


def is_value(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether callers read *node* as a value: a property, or a function that answers yes or no."""
    decorators = {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}
    return bool(decorators & {"property", "cached_property", "setter"}) or (
        isinstance(node.returns, ast.Name) and node.returns.id == "bool"
    )


def test_functions_are_named_by_verbs() -> None:
    every = functions()
    participles = sorted(f"{place} {name}" for place, name in every if is_participle(name))
    assert len(participles) <= PARTICIPLES_AT_MOST * len(every), "\n".join(participles)


@pytest.mark.parametrize("name", ["_opened", "found", "told_of", "_written_out"])
def test_a_participle_is_recognised(name: str) -> None:
    assert is_participle(name)


@pytest.mark.parametrize("name", ["open_session", "_find", "need_login", "put", "read", "seed", "_red"])
def test_a_verb_is_no_participle(name: str) -> None:
    assert not is_participle(name)

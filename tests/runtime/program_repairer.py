"""Repairs a program as a model would that reads nothing but the error: one step, by rules about its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Rule = tuple[str, Callable[[re.Match[str], str, str], str]]


def repaired(program: str, error: str) -> str:
    """Return *program* with what *error* says done; unchanged if it says nothing that could be done."""
    for pattern, repair in RULES:
        if found := re.search(pattern, error, re.DOTALL):
            return repair(found, program, error)
    return program


def _as_written(found: re.Match[str], program: str, error: str) -> str:
    return found[1]


def _without_import(found: re.Match[str], program: str, error: str) -> str:
    return program.replace(f"import {found[1]}\n", "\n", 1)


def _renamed(found: re.Match[str], program: str, error: str) -> str:
    pack, other = found.groups()
    return re.sub(rf"\b{pack}\b(?!\.\w+\()", other, program)


def _replaced(found: re.Match[str], program: str, error: str) -> str:
    return re.sub(rf"\b{found[1]}\b", found[2], program)


def _other_keyword(found: re.Match[str], program: str, error: str) -> str:
    wrong, parameters = found.groups()
    required = [text.partition(":")[0].strip() for text in parameters.split(",") if "=" not in text]
    return program.replace(f"{wrong}=", f"{required[0]}=")


def _starred(found: re.Match[str], program: str, error: str) -> str:
    return program.replace("gather(", "gather(*")


def _with_parentheses(found: re.Match[str], program: str, error: str) -> str:
    return program.replace(found[1], re.sub(r"^print (.*)$", r"print(\1)", found[1]))


def _as_key(found: re.Match[str], program: str, error: str) -> str:
    name, line = found.groups()
    return program.replace(line, line.replace(f".{name}", f'["{name}"]'))


def _rules() -> Iterator[Rule]:
    yield r"In Python:\n(.*)", _as_written
    yield r"'import (\w+)' hides the pack .* leave the import out", _without_import
    yield r"hides the pack '(\w+)', .*: give the variable another name, such as (\w+)", _renamed
    yield r"'(\w+)' is not in pack '\w+', did you mean '(\w+)'", _replaced
    yield r"there is no pack '(\w+)', did you mean '(\w+)'", _replaced
    yield r"name '(\w+)' is not defined.*did you mean ([\w.]+)\?", _replaced
    yield r"unexpected keyword argument '(\w+)'[^.]*\. Expected: [\w.]+\((.*?)\)", _other_keyword
    yield r"asyncio\.gather\(\*", _starred
    yield r"Missing parentheses in call to 'print'.*line \d+: (print .*)$", _with_parentheses
    yield r"'dict' object has no attribute '(\w+)'\n  line \d+: ([^\n]*)", _as_key


RULES = tuple(_rules())

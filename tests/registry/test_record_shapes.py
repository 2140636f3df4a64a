"""The keys of a file's own TypedDicts are written out in the type that a function returns."""

from __future__ import annotations

import ast
import re

import pytest

from ot.build import BUNDLED, IN_WORKERS
from ot.registry.bundled_extensions import bundled_extensions
from ot.registry.tool import signature_text
from ot.registry.tool_loader import find_named_types, write_type

FILE = '''
import typing
from typing import NotRequired, TypedDict

class Listed(TypedDict):
    """An entry."""
    path: str
    size: int

class Info(Listed):
    note: NotRequired[str]

class Loose(typing.TypedDict, total=False):
    of: List[Listed]

class Other:
    x: int

type Place = str | Listed
type Nested = str | list[Nested]
Kind = Literal["a", "b"]
Size = int

class Again(TypedDict):
    more: list["Again"]
    self: Again
'''


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        ("Listed", "{path: str, size: int}"),
        ("List[Listed]", "list[{path: str, size: int}]"),
        ("dict[str, Info] | None", "dict[str, {path: str, size: int, note?: str}] | None"),
        ("Loose", "{of?: list[{path: str, size: int}]}"),
        ("Other", "Other"),
        ("Size", "Size"),
        ("Kind | None", "Literal['a', 'b'] | None"),
        ("dict[str, Place]", "dict[str, str | {path: str, size: int}]"),
        ("typing.Any", "typing.Any"),
        ("'Listed'", "'Listed'"),
        ("tuple[int, ...]", "tuple[int, ...]"),
    ],
)
def test_records_are_shown_with_their_keys(annotation: str, text: str) -> None:
    records = find_named_types(ast.parse(FILE))
    assert write_type(ast.parse(annotation, mode="eval").body, records) == text


def test_a_record_that_holds_itself_ends() -> None:
    records = find_named_types(ast.parse(FILE))
    assert write_type(ast.parse("Again", mode="eval").body, records).count("more") == 3
    assert write_type(ast.parse("Nested", mode="eval").body, records) == "str | list[str | list[str | list[Nested]]]"


def test_no_signature_of_a_bundled_tool_has_a_name_that_only_its_file_knows() -> None:
    packs = [*BUNDLED.packs(), *(extension.pack() for extension in bundled_extensions(IN_WORKERS))]
    signatures = [re.sub(r"'[^']*'", "", signature_text(tool)) for pack in packs for tool in pack.tools.values()]
    assert set(re.findall(r"\b[A-Z]\w+", " ".join(signatures))) <= {
        "Any", "Literal", "Mapping", "None", "Sequence", "False", "True"
    }  # fmt: skip


def test_a_function_that_says_nothing_returns_nothing() -> None:
    assert write_type(None, {}) == ""

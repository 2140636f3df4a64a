"""The keys of a file's own TypedDicts are written out in the type that a function returns."""

from __future__ import annotations

import ast

import pytest

from ot.registry.record_shapes import returned_type, typed_dicts

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
        ("typing.Any", "typing.Any"),
        ("'Listed'", "'Listed'"),
        ("tuple[int, ...]", "tuple[int, ...]"),
    ],
)
def test_records_are_shown_with_their_keys(annotation: str, text: str) -> None:
    records = typed_dicts(ast.parse(FILE))
    assert returned_type(ast.parse(annotation, mode="eval").body, records) == text


def test_a_record_that_holds_itself_ends() -> None:
    records = typed_dicts(ast.parse(FILE))
    assert returned_type(ast.parse("Again", mode="eval").body, records).count("more") == 3


def test_a_function_that_says_nothing_returns_nothing() -> None:
    assert returned_type(None, {}) == ""

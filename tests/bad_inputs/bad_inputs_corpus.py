"""The entries of bad_inputs.yaml, each as the parameter of one test."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from faults.watched import CORPUS

Item = dict[str, Any]


def items(group: str) -> list[Item]:
    """Return the entries of a group."""
    groups = yaml.load(CORPUS.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["groups"]
    return next(entry["items"] for entry in groups if entry["group"] == group)


def each_item(group: str, *, having: str = "") -> pytest.MarkDecorator:
    """Give a test the entries of *group* one by one as ``item``; *having* picks those with one kind of payload."""
    found = [item for item in items(group) if not having or having in item]
    assert found
    return pytest.mark.parametrize("item", [pytest.param(item, id=item["id"]) for item in found])


def payload(item: Item) -> str | bytes:
    """Return the entry's literal input, or what its expression makes."""
    return str(item["input"]) if "input" in item else eval(item["gen"])


def text(item: Item) -> str:
    """Return a payload that is text."""
    found = payload(item)
    assert isinstance(found, str)
    return found

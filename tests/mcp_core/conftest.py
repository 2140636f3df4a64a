"""The one collection of a process, as a fresh process has it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcp_core import ToolArguments


@pytest.fixture(autouse=True)
def empty_collection() -> Iterator[None]:
    """No declared tools, and those of other tests afterwards."""
    declared = ToolArguments._declared
    before = dict(declared)
    declared.clear()
    yield
    declared.clear()
    declared.update(before)

"""The examples in the package's docstrings do what they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import mcp_core

MODULES = ["mcp_core", *(f"mcp_core.{found.name}" for found in pkgutil.iter_modules(mcp_core.__path__))]
SHOWING = ["mcp_core", *(f"mcp_core.{name}" for name in ("consent", "program_function", "result", "tool_arguments"))]


def attempted(name: str) -> doctest.TestResults:
    """Run the examples of a module's own docstring, as a reader would type them."""
    runner, finder = doctest.DocTestRunner(verbose=False), doctest.DocTestFinder(recurse=False)
    for test in finder.find(importlib.import_module(name), globs={"__name__": "__main__"}):
        runner.run(test)
    return runner.summarize(verbose=False)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_docstring_do_what_they_show(name: str) -> None:
    assert attempted(name).failed == 0


@pytest.mark.parametrize("name", SHOWING)
def test_what_authors_use_is_shown_by_example(name: str) -> None:
    assert attempted(name).attempted >= 3

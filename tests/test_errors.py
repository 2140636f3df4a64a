"""The errors: their tree is as it is drawn, and each behaves as an exception does."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ot import errors
from ot.errors import AmbiguousArgument, ConfigError, NotApproved, OneToolError, RateLimited, UnknownPack, UnknownTool

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "errors.md"
LINE = re.compile(r"^(?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+)", re.MULTILINE)
STEP = 4
"""Columns by which a class is drawn to the right of its parent."""


def test_the_errors_page_draws_the_real_tree() -> None:
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, OneToolError)]
    tree = {kind.__name__: kind.__base__.__name__ for kind in classes if kind.__base__}
    assert sorted(_drawn()) == sorted(tree.items())


def _drawn() -> Iterator[tuple[str, str]]:
    """Yield every class that the page draws, with its parent."""
    drawing = PAGE.read_text(encoding="utf-8").split("```")[1]
    above: list[str] = []
    for found in LINE.finditer(drawing.removeprefix("text\n")):
        depth = len(found["branch"]) // STEP
        above = [*above[:depth], found["name"]]
        yield found["name"], above[-2] if depth else "Exception"


EXAMPLES = [
    ConfigError("it is empty", file=Path("a.yaml"), line=3, hint="write it"),
    UnknownPack(pack="fil", packs=("file", "web")),
    UnknownTool("file", "raed", ("read",), note="Available projects: none"),
    AmbiguousArgument("file.read", "path", ("p", "pa"), "file.read(*, path)"),
    NotApproved("file.delete", "nobody said yes"),
    RateLimited("Anthropic", 2.5),
    errors.ServerUnavailable("git", "it ended", retry_seconds=1.5, unknown=True),
    errors.NotSupported([errors.Gap(1, "a match statement")], "portable"),
    errors.EngineCrashed("it was killed"),
    errors.ServerUnavailable("git", "it ended"),
    errors.ResultTooLarge("web.get", "40 MB", "r1"),
    errors.ProgramFailed("KeyError", ""),
    errors.ResultNotFound("x" * 100),
    errors.DefinitionChanged("git.push", "git", ["its description"]),
]


@pytest.mark.parametrize("error", EXAMPLES)
def test_a_copy_says_and_holds_the_same(error: OneToolError) -> None:
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
        assert again.args == error.args


def test_errors_are_compared_by_identity_and_shown_by_their_args() -> None:
    one, other = NotApproved("file.delete", "no"), NotApproved("file.delete", "no")
    assert one != other
    assert len({one, other}) == 2
    assert repr(one) == "NotApproved('file.delete', 'no')"


def test_texts_are_made_of_the_fields() -> None:
    assert [str(error) for error in EXAMPLES if not isinstance(error, errors.NotSupported)] == [
        "a.yaml:3: it is empty (write it)",
        "there is no pack 'fil', did you mean 'file'? Available packs: file, web",
        "'raed' is not in pack 'file', did you mean 'read'? Available functions: read. Available projects: none",
        "file.read(): 'p' and 'pa' both mean 'path'. Expected: file.read(*, path)",
        "file.delete was not called: nobody said yes",
        "service unavailable: Anthropic: too many requests, it says to wait 2.5 s",
        "the server 'git' is not available: it ended; it is tried again in 1.5 s"
        "; whether the call took effect is unknown, and it was not repeated: find out before you call again",
        "it was killed",
        "the server 'git' is not available: it ended",
        "the value of web.get is too large for a program (40 MB); it is stored: ot.result(handle='r1')",
        "KeyError",
        f"result '{'x' * 64}' not found",
        "git.push has changed since it was approved (its description) and was not called: "
        "the user can look at the change and approve it with 'onetool approve git'",
    ]


def test_a_long_name_is_not_repeated_whole() -> None:
    assert len(str(UnknownPack("x" * 10_000, ["file"]))) < 300
    assert len(str(UnknownTool("x" * 10_000, "y" * 10_000, ["read"]))) < 600

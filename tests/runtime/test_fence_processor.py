"""Fences, backticks and prefixes come off; everything else stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from ot.errors import InvalidSyntax
from ot.runtime.fence_processor import strip_fences

PIECES = [
    "`",
    "``",
    "```",
    "````",
    "~~~",
    "\n",
    "python",
    " ",
    "x = 1",
    "__ot",
    "mcp__onetool__run",
    "!onetool",
    ":",
    "'",
]
COMMANDS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join))


@given(COMMANDS)
@example("```\n!onetool x\n```")
@example("``` `x` ```")
@example("```\n```\nx\n```\n```")
@example("__ot `__ot ```\nx\n``` `")
def test_stripping_twice_is_stripping_once(command: str) -> None:
    try:
        once = strip_fences(command)
    except InvalidSyntax:
        assume(False)
    assert once == strip_fences(once)


@given(st.text(alphabet=st.characters(exclude_characters="`~_!", exclude_categories=["Cs"])))
def test_text_without_any_mark_comes_back_as_it_is(command: str) -> None:
    assert command == strip_fences(command)


@given(
    st.text(alphabet=st.characters(exclude_characters="`~_!", exclude_categories=["Cs"])),
    st.sampled_from(["```", "````", "~~~"]),
    st.sampled_from(["", "python", "py", "python3", "c++"]),
)
def test_what_stands_in_a_fence_comes_back_exactly(code: str, fence: str, language: str) -> None:
    assert code == strip_fences(f"{fence}{language}\n{code}\n{fence}")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("```python\nx\n```", "x"),
        ("\n\n  ```python  \nx\n```  \n", "x"),
        ("~~~\nx\n~~~", "x"),
        ("````\n```\nx\n```\n````", "x"),
        ("```py\nx```", "x"),
        ("```python\nx = 1\ny = 2", "x = 1\ny = 2"),
        ("`x`", "x"),
        ("``x``", "x"),
        (" `x` ", "x"),
        ("__ot x", "x"),
        ("__ot: x", "x"),
        ("__onetool__run\n```python\nx\n```", "x"),
        ("mcp__onetool__run `x`", "x"),
    ],
)
def test_a_wrapped_command_is_unwrapped(command: str, code: str) -> None:
    assert code == strip_fences(command)


@pytest.mark.parametrize(
    "command",
    [
        "x = '```'",
        "`a` + `b`",
        "```python\nx\n```\nand then some words",
        "some words\n```python\nx\n```",
        "__other = 1",
        "__ot.x",
        "__ot_name",
        "__ot",
        "``",
        "```",
        "`x\ny`",
        "x  \n",
    ],
)
def test_what_is_not_wholly_wrapped_stays(command: str) -> None:
    assert command == strip_fences(command)


@pytest.mark.parametrize("command", ["!onetool x", "  !onetool", "```\n!onetool x\n```", "`!onetool x`"])
def test_the_prefix_of_old_is_refused_wherever_the_command_begins(command: str) -> None:
    with pytest.raises(InvalidSyntax, match="invalid syntax"):
        strip_fences(command)


def test_more_than_three_fences_are_refused() -> None:
    command = "x"
    for ticks in range(3, 6):
        command = f"{'`' * ticks}\n{command}\n{'`' * ticks}"
        assert strip_fences(command) == "x"
    with pytest.raises(InvalidSyntax, match="more than 3 fences"):
        strip_fences(f"~~~\n{command}\n~~~")


def test_prefixes_come_off_however_many_there_are_and_the_indentation_stays() -> None:
    assert strip_fences("__ot " * 60_000 + "1") == "1"
    assert strip_fences("__ot\n    x\n    y") == "    x\n    y"

"""How often a program would call a tool is told from its text, and not guessed where there is no telling."""

from __future__ import annotations

import pytest

from ot.runtime.foreseen_calls import foreseen_calls
from ot.runtime.program import parse_program
from pace import effort


@pytest.mark.parametrize(
    ("code", "most"),
    [
        ("t.f()", 1),
        ("t.f(); t.f()", 2),
        ("t.f(); t.F(); t.f_()", 3),
        ("if x:\n    t.f()\nelse:\n    t.f()", 2),
        ("for i in range(50):\n    t.f()", 50),
        ("for i in range(10, 0, -3):\n    t.f()", 4),
        ("for i in range(0):\n    t.f()", 0),
        ("for i in [1, 2, 3]:\n    for j in (1, 2):\n        t.f()", 6),
        ("for i in range(5):\n    t.f()\nelse:\n    t.f()", 6),
        ("for letter in 'abc':\n    t.f()", 3),
        ("[t.f() for i in range(4) for j in range(3) if j]", 12),
        ("ids = [1, 2, 3]\nfor i in ids:\n    t.f()", 3),
        ("await asyncio.gather(*[t.f() for i in range(7)])", 7),
        ("for i in ids:\n    t.f()", None),
        ("ids = [1]\nids.append(2)\nfor i in ids:\n    t.f()", None),
        ("ids = [1]\nids = ids + [2]\nfor i in ids:\n    t.f()", None),
        ("ids = [1]\nids += [2]\nfor i in ids:\n    t.f()", None),
        ("for i in [*ids]:\n    t.f()", None),
        ("for i in range(n):\n    t.f()", None),
        ("for i in range(10 ** 9 ** 9):\n    t.f()", None),
        ("for i in range(True):\n    t.f()", None),
        ("while x:\n    t.f()", None),
        ("def g():\n    t.f()\ng()", None),
        ("list(map(lambda i: t.f(), range(3)))", None),
        ("getattr(t, 'f')()", None),
        ("other.f(); t.other()", None),
    ],
)
def test_calls_are_counted_where_their_number_is_written(code: str, most: int | None) -> None:
    assert foreseen_calls(parse_program(code), "t.f", None, 1).most == most


def test_calls_by_an_alias_count_as_calls_of_the_tool() -> None:
    program = parse_program("memory.write('a')\nfor x in range(3):\n    memory.save(x)")
    assert foreseen_calls(program, "memory.write", None, 1).most == 4


def test_the_line_is_the_engines_or_the_first_that_names_the_tool() -> None:
    program = parse_program("x = 1\nt.f(x)\nt.f(2)")
    assert (foreseen_calls(program, "t.f", 3, 1).line, foreseen_calls(program, "t.f", 3, 1).text) == (3, "t.f(2)")
    assert (foreseen_calls(program, "t.f", None, 1).line, foreseen_calls(program, "t.f", None, 1).text) == (2, "t.f(x)")


def test_in_a_program_that_nobody_would_read_nothing_is_foreseen_and_no_time_is_spent() -> None:
    deep, long = parse_program("-" * 120 + "t.f()"), parse_program(f"t.f('{'x' * 120_000}')")
    assert foreseen_calls(deep, "t.f", None, 1).most is None
    with effort() as spent:
        assert foreseen_calls(long, "t.f", 1, 1).most is None
    assert spent.loops < 80

"""JavaScript given as a program: told from Python, and answered with the same lines in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from ot.runtime.javascript import ADVICE, in_python, javascript_advice
from run_app import error_of, run_in, value_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("code", "python"),
    [
        ('const x = await web.get({url: "a", n: 1});', 'x = await web.get(url="a", n=1)'),
        ("let ok = a === 1 && !b || c !== null;", "ok = a == 1 and not b or c != None"),
        ("console.log(`${n} items`);", 'print(f"{n} items")'),
        ('var o = {a: 1, b: "c: d"};', 'o = {"a": 1, "b": "c: d"}'),
        ("const xs = web.all();\nconsole.log(xs.length);", "xs = web.all()\nprint(len(xs))"),
        (
            "for (const p of xs) {\n  if (p.n > 1) {\n    n++;\n  } else {\n    break;\n  }\n}",
            'for p in xs:\n    if p["n"] > 1:\n        n += 1\n    else:\n        break',
        ),
        ("function add(a, b) {\n  // both\n  return a + b;\n}", "def add(a, b):\n    # both\n    return a + b"),
    ],
)
def test_simple_lines_are_written_in_python(code: str, python: str) -> None:
    assert in_python(code) == python
    assert javascript_advice(code).endswith(f"In Python:\n{python}")


@pytest.mark.parametrize(
    "code",
    ["const names = xs.map(p => p.name);", "const {a, b} = web.get();", "const f = async () => {\n  await g();\n};"],
)
def test_what_is_not_simple_gets_advice_alone(code: str) -> None:
    assert javascript_advice(code) == ADVICE


@pytest.mark.parametrize(
    "code", ["x = = 1", "print 'a'", "def f()\n    return 1", "if x\n    y", "I think so", "for x in xs {\n}", "let go"]
)
def test_python_with_a_slip_is_not_taken_for_it(code: str) -> None:
    assert javascript_advice(code) == ""


async def test_the_error_of_a_program_in_javascript_holds_the_one_in_python(tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, "const n = 20;\nreturn n + 1;"))
    assert text.startswith("SyntaxError: invalid syntax\n  line 1: const n = 20;\nthis is JavaScript")
    assert value_of(await run_in(tmp_path, text.partition("In Python:\n")[2])) == "21"


async def test_a_name_of_javascript_in_python_is_told_as_that(tmp_path: Path) -> None:
    assert "\n'console' is JavaScript: use print(x)\n" in error_of(await run_in(tmp_path, "console.log(1)"))

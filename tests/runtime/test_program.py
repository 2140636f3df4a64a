"""A program is parsed once: indentation is normalised, strings and line numbers stay."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ot.errors import CommandTooLong, InvalidSyntax
from ot.runtime.program import Program, parse_program

# ---------------------------------------------------------------- programs of any indentation


@dataclass(frozen=True)
class Line:
    """A line at a block's depth, at a free place of its own, or untouchable since it stands in a string."""

    text: str
    depth: int | None = None
    free: bool = False


SPACES = st.text(alphabet=" \t", max_size=6)
INSIDE = st.text(alphabet=" \tab'#=:[(", max_size=12)


@st.composite
def statements(draw: st.DrawFn, depth: int) -> list[Line]:
    kind = draw(st.sampled_from(["assign", "string", "f-string", "brackets", "blank", "comment", "joined", "block"]))
    match kind:
        case "string" | "f-string":
            head = 'text = f"""{depth} ' if kind == "f-string" else 'text = """'
            middle = [Line(text) for text in draw(st.lists(INSIDE, max_size=3))]
            return [Line(head, depth), *middle, Line(draw(INSIDE) + '"""')]
        case "brackets":
            return [
                Line("values = [", depth),
                Line(draw(SPACES) + "1,", free=True),
                Line(draw(SPACES) + "]", free=True),
            ]
        case "blank":
            return [Line(draw(SPACES), free=True)]
        case "comment":
            return [Line(draw(SPACES) + "# a 'comment", free=True)]
        case "joined":
            return [Line("total = 1 + \\", depth), Line(draw(SPACES) + "2", free=True)]
        case "block" if depth < 3:
            return [Line("if total:", depth), *draw(blocks(depth + 1))]
        case _:
            return [Line(f"name = {draw(st.integers(0, 9))}", depth)]


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0) -> list[Line]:
    parts = [draw(statements(depth)) for _ in range(draw(st.integers(1, 4)))]
    # A block needs a statement, wherever its blank lines and comments are.
    return [line for part in parts for line in part] + [Line("last = 0", depth)]


def plain(lines: list[Line]) -> str:
    return "\n".join(line.text if line.depth is None else "    " * line.depth + line.text for line in lines)


@st.composite
def shifted(draw: st.DrawFn, lines: list[Line]) -> str:
    """Draw the same program a few levels further in, each line indented by tabs or by spaces as it comes."""
    base = draw(st.integers(0, 3))

    def indented(line: Line) -> str:
        if line.depth is None:
            return line.text
        tabs = draw(st.integers(0, base + line.depth))
        return "\t" * tabs + " " * 8 * (base + line.depth - tabs) + line.text

    return "\n".join(map(indented, lines))


@given(st.data())
def test_indentation_changes_no_string_and_no_line_number(data: st.DataObject) -> None:
    lines = data.draw(blocks())
    expected = ast.parse(plain(lines))
    actual = parse_program(data.draw(shifted(lines))).tree
    assert ast.dump(expected) == ast.dump(actual)
    assert statement_lines(expected) == statement_lines(actual)


@given(blocks())
def test_a_program_that_parses_is_not_touched(lines: list[Line]) -> None:
    code = plain(lines)
    assert code == parse_program(code).source


def statement_lines(tree: ast.Module) -> list[int]:
    return [node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def test_lines_within_brackets_do_not_hold_the_indent_back() -> None:
    program = parse_program("    x = [\n1,\n]\n    y = (2\n  + 3)")
    assert program.source == "x = [\n1,\n]\ny = (2\n+ 3)"


def test_an_indent_that_nothing_explains_is_an_error_with_its_line() -> None:
    with pytest.raises(InvalidSyntax) as caught:
        parse_program("x = 1\n    y = 2\nz = 3")
    assert (caught.value.line, caught.value.source) == (2, "y = 2")
    assert "unexpected indent" in str(caught.value)


# ---------------------------------------------------------------- what is refused


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 8))
def test_a_syntax_error_names_the_line_wherever_it_stands(before: int, after: int, indent: int) -> None:
    lines = [f"x{n} = '''a'''" for n in range(before)] + ["x = = 1"] + ["y = 2"] * after
    with pytest.raises(InvalidSyntax) as caught:
        parse_program("\n".join(" " * indent + line for line in lines))
    assert (caught.value.line, caught.value.source) == (before + 1, "x = = 1")


@given(st.text())
@example("\x00")
@example("x\r= 1")
@example("\ufeff\ufeff")
@example("(" * 500)
@example("-" * 10_000 + "1")
@example("0" * 5000)
@example("9" * 5000)
@example("\f\n x")
@example("if 1:\n\t'''\n\x0c")
def test_any_text_is_a_program_or_invalid_syntax(code: str) -> None:
    try:
        assert isinstance(parse_program(code), Program)
    except InvalidSyntax as error:
        assert str(error)


def test_surrogates_are_invalid_syntax() -> None:
    with pytest.raises(InvalidSyntax):
        parse_program("x = '\ud800'")


def test_the_size_is_counted_in_bytes() -> None:
    assert parse_program("'é'", max_bytes=4)
    with pytest.raises(CommandTooLong) as caught:
        parse_program("'é'", max_bytes=3)
    assert (caught.value.size, caught.value.limit) == (4, 3)


# ---------------------------------------------------------------- what is known of a program


@pytest.mark.parametrize(
    ("code", "returns"),
    [
        ("return 1", True),
        ("if x:\n    for y in z:\n        return y", True),
        ("def f():\n    return 1", False),
        ("class C:\n    def f(self): return 1", False),
        ("lambda: 1", False),
        ("1", False),
    ],
)
def test_a_return_counts_outside_functions_only(code: str, returns: bool) -> None:
    assert returns is parse_program(code).returns


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("ot.help()", ("ot", "help")),
        ("return ot.help(query='x')", ("ot", "help")),
        ("x = ot.help()", ("ot", "help")),
        ("await ot.help()", ("ot", "help")),
        ("# note\not.help()", ("ot", "help")),
        ("ot.help()\nx", None),
        ("ot.help()['x']", None),
        ("help()", None),
        ("a.b.c()", None),
        ("1", None),
        ("", None),
    ],
)
def test_a_program_of_one_call_is_known(code: str, call: tuple[str, str] | None) -> None:
    assert call == parse_program(code).single_call


@pytest.mark.parametrize(
    ("code", "awaited"),
    [
        ("await p.f(1)", ["p.f(1)"]),
        ("p.f(1)", []),
        ("await asyncio.gather(p.f(1), p.g(p.h(2)))", ["p.f(1)", "p.g(p.h(2))"]),
        ("await gather(*[p.f(x) for x in p.list()])", ["p.f(x)"]),
        ("await asyncio.gather(*(p.f(x) for x in y), [p.g()])", ["p.f(x)", "p.g()"]),
        ("await asyncio.gather(p.f() if x else p.g())", ["p.f()", "p.g()"]),
        ("await asyncio.gather(*calls)", []),
        ("é = 'ü'; await p.f('ö')", ["p.f('ö')"]),
        ("x = 'ü'\nawait p.f(\n  'ö',\n)", ["p.f(\n  'ö',\n)"]),
        ("await other.gather(p.f())", ["other.gather(p.f())"]),
    ],
)
def test_the_calls_that_are_awaited_are_known_by_their_bytes(code: str, awaited: list[str]) -> None:
    ranges = sorted(parse_program(code).awaited)
    assert awaited == [code.encode()[start:end].decode() for start, end in ranges]


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("x = 1", {"x"}),
        ("for a, (b, *c) in d: pass", {"a", "b", "c"}),
        ("def f(a, *b, c=1, **d): pass", {"f", "a", "b", "c", "d"}),
        ("import os.path, re as r\nfrom x import y as z", {"os", "r", "z"}),
        ("with a as b: pass", {"b"}),
        ("try: pass\nexcept E as e: pass", {"e"}),
        ("match m:\n  case {'k': v, **rest}: pass\n  case [a, *b] as c: pass", {"v", "rest", "a", "b", "c"}),
        ("(n := 1)", {"n"}),
        ("[q for q in r]", {"q"}),
        ("class C: pass", {"C"}),
        ("a.b = c[d] = 1", set[str]()),
    ],
)
def test_the_names_that_a_program_binds_are_known(code: str, names: set[str]) -> None:
    assert names == parse_program(code).binds


def test_magic_variables_are_known_when_they_are_assigned() -> None:
    assert parse_program("__format__ = 'yml'\nx").magic == ("__format__",)
    assert parse_program("print(__sanitize__)").magic == ()


@pytest.mark.parametrize(
    ("code", "asks"),
    [
        ("1", False),
        ("__sanitize__ = True", True),
        ("__sanitize__ = False", False),
        ("__sanitize__ = None", False),
        ("__sanitize__ = False\n__sanitize__ = True", True),
        ("x = __sanitize__ = 1", True),
        ("__sanitize__: bool = True", True),
        ("if (__sanitize__ := True): pass", True),
        ("__sanitize__ = x", True),
        ("print(__sanitize__)", False),
    ],
)
def test_a_wish_for_sanitising_is_known_from_the_text(code: str, asks: bool) -> None:
    assert asks is parse_program(code).asks_to_sanitize


def test_a_line_is_shown_stripped_and_cut() -> None:
    program = parse_program("x = 1\nif x:\n    y = '" + "a" * 300 + "'")
    assert program.line(1) == "x = 1"
    assert program.line(3) == ("y = '" + "a" * 300)[:200] + "…"
    assert [program.line(number) for number in (None, 0, 4, -1)] == [""] * 4


@pytest.mark.parametrize(
    "code",
    [
        "x=a+b;" * 16_000,
        "x = [" + "1," * 20_000 + "]",
        'f"{' + "a+" * 20_000 + 'a}"',
        "  x = 1\n" + "y=a+b;" * 16_000,
        "if x:\n    1\n  2\n" + "y=a+b\n" * 16_000,
    ],
)
def test_a_program_of_too_many_tokens_is_refused_before_it_is_parsed(code: str) -> None:
    with pytest.raises(CommandTooLong, match="more than 12,000 tokens"):
        parse_program(code)


@pytest.mark.parametrize(
    "code", ["x = '''" + "many words " * 50_000 + "'''", "# a comment\n" * 2_000, "x = a + b\n" * 1_900]
)
def test_long_texts_and_as_many_tokens_as_are_allowed_are_parsed(code: str) -> None:
    assert parse_program(code).source == code

"""Spellings that a run forgives or explains: fences, aliases, shortened names, and JavaScript."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from ot.errors import InvalidSyntax
from ot.runtime.fence_processor import strip_fences
from ot.runtime.program import parse_program
from ot.runtime.snippets import expand_aliases
from ot.runtime.tolerances import JAVASCRIPT_ADVICE
from run_app import error_of, run_in, running_app, value_of

pytestmark = pytest.mark.anyio

ALIASES = {"ws": "brave.web_search", "r": "file.read"}
STATEMENTS = [
    "ws(query='x')",
    "text = 'ws(query)'",
    "text = '''\n  ws r\n'''",
    "# ws r",
    'f"{ws(query=1)} ws {r(path="r")!r:>{r}}"',
    "é = ws(query='ü ws') + r(path=ws('ö'))  # ws",
    "[ws for y in r]",
    "x.ws.r(ws=r)",
    "values = (\n  ws,\n    r(\n path='r'),\n)",
    "def f(x=ws):\n    return r",
    "\nws",
]


class Expanded(ast.NodeTransformer):
    """What an alias means, written on the tree."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.parse(ALIASES[node.id], mode="eval").body if node.id in ALIASES else node


@given(st.lists(st.sampled_from(STATEMENTS), min_size=1))
def test_only_names_change_and_no_line_moves(statements: list[str]) -> None:
    program = parse_program("\n".join(statements))
    expanded = expand_aliases(program, ALIASES)
    assert ast.dump(Expanded().visit(ast.parse(program.source))) == ast.dump(expanded.tree)
    assert [n.lineno for n in program.tree.body] == [n.lineno for n in expanded.tree.body]
    assert program.source.count("\n") == expanded.source.count("\n")


@pytest.mark.parametrize(
    "code",
    [
        "ws = 1\nws",
        "def ws(): pass\nws()",
        "def f(ws):\n    return ws(query='x')",
        "import ws\nws.x",
        "[ws for ws in y]",
        "for ws in y: ws()",
        "x.ws(query='x')",
        "unknown(ws=1)",
        "'ws'",
    ],
)
def test_a_name_that_the_program_gives_a_meaning_of_its_own_stays(code: str) -> None:
    program = parse_program(code)
    assert program is expand_aliases(program, ALIASES)


def test_a_program_that_names_an_alias_in_one_scope_keeps_it_in_all() -> None:
    program = parse_program("ws(query='x')\ndef f(ws):\n    return ws")
    assert program is expand_aliases(program, ALIASES)


@pytest.mark.parametrize(
    "code",
    ["const n = 20;\nreturn n + 1;", "const names = xs.map(p => p.name);", "for (const p of xs) {\n  n++;\n}"],
)
async def test_the_error_of_a_program_in_javascript_says_how_python_is_written(code: str, tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, code))
    assert text.startswith("SyntaxError: ")
    assert JAVASCRIPT_ADVICE in text


@pytest.mark.parametrize(
    "code", ["x = = 1", "print 'a'", "def f()\n    return 1", "if x\n    y", "I think so", "for x in xs {\n}", "let go"]
)
async def test_python_with_a_slip_is_not_taken_for_javascript(code: str, tmp_path: Path) -> None:
    assert "JavaScript" not in error_of(await run_in(tmp_path, code))


async def test_a_name_of_javascript_in_python_is_told_as_that(tmp_path: Path) -> None:
    assert "\n'console' is JavaScript: use print(x)\n" in error_of(await run_in(tmp_path, "console.log(1)"))


WEB = '''
    def query_only(*, query: str) -> dict:
        """Take one."""
        return {"query": query}

    def three(*, query_info: str = "-", query: str = "-", quality: str = "-") -> dict:
        """Take three that begin alike."""
        return {"query_info": query_info, "query": query, "quality": quality}

    def two(query: str, count: int = 1) -> dict:
        """Take two."""
        return {"query": query, "count": count}
'''


async def answer(tmp_path: Path, call: str) -> object:
    return json.loads(value_of(await run_in(tmp_path, call, {"web": WEB})))


@pytest.mark.scenario("000-40")
async def test_a_full_name_is_passed_on_unchanged(tmp_path: Path) -> None:
    assert await answer(tmp_path, 'web.query_only(query="test")') == {"query": "test"}
    # Also where another parameter, further ahead, begins with it.
    assert await answer(tmp_path, 'web.three(query="test")') == {"query_info": "-", "query": "test", "quality": "-"}


@pytest.mark.scenario("000-41")
async def test_a_prefix_means_its_parameter(tmp_path: Path) -> None:
    assert await answer(tmp_path, 'web.query_only(q="test")') == {"query": "test"}


@pytest.mark.scenario("000-42")
async def test_of_several_the_first_in_the_signature_wins(tmp_path: Path) -> None:
    assert await answer(tmp_path, 'web.three(q="test")') == {"query_info": "test", "query": "-", "quality": "-"}


@pytest.mark.scenario("000-43")
async def test_a_longer_prefix_picks_the_one_that_fits(tmp_path: Path) -> None:
    assert await answer(tmp_path, 'web.three(qual="test")') == {"query_info": "-", "query": "-", "quality": "test"}


@pytest.mark.scenario("000-44")
async def test_a_name_that_fits_nothing_is_refused_as_python_does(tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, 'web.query_only(xyz="test")', {"web": WEB}))
    assert text.startswith("TypeError: web.query_only() got an unexpected keyword argument 'xyz'")


@pytest.mark.scenario("000-45")
async def test_full_names_and_prefixes_go_together(tmp_path: Path) -> None:
    assert await answer(tmp_path, 'web.two(query="test", c=5)') == {"query": "test", "count": 5}


@pytest.mark.scenario("000-46")
async def test_prefixes_work_for_the_packs_that_are_bundled(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        (tmp_path / "work" / "a.txt").write_text("some words\n")
        assert "file" in app.picture.registry.packs
        assert value_of(await app.run('file.read(p="a.txt")')) == value_of(await app.run('file.read(path="a.txt")'))
        assert "some words" in value_of(await app.run('file.read(pa="a.txt")'))


@pytest.mark.scenario("000-49")
async def test_prefixes_work_for_the_ot_pack(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"fire": "def crawl(): return 1", "web": WEB}) as app:
        assert value_of(await app.run('ot.tools(p="fire", i="list")')) == "[fire.crawl]"
        assert value_of(await app.run('ot.help(q="fire.crawl")')) == value_of(
            await app.run('ot.help(query="fire.crawl")')
        )


async def test_two_names_for_one_parameter_are_refused(tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, 'web.two(query="a", q="b")', {"web": WEB}))
    assert "'query' and 'q' both mean 'query'" in text


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

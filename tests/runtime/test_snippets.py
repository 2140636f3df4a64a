"""Snippets: how they are found, called and checked, and rendered in a process that is thrown away."""

from __future__ import annotations

import ast
import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import psutil
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ot.config.models import Snippet
from ot.errors import SnippetError
from ot.runtime import snippet_renderer
from ot.runtime.snippet_renderer import SnippetRenderer
from ot.runtime.snippets import Snippets, parse_invocation, place_values
from pace import PATIENCE

pytestmark = pytest.mark.anyio

MARKER = "_v0123456789abcdef_"
VALUE = f"{MARKER}0_"
VALUES = st.one_of(st.text(), st.text(alphabet="'\"\\{}#\n\r\t1-+e()f "))


def placed(body: str, value: Any) -> str:
    return place_values(body.replace("@", VALUE), [value], MARKER, "s")


# ---------------------------------------------------------------- values never become code


@given(VALUES)
def test_a_value_in_a_string_is_that_text(value: str) -> None:
    assert ast.literal_eval(placed('"hello @"', value)) == f"hello {value}"


@given(VALUES, st.sampled_from(["'", '"', "'''", '"""']), st.sampled_from(["", "u"]))
def test_a_value_in_any_string_literal_is_that_text(value: str, quote: str, prefix: str) -> None:
    assert ast.literal_eval(placed(f"{prefix}{quote}a @ é{quote}", value)) == f"a {value} é"


@given(VALUES, st.sampled_from(["'", '"', "'''", '"""']))
@example("{1 + 1}", '"')
def test_a_value_in_an_f_string_is_that_text(value: str, quote: str) -> None:
    (statement,) = ast.parse(placed(f"f{quote}é @ {{x}}{quote}", value)).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.JoinedStr)
    text, field = statement.value.values
    assert isinstance(text, ast.Constant)
    assert text.value == f"é {value} "
    assert isinstance(field, ast.FormattedValue)


@given(VALUES)
@example("{1 + 1}")
def test_a_value_in_a_format_spec_holds_no_code(value: str) -> None:
    tree = ast.parse(placed('f"{x:>@}"', value))
    assert [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)] == ["x"]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Set | ast.BinOp | ast.Call)]


@given(VALUES)
@example("1 #")
@example("-1")
@example("1e999")
@example("(1)")
@example("9" * 400)
def test_a_bare_value_is_one_literal_and_nothing_else(value: str) -> None:
    (statement,) = ast.parse(placed("[@, 'after'\n]", value)).body
    assert isinstance(statement, ast.Expr)
    found, after = ast.literal_eval(statement.value)
    assert after == "after"
    assert value == found or ast.literal_eval(value.strip()) == found


@given(VALUES)
def test_a_value_in_a_comment_stays_in_it(value: str) -> None:
    assert ast.dump(ast.parse("x = 1\ny = 2")) == ast.dump(ast.parse(placed("x = 1  # @\ny = 2", value)))


@given(VALUES, VALUES)
def test_no_value_adds_or_takes_a_line(first: str, second: str) -> None:
    body = f'a = """\n{VALUE}\n"""\nb = {MARKER}1_\nc = f"{MARKER}1_"  # {VALUE}\nd = 1'
    text = place_values(body, [first, second], MARKER, "s")
    assert body.count("\n") == text.count("\n")
    assert [1, 4, 5, 6] == [node.lineno for node in ast.parse(text).body]


@pytest.mark.parametrize("body", ["f@", "rb@", "x@", "@x", "@@", "else@", "x.y@()"])
@pytest.mark.parametrize("value", ["{1 + 1}", "-5", "name"])
def test_a_value_glued_to_a_name_is_refused(body: str, value: str) -> None:
    with pytest.raises(SnippetError, match="joins a value to a name"):
        placed(body, value)


@pytest.mark.parametrize("body", ['r"@"', "rb'@'", 'rf"@"', 'Rf"""{x} @"""'])
def test_a_value_in_a_raw_string_is_refused(body: str) -> None:
    with pytest.raises(SnippetError, match="raw string"):
        placed(body, "x")


@pytest.mark.parametrize(("value", "square"), [("-2", 4), ("3", 9), ("1.5", 2.25), (" 2 ", 4)])
def test_a_number_for_a_snippet_stays_a_number(value: str, square: float) -> None:
    assert eval(placed("@**2", value)) == square


@pytest.mark.parametrize(
    ("value", "written"), [("None", "None"), ("True", "True"), ([1, "a"], "[1, 'a']"), ("none", "'none'"), ("", "''")]
)
def test_a_bare_value_is_written_as_python_writes_it(value: Any, written: str) -> None:
    assert placed("x = @", value) == f"x = {written}"


def test_a_template_that_is_no_python_is_said_to_be_none() -> None:
    with pytest.raises(SnippetError, match="does not expand to Python"):
        placed("('@", "x")


# ---------------------------------------------------------------- declared types


async def expanded(kind: str, value: str) -> str:
    snippet = Snippet.model_validate({"body": "x = {{ n }}", "params": {"n": {"type": kind}}})
    renderer = SnippetRenderer()
    try:
        return await Snippets({"s": snippet}, renderer).expand(f"$s n={value}")
    finally:
        await renderer.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [("str", "5", "'5'"), ("int", "5", "5"), ("int", "-5", "(-5)"), ("float", "5", "5.0"), ("bool", "true", "True")],
)
async def test_a_value_is_written_as_its_declared_type(kind: str, value: str, written: str) -> None:
    assert await expanded(kind, value) == f"x = {written}"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("int", "1.5", "$s takes n as a whole number, not '1.5'"),
        ("float", "inf", "$s takes n as a number, not 'inf'"),
        ("bool", "1", "$s takes n as true or false, not '1'"),
    ],
)
async def test_a_value_of_another_type_is_refused(kind: str, value: str, words: str) -> None:
    with pytest.raises(SnippetError) as refused:
        await expanded(kind, value)
    assert words == str(refused.value)


# ---------------------------------------------------------------- how a snippet is called


@pytest.mark.parametrize(
    ("command", "name", "arguments"),
    [
        ("$wsq q1=AI q2=ML p=Compare", "wsq", {"q1": "AI", "q2": "ML", "p": "Compare"}),
        ("$s", "s", {}),
        ("$s q=two words and more p=x", "s", {"q": "two words and more", "p": "x"}),
        ("$s q=\"a b\" p='c d'", "s", {"q": "a b", "p": "c d"}),
        ("$s q=a\\=b", "s", {"q": "a=b"}),
        ("$s q=https://x.y/?a=1", "s", {"q": "https://x.y/?a=1"}),
        ("$s q=", "s", {"q": ""}),
        ("$s\nq: two words\np: x = y", "s", {"q": "two words", "p": "x = y"}),
        ("$s\n\n", "s", {}),
    ],
)
def test_a_call_is_a_name_and_its_arguments(command: str, name: str, arguments: dict[str, str]) -> None:
    found = parse_invocation(command)
    assert (found.name, dict(found.arguments)) == (name, arguments)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("$1x", r"\$name key=value"),
        ("$", r"\$name key=value"),
        ("$s-t", r"\$name key=value"),
        ("$s positional", "key=value, not 'positional'"),
        ("$s q=1 q=2", "'q' is given twice"),
        ("$s\nq: 1\nq: 2", "'q' is given twice"),
        ("$s q=1\nprint(1)", "nothing may follow"),
        ("$s\nq: 1\n\nprint(1)", "nothing may follow"),
        ("$s\nprint(1)", "lines 'key: value'"),
        ("$s\n  q: 1\n  more", "lines 'key: value'"),
    ],
)
def test_anything_else_is_refused_in_words(command: str, words: str) -> None:
    with pytest.raises(SnippetError, match=words):
        parse_invocation(command)


# ---------------------------------------------------------------- the whole way, with the guarded process


@asynccontextmanager
async def expanding(**snippets: dict[str, Any]) -> AsyncGenerator[Snippets]:
    renderer = SnippetRenderer()
    try:
        yield Snippets({name: Snippet.model_validate(entry) for name, entry in snippets.items()}, renderer)
    finally:
        await renderer.aclose()


@pytest.mark.anyio
async def test_a_snippet_expands_to_its_template_with_values() -> None:
    body = 'for q in [{{ a }}, {{ b | upper }}]:\n    {% if p %}print("{{ p }}", q){% endif %}'
    async with expanding(s={"body": body, "params": {"a": {}, "b": {}, "p": {"default": "it's"}}}) as snippets:
        assert await snippets.expand("$s a=1 b=x") == "for q in [1, 'X']:\n    print(\"it\\x27s\", q)"
        assert await snippets.expand("$s a=1 b=x p=") == "for q in [1, 'X']:\n    "


@pytest.mark.anyio
async def test_the_author_of_a_template_may_want_text_as_code() -> None:
    async with expanding(s={"body": "ot.{{ name | code }}(query={{ name }})"}) as snippets:
        assert await snippets.expand("$s name=help") == "ot.help(query='help')"


@pytest.mark.anyio
async def test_a_command_that_calls_no_snippet_is_left_as_it_is() -> None:
    async with expanding() as snippets:
        for command in ("x = '$s'", "", "  1  ", "${x}", "a $s"):
            assert command == await snippets.expand(command)


FAILING = [
    ("$helo name=x", r"no snippet '\$helo', did you mean '\$hello'\? Snippets: hello, loop, wrong"),
    ("$hello nme=x", "no parameter 'nme'; it takes: name"),
    ("$hello", r"\$hello needs name: \$hello name=…"),
    ("$wrong", r"snippet '\$wrong': UndefinedError: 'missing' is undefined"),
    ("$loop", "1 MiB|time or memory"),
]


@pytest.mark.anyio
async def test_what_cannot_be_expanded_is_told_in_words() -> None:
    async with expanding(
        hello={"body": '"hello {{ name }}"', "params": {"name": {}}},
        wrong={"body": "{{ missing }}"},
        loop={"body": "{% for i in range(99999) %}{% for j in range(99999) %}xxxxxxxxxxxx{% endfor %}{% endfor %}"},
    ) as snippets:
        for command, words in FAILING:
            with pytest.raises(SnippetError, match=words):
                await snippets.expand(command)
            assert await snippets.expand("$hello name=you") == '"hello you"'


@pytest.mark.anyio
async def test_without_snippets_the_error_says_that_none_are_configured() -> None:
    async with expanding() as snippets:
        with pytest.raises(SnippetError, match="none are configured"):
            await snippets.expand("$x")


@pytest.mark.parametrize("command", ["$x " + "a=1 " * 200_000, "$x\n" + "a: 1\n" * 150_000])
def test_a_snippet_with_too_many_arguments_is_refused(command: str) -> None:
    with pytest.raises(SnippetError, match="at most 200 arguments"):
        parse_invocation(command)


@asynccontextmanager
async def rendering() -> AsyncGenerator[SnippetRenderer]:
    renderer = SnippetRenderer()
    try:
        yield renderer
    finally:
        await renderer.aclose()


def pid_of(renderer: SnippetRenderer) -> int:
    assert renderer._process is not None
    return renderer._process.pid


async def test_a_value_is_left_as_a_mark_for_the_caller_to_place() -> None:
    async with rendering() as renderer:
        reply = await renderer.render("a {{ x }} {{ x | upper }} {{ 1 + 1 }}", {"x": "b"}, "_m_")
    assert reply == {"text": "a _m_0_ _m_1_ _m_2_", "values": ["b", "B", 2]}


NOT_ALLOWED = [
    "{{ ''.__class__.__mro__ }}",
    "{{ x.__init__.__globals__ }}",
    "{% for i in range(10**9) %}{% endfor %}",
    "{{ x.append(1) }}",
    "{{ 'a' * 10**10 }}",
    "{{ nothing }}",
    "{% include '/etc/passwd' %}",
    "{{",
]


async def test_a_template_that_may_not_or_cannot_is_an_error_and_no_more() -> None:
    async with rendering() as renderer:
        for body in NOT_ALLOWED:
            assert "error" in await renderer.render(body, {"x": [1]}, "_m_"), body
            assert (await renderer.render("{{ x }}", {"x": 1}, "_m_"))["values"] == [1], body


async def test_a_template_that_never_ends_is_ended_with_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rendering() as renderer:
        await renderer.render("1", {}, "_m_")
        first = psutil.Process(pid_of(renderer))
        monkeypatch.setattr(snippet_renderer, "RENDER_SECONDS", 0.2)
        endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
        with anyio.fail_after(PATIENCE):
            assert (await renderer.render(endless, {}, "_m_"))["error"] == "the template takes too much time or memory"
        assert not first.is_running()
        assert (await renderer.render("2", {}, "_m_"))["text"] == "2"


async def test_a_process_that_was_killed_is_replaced() -> None:
    async with rendering() as renderer:
        await renderer.render("1", {}, "_m_")
        os.kill(pid_of(renderer), signal.SIGKILL)
        assert "error" in await renderer.render("2", {}, "_m_")
        assert (await renderer.render("3", {}, "_m_"))["text"] == "3"


async def test_a_cancelled_rendering_leaves_no_half_answer_behind() -> None:
    async with rendering() as renderer:
        await renderer.render("1", {}, "_m_")
        endless = "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}"
        task = asyncio.create_task(renderer.render(endless, {}, "_m_"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await renderer.render("2", {}, "_m_"))["text"] == "2"


async def test_the_process_knows_nothing_of_the_servers_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "secret")
    async with rendering() as renderer:
        await renderer.render("1", {}, "_m_")
        assert "CANARY" not in psutil.Process(pid_of(renderer)).environ()


async def test_nothing_is_started_before_the_first_snippet_and_nothing_is_left_after() -> None:
    renderer = SnippetRenderer()
    assert renderer._process is None
    await renderer.render("1", {}, "_m_")
    process = psutil.Process(pid_of(renderer))
    await renderer.aclose()
    assert not process.is_running()
    await renderer.aclose()

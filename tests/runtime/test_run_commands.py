"""What run() makes of a command's text: fences, one way through, results, indentation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ot.runtime.engines.engine import Outcome, Reach
from ot.runtime.program import Program
from ot.runtime.runner import NO_VALUE_TEXT
from run_app import BRAVE, Calls, error_of, run_in, running_app, value_of
from stubs import StubEngine

pytestmark = pytest.mark.anyio

DATA = """
    def a_dict() -> dict:
        return {"name": "O'Neil", "quote": 'say "hi"', "nested": {"list": [1, 2]}}

    def a_list() -> list:
        return [{"a": 'x "y"'}, "é", None, True]

    def a_string() -> str:
        return '{"looks": "like json"}  \\n'

    def nothing() -> None:
        return None
"""


# ---------------------------------------------------------------- fences


@pytest.mark.scenario("000-01")
async def test_a_fence_with_a_language_comes_off(tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, "```python\n6 * 7\n```")) == "42"


@pytest.mark.scenario("000-02")
async def test_a_fence_without_a_language_comes_off(tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, "```\nx = 6\nx * 7\n```")) == "42"


@pytest.mark.scenario("000-03")
async def test_single_backticks_come_off(tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, '`brave.search(query="x")`', {"brave": BRAVE})) == "brave found x"


@pytest.mark.scenario("000-04")
@pytest.mark.parametrize(
    ("command", "value"),
    [
        ('text = "```python\\ncode\\n```"\ntext', "```python\ncode\n```"),
        ('```python\ntext = """\n```js\n1\n```\n"""\ntext\n```', "\n```js\n1\n```\n"),
        ("'`tick` and ``two``'", "`tick` and ``two``"),
        ("```\n'```'\n```", "```"),
    ],
)
async def test_fences_inside_the_code_are_data(command: str, value: str, tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, command)) == value


@pytest.mark.scenario("000-05")
async def test_a_command_without_a_fence_reaches_the_engine_as_it_is(tmp_path: Path) -> None:
    command = "  # a comment  \nx = '  two spaces  '\n\n\nx  \n"
    engine = StubEngine(answer_nothing)
    await run_in(tmp_path, command, engine=engine)
    assert [command] == [program.source for program in engine.programs]


@pytest.mark.scenario("000-06")
@pytest.mark.parametrize("wrap", ["{}", "  {}", "```\n{}\n```", "`{}`"])
async def test_the_prefix_of_old_is_answered_as_invalid_syntax(wrap: str, tmp_path: Path) -> None:
    calls = Calls()
    reply = await run_in(tmp_path, wrap.format('!onetool upper(text="hello")'), observers=[calls])
    assert "invalid syntax" in error_of(reply)
    assert "!onetool" in error_of(reply)
    assert reply.meta["error"] == "InvalidSyntax"
    assert calls.tools == []


# ---------------------------------------------------------------- one way


async def answer_nothing(program: Program, reach: Reach) -> Outcome:
    return Outcome()


async def call_search(program: Program, reach: Reach) -> Outcome:
    return Outcome(await reach.call("brave", "search", (), {"query": "test"}))


@pytest.mark.scenario("000-07")
async def test_one_call_goes_through_engine_and_door(tmp_path: Path) -> None:
    engine, calls = StubEngine(call_search), Calls()
    command, config = 'search(query="test")', {"aliases": {"search": "brave.search"}}
    reply = await run_in(tmp_path, command, {"brave": BRAVE}, config, engine=engine, observers=[calls])
    assert value_of(reply) == "brave found test"
    assert ['brave.search(query="test")'] == [program.source for program in engine.programs]
    assert calls.tools == ["brave.search"]


@pytest.mark.scenario("000-08")
async def test_a_block_of_code_goes_through_the_same_engine_and_door(tmp_path: Path) -> None:
    engine, calls = StubEngine(call_search), Calls()
    command = 'found = brave.search(query="test")\nfound'
    reply = await run_in(tmp_path, command, {"brave": BRAVE}, engine=engine, observers=[calls])
    assert value_of(reply) == "brave found test"
    assert [command] == [program.source for program in engine.programs]
    assert calls.tools == ["brave.search"]


@pytest.mark.scenario("000-07", "000-08")
@pytest.mark.parametrize("command", ['search(query="test")', 'def go():\n    return search(query="test")\n\ngo()'])
async def test_a_call_and_a_block_come_to_the_same_tool(command: str, tmp_path: Path) -> None:
    calls = Calls()
    config = {"aliases": {"search": "brave.search"}}
    assert value_of(await run_in(tmp_path, command, {"brave": BRAVE}, config, observers=[calls])) == "brave found test"
    assert calls.tools == ["brave.search"]


# ---------------------------------------------------------------- results


@pytest.mark.scenario("000-09")
async def test_the_value_of_an_expression_is_captured(tmp_path: Path) -> None:
    command, config = 'search(query="test")', {"aliases": {"search": "brave.search"}}
    assert value_of(await run_in(tmp_path, command, {"brave": BRAVE}, config)) == "brave found test"


@pytest.mark.scenario("000-10")
async def test_the_value_of_the_last_expression_is_captured(tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, "1\nx = 20\n'lost'\nx + 1")) == "21"


@pytest.mark.scenario("000-11")
@pytest.mark.parametrize(
    "command",
    ["return 21", "x = 20\nif x:\n    return x + 1\nreturn 'lost'", "return 21\n'lost'", "if 1:\n  return 21"],
)
async def test_a_returned_value_is_captured(command: str, tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, command)) == "21"


@pytest.mark.scenario("000-12")
@pytest.mark.parametrize(
    "command",
    ["x = {}\nx[0] = 1", "for i in range(3):\n    i", "def f():\n    return 1", "if 0:\n    return 1", "", "# nothing"],
)
async def test_a_program_without_a_value_says_that_it_ran(command: str, tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, command)) == NO_VALUE_TEXT
    assert "no value" in NO_VALUE_TEXT


@pytest.mark.scenario("000-13")
@pytest.mark.parametrize("command", ["None", "return None", "return", "data.nothing()", "x = 1\n[].append(x)"])
async def test_none_is_told_from_no_value(command: str, tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, command, {"data": DATA})) == "None"


@pytest.mark.scenario("000-14")
@pytest.mark.parametrize("command", ["data.a_dict()", "found = data.a_dict()\nfound"])
async def test_a_dict_is_compact_json_escaped_once(command: str, tmp_path: Path) -> None:
    text = value_of(await run_in(tmp_path, command, {"data": DATA}))
    assert text == r"""{"name":"O'Neil","quote":"say \"hi\"","nested":{"list":[1,2]}}"""


@pytest.mark.scenario("000-15")
async def test_a_list_is_compact_json_escaped_once(tmp_path: Path) -> None:
    text = value_of(await run_in(tmp_path, "data.a_list()", {"data": DATA}))
    assert text == r'[{"a":"x \"y\""},"é",null,true]'


@pytest.mark.scenario("000-16")
async def test_a_string_is_not_touched(tmp_path: Path) -> None:
    text = value_of(await run_in(tmp_path, "data.a_string()", {"data": DATA}))
    assert text == '{"looks": "like json"}  \n'


@pytest.mark.scenario("000-17")
async def test_composed_results_are_one_clean_object(tmp_path: Path) -> None:
    found = json.loads(value_of(await run_in(tmp_path, '{"health": ot.health(), "config": ot.config()}')))
    assert {"health", "config"} == set(found)
    assert found["health"]["registry"]["status"] == "ok"
    assert found["config"]["aliases"] == {}


# ---------------------------------------------------------------- indentation


@pytest.mark.scenario("000-18")
async def test_a_program_that_is_indented_as_a_whole_runs(tmp_path: Path) -> None:
    command = '    x = [\n  1,\n    ]\n    if x:\n        text = """\n      kept"""\n    text'
    assert value_of(await run_in(tmp_path, command)) == "\n      kept"


@pytest.mark.scenario("000-19")
@pytest.mark.parametrize(
    "command",
    [
        "if True:\n\tx = 20\n        y = 1\nx + y",
        "\tx = 20\n        y = 1\n\tx + y",
        "for n in range(2):\n\tif n:\n\t    total = 20 + n\ntotal",
        "\tdef f():\n\t\treturn 21\n        f()",
    ],
)
async def test_tabs_and_spaces_together_run(command: str, tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, command)) == "21"


@pytest.mark.scenario("000-20")
@pytest.mark.parametrize(
    "command",
    [
        "x = 20\n\n\ny = 1\n\nx + y\n\n",
        "    x = 20\n\n    y = 1\n  \n    x + y\n \t \n",
        "def f():\n\n    x = 20\n  \n\n    return x + 1\n\n\nf()",
    ],
)
async def test_empty_lines_break_nothing(command: str, tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, command)) == "21"


# ---------------------------------------------------------------- and around it


async def test_prints_come_before_the_value_in_a_text_of_their_own(tmp_path: Path) -> None:
    reply = await run_in(tmp_path, "print('one')\nprint('two', 3)\n[4]")
    assert reply.texts == ("one\ntwo 3\n", "[4]")


async def test_what_was_printed_before_a_failure_is_told(tmp_path: Path) -> None:
    reply = await run_in(tmp_path, "print('so far')\n1/0")
    assert reply.is_error
    assert reply.texts[0] == "so far\n"


async def test_every_reply_names_the_engine_and_the_run(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        good, bad = await app.run("1"), await app.run("1/0")
    assert good.meta["engine"] == bad.meta["engine"] == "portable"
    assert good.meta["run"] != bad.meta["run"]
    assert (bad.meta["error"], "error" in good.meta) == ("ProgramFailed", False)


@pytest.mark.parametrize("end", ["\r\n", "\r"])
async def test_line_ends_of_other_systems_keep_their_lines(end: str, tmp_path: Path) -> None:
    command = end.join(["x = 20", "if x:", "    x += 1", 'search(query="x")', "1/0"])
    reply = await run_in(tmp_path, command, {"brave": BRAVE}, {"aliases": {"search": "brave.search"}})
    assert error_of(reply) == "ZeroDivisionError: division by zero\n  line 5: 1/0"


async def test_a_command_that_is_too_long_is_not_even_parsed(tmp_path: Path) -> None:
    config = {"limits": {"command_bytes": 100}}
    async with running_app(tmp_path, config=config) as app:
        assert value_of(await app.run("#" * 98 + "\n1")) == "1"
        reply = await app.run("é" * 51)
    assert "102 bytes" in error_of(reply)
    assert "limits.command_bytes" in error_of(reply)


async def test_text_that_is_no_unicode_is_a_failure_and_no_crash(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={"snippets": {"hi": {"body": '"hi {{ name }}"'}}}) as app:
        for command in ("x = '\ud800'", "\ud800", "$hi name=\udfff", "$\ud800", "`\ud800`"):
            for text in (await app.run(command)).texts:
                assert text.encode()
        assert value_of(await app.run("1 + 1")) == "2"

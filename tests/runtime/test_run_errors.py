"""What a failed run says: type, message, the line of the model's own code, and what exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from ot.runtime.engines.engine import Engine
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from run_app import BRAVE, BUNDLED, CONTEXT7, error_of, run_in, running_app, value_of

pytestmark = pytest.mark.anyio

FAILING = """
    class VendorError(Exception):
        pass

    def builtin(*, text: str = "no such thing") -> None:
        raise KeyError(text)

    def own() -> None:
        raise VendorError("the vendor said no")

    def bare() -> None:
        raise VendorError

    def unusual() -> None:
        b"\\xff".decode()

    def exits() -> None:
        raise SystemExit(3)

    async def interrupts() -> None:
        raise KeyboardInterrupt

    async def cancels() -> None:
        import asyncio
        raise asyncio.CancelledError

    def secretive() -> None:
        try:
            raise ValueError("inner secret")
        except ValueError as error:
            raise RuntimeError("outer") from error
"""


# ---------------------------------------------------------------- the scenarios


@pytest.mark.scenario("000-21")
@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("x = 1\ny = 2\nz = = 3", 3),
        ("```python\nx = 1\ny = (\n```", 2),
        ("    x = 1\n\n    y = = 2", 3),
        ("\tif 1:\n\t    y = = 2", 2),
        ("def f(:\n    pass", 1),
    ],
)
async def test_a_syntax_error_names_the_line_of_the_code_as_it_was_given(
    command: str, line: int, tmp_path: Path
) -> None:
    reply = await run_in(tmp_path, command)
    assert f"\n  line {line}: " in error_of(reply)
    assert "SyntaxError" in error_of(reply)


@pytest.mark.scenario("000-22")
@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("x = 1\n\n1 / 0", "ZeroDivisionError: division by zero\n  line 3: 1 / 0"),
        ("    raise ValueError('my words')", "ValueError: my words\n  line 1: raise ValueError('my words')"),
        ("def f():\n    return {}['k']\n\nf()", "KeyError: 'k'\n  line 2: return {}['k']"),
        ("assert False", "AssertionError\n  line 1: assert False"),
    ],
)
async def test_a_failure_says_type_message_and_line(command: str, text: str, tmp_path: Path) -> None:
    assert text == error_of(await run_in(tmp_path, command))


@pytest.mark.scenario("000-23")
async def test_a_tool_that_does_not_exist_is_answered_with_those_that_do(tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, 'serch(query="x")', {"brave": BRAVE, "context7": CONTEXT7}))
    assert "NameError: name 'serch' is not defined" in text
    assert "did you mean brave.search?" in text
    listed = text.partition("Available tools: ")[2].partition(" and ")[0].split(", ")
    assert listed[0] == "brave.search"
    assert {"brave.web_search", "context7.search"} < {*listed}


@pytest.mark.scenario("000-23")
async def test_of_many_tools_the_nearest_twenty_are_listed_and_the_rest_counted(tmp_path: Path) -> None:
    many = "\n".join(f"def tool{number:02}(): return 1" for number in range(45))
    # What the server brings itself counts too.
    async with running_app(tmp_path, {"many": many}) as app:
        every = len(app.picture.registry.tools())
        text = error_of(await app.run("tool45()"))
    listed, _, more = text.partition("Available tools: ")[2].splitlines()[0].rpartition(" and ")
    assert len(listed.split(", ")) == 20
    assert more == f"{every - 20} more"


@pytest.mark.scenario("000-24")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("brave.web_search()", "is missing 1 required argument: 'query'"),
        ("brave.web_search(query='x', wrong=1)", "got an unexpected keyword argument 'wrong'"),
        ("brave.web_search(query=1, count='x')", "argument 'query'"),
        ("brave.web_search(query=1, count='x')", "; argument 'count'"),
        ("brave.web_search('x', 1, 2)", "takes 2 arguments but 3 were given"),
        ("brave.web_search('x', query='y')", "got multiple values for argument 'query'"),
        ("brave.web_search(query='x', q='y')", "'query' and 'q' both mean 'query'"),
    ],
)
async def test_wrong_arguments_are_answered_with_the_signature(call: str, words: str, tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, call, {"brave": BRAVE}))
    assert text.startswith("TypeError: brave.web_search()")
    assert words in text
    assert "Expected: brave.web_search(query: str, count: int = 2) -> list" in text


# ---------------------------------------------------------------- a tool that fails


@pytest.mark.parametrize(
    ("tool", "head"),
    [
        ("builtin", "KeyError: "),
        ("own", "RuntimeError: VendorError: the vendor said no"),
        ("bare", "RuntimeError: VendorError"),
        ("unusual", "RuntimeError: UnicodeDecodeError: "),
        ("exits", "RuntimeError: SystemExit: 3"),
        ("interrupts", "RuntimeError: KeyboardInterrupt"),
        ("cancels", "RuntimeError: CancelledError"),
        ("secretive", "RuntimeError: outer"),
    ],
)
async def test_whatever_a_tool_raises_is_an_exception_of_the_program(tool: str, head: str, tmp_path: Path) -> None:
    command = f"x = 1\nbad.{tool}()"
    async with running_app(tmp_path, {"bad": FAILING}) as app:
        reply = await app.run(command)
        assert error_of(reply).startswith(head)
        assert f"line 2: bad.{tool}()" in error_of(reply)
        assert "inner secret" not in error_of(reply)
        gathered = await app.run(f"import asyncio\nawait asyncio.gather(bad.{tool}(), ot.version())")
        assert error_of(gathered).startswith(head)
        assert value_of(await app.run("1 + 1")) == "2"


async def test_a_program_can_catch_what_a_tool_raises(tmp_path: Path) -> None:
    command = "try:\n    bad.builtin(text='key')\nexcept KeyError as error:\n    found = str(error)\nfound"
    assert "key" in value_of(await run_in(tmp_path, command, {"bad": FAILING}))


# ---------------------------------------------------------------- lists of what exists


async def test_at_most_twenty_names_are_listed_the_nearest_first(tmp_path: Path) -> None:
    source = "def read_settings(): return 1\n" + "\n".join(f"def fetch_{n:03}(): return {n}" for n in range(299))
    async with running_app(tmp_path, {"many": source}) as app:
        text = error_of(await app.run("many.read_setings()"))
        assert "did you mean 'read_settings'? Available functions: read_settings, " in text
        assert "and 280 more" in text
        assert text.count(", ") < 25
        text = error_of(await app.run("read_setings()"))
        assert "did you mean many.read_settings? Available tools: many.read_settings, " in text
        assert text.count(", ") < 25


async def test_an_error_is_cut_to_a_readable_length(tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, "raise ValueError('x' * 100_000)"))
    assert len(text) < 9000


async def test_a_hint_names_the_pack_that_was_meant(tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, "brav.search(query='x')", {"brave": BRAVE}))
    assert f"there is no pack 'brav', did you mean 'brave'? Available packs: {', '.join(BUNDLED)}" in text


@pytest.mark.parametrize(
    ("member", "hint"),
    [
        ("get_current_time(timezone='x')", "'import time' hides the pack 'time', which has get_current_time(): "),
        ("nothing()", "'import time' hides the pack 'time': "),
    ],
)
async def test_a_module_that_hides_a_pack_of_its_name_is_answered_with_how_to_reach_the_pack(
    member: str, hint: str, tmp_path: Path
) -> None:
    packs = {"time": "def get_current_time(*, timezone: str) -> str: return timezone"}
    async with running_app(tmp_path, packs) as app:
        text = error_of(await app.run(f"import time\ntime.{member}"))
        assert text.startswith("AttributeError: module 'time' has no attribute ")
        assert f"{hint}leave the import out, or rename the module: import time as time_module" in text
        followed = "import time as time_module\ntime.get_current_time(timezone='x')"
        assert value_of(await app.run(followed)) == "x"
        assert "hides" not in error_of(await app.run("import math\nmath.nothing()"))


async def test_two_blocks_are_answered_with_what_to_give(tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, "```\nx = 1\n```\nand\n```\ny = 2\n```"))
    assert "one fenced block" in text


@pytest.mark.parametrize("engine", [PortableEngine, ExactEngine])
async def test_a_variable_that_hides_a_pack_is_named(engine: type[Engine], tmp_path: Path) -> None:
    hides = "hides the pack 'brave', which has search(): give the variable another name, such as brave_1"
    async with running_app(tmp_path, {"brave": BRAVE}, engine=engine()) as app:
        text = error_of(await app.run("x = 1\nfor brave in ['a']:\n    brave.search(query='x')"))
        assert f"the variable 'brave' (line 2) {hides}" in text
        text = error_of(await app.run("def f():\n    brave = brave.search(query='x')\nf()"))
        assert f"the variable 'brave' (line 2) {hides}" in text
        await app.run("brave = 'a'", session="s")
        text = error_of(await app.run("brave.search(query='x')", session="s"))
        assert f"the variable 'brave' (an earlier run) {hides}" in text
        for own in ("brave = 'a'\nbrave.nothing()", "other = 'a'\nother.search(query='x')", "[].search()"):
            assert "hides" not in error_of(await app.run(own))


async def test_a_module_that_the_engine_lacks_and_that_is_a_pack_is_told_as_one(tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, "import calendar\ncalendar.search(query='x')", {"calendar": BRAVE}))
    assert "'import calendar' hides the pack 'calendar': leave the import out" in text

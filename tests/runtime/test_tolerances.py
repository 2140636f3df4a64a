"""The table of tolerances: what each row reads otherwise than it is written, and what it must not touch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ot.errors import InvalidSyntax
from ot.registry.tool import Parameter, Tool
from ot.runtime.engines.engine import Engine
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.program import Program, parse_program
from ot.runtime.runner import NO_VALUE_TEXT
from ot.runtime.snippets import expand_aliases
from ot.runtime.tolerances import TABLE, arguments_in_dict, program_in, tolerate, unwrap
from ot.stats.rows import RunRow
from run_app import error_of, run_in, running_app, value_of

pytestmark = pytest.mark.anyio

NAMES = ("shop", "web", "ot", "time")
SHOP = {
    "shop": '''
        """A shop."""

        def product(*, id: int) -> dict:
            """Return a product."""
            return {"id": id, "name": f"product {id}"}

        def save(*, record: dict) -> int:
            """Keep a record."""
            return len(record)
    '''
}
ENGINES: dict[str, Callable[[], Engine]] = {
    "portable": lambda: PortableEngine(processes=4),
    "exact": lambda: ExactEngine(processes=4),
}


def read(code: str, **aliases: str) -> Program:
    text, rows = unwrap(code, aliases)
    program = tolerate(expand_aliases(program_in(text, parse_program, aliases), aliases), NAMES)
    return replace(program, tolerated=(*rows, *program.tolerated))


def untouched(code: str) -> None:
    """Hold that no row of the table changes *code*."""
    program = read(code)
    assert (program.source, program.prelude, program.tolerated) == (code, (), ())


# ---------------------------------------------------------------- the rows, as a reply tells of them

EXAMPLES = {
    "prose": ("Let me see:\n```python\n20 + 1\n```\nThat is all.", "21"),
    "json": ('{"tool": "shop.product", "arguments": {"id": 21}}', '{"id":21,"name":"product 21"}'),
    "run-call": ('run("20 + 1")', "21"),
    "pack-import": ("import shop\nshop.product(id=2)['id']", "2"),
    "call-tool": ('call_tool("shop.product", {"id": 3})["id"]', "3"),
    "python-help": ("dir(shop)", '["product","save"]'),
    "main-block": ('def main():\n    return 21\n\nif __name__ == "__main__":\n    main()', "21"),
    "asyncio-run": ("import asyncio\ndef main():\n    return 21\nasyncio.run(main())", "21"),
    "bare-coroutine": ("async def main():\n    return 21\nmain()", "21"),
    "missing-import": ('json.loads("[21]")', "[21]"),
    "json-constant": ("[true, null]", "[true,null]"),
    "dict-argument": ('shop.product({"id": 4})["id"]', "4"),
    "last-assignment": ("x = 20\ny = x + 1", "21"),
    "finished-value": ("import asyncio\nheld = [shop.product(id=5)]\n(await asyncio.gather(*held))[0]['id']", "5"),
}


class Rows:
    """An observer that keeps what it is told of runs."""

    def __init__(self) -> None:
        self.tolerated: list[tuple[str, ...]] = []

    def run_finished(self, run: RunRow) -> None:
        self.tolerated.append(run.tolerated)


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_reply_names_the_rows_by_which_its_program_was_read(engine: str, tmp_path: Path) -> None:
    assert EXAMPLES.keys() == TABLE.keys()
    async with running_app(tmp_path, SHOP, engine=ENGINES[engine]()) as app:
        rows = Rows()
        app.picture.runner._observers = (rows,)
        for row, (command, answer) in EXAMPLES.items():
            reply = await app.run(command)
            assert (value_of(reply), reply.meta.get("tolerated")) == (answer, [row]), command
        assert "tolerated" not in (await app.run("1 + 1")).meta
        assert rows.tolerated == [*((row,) for row in EXAMPLES), ()]


async def test_a_program_that_fails_names_its_rows_too(tmp_path: Path) -> None:
    reply = await run_in(tmp_path, "import shop\njson.loads('x' + 1)", SHOP)
    assert error_of(reply)
    assert reply.meta["tolerated"] == ["pack-import", "missing-import"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("from onetool import (\n    shop,\n    web,\n)\n1/0", "line 5: 1/0"),
        ('x = call_tool(\n    "shop.product",\n    {"id": 1},\n)\n1/0', "line 5: 1/0"),
        ('x = 1\n\nif __name__ == "__main__":\n    # now\n    x = 2\n    1/0', "line 6: 1/0"),
        ('x = 1\nif __name__ == "__main__":\n    t = """\n  kept"""\n    1/0', "line 5: 1/0"),
        ("Text:\n```\nx = json.dumps(1)\n1/0\n```", "line 2: 1/0"),
        ("async def main():\n    pass\nmain()\n1/0", "line 4: 1/0"),
        ("import asyncio\nasync def f():\n    1/0\nawait f()\nasyncio.run(\n    f()\n)", "line 3: 1/0"),
    ],
)
async def test_an_error_names_the_line_that_the_model_wrote(
    engine: str, command: str, line: str, tmp_path: Path
) -> None:
    reply = await run_in(tmp_path, command, SHOP | {"web": SHOP["shop"]}, engine=ENGINES[engine]())
    assert error_of(reply) == f"ZeroDivisionError: division by zero\n  {line}"


# ---------------------------------------------------------------- texts that hold a program


@pytest.mark.parametrize(
    "text",
    [
        "Two:\n```python\n1\n```\nand\n```python\n2\n```",
        "Shell:\n```bash\nls\n```",
        "A page:\n```html\n<p>\n```",
        'page = """\n```python\ndrop()\n```\n"""\nprint(page',
        "page = '''\n```\ndrop()\n```\n'''\nprint(page",
        "Open:\n```python\n1",
        "x = 1\n```\nand\n```\ny = 2",
        "print(1)\n```\n1\n```",
        "```\n1\n```\nprint(2)",
    ],
)
def test_prose_with_anything_but_one_block_of_python_is_no_program(text: str) -> None:
    with pytest.raises(InvalidSyntax):
        read(text)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ('{"command": "1 + 1"}', "1 + 1"),
        (' {"code": "x = 1\\nx"}\n', "x = 1\nx"),
        ('{"command": "```python\\n1\\n```"}', "1"),
        ('{"tool": "web.get", "arguments": {"q": "a", "n": [true, null]}}', "web.get(q='a', n=[True, None])"),
        ('{"name": "web.get", "arguments": {}}', "web.get()"),
        ('{"name": "run", "arguments": {"command": "1"}}', "1"),
    ],
)
def test_json_around_a_command_comes_off(text: str, command: str) -> None:
    assert unwrap(text, ()) == (command, ("json",))


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '{"command": 5}',
        '{"command": "1", "more": 2}',
        '{"name": "web.get", "arguments": "text"}',
        '{"name": "web.get"}',
        '{"tool": "import os", "arguments": {}}',
        '{"tool": "web", "arguments": {}}',
        '{"tool": "web.get", "arguments": {"class": 1}}',
        '{"tool": "web.get", "arguments": {"a b": 1}}',
        '{"tool": "web.get", "arguments": {"n": NaN}}',
        "{x: 1 for x in 'ab'}",
        '["command"]',
        "{" * 5000 + "}" * 5000,
    ],
)
def test_any_other_json_is_data(text: str) -> None:
    assert unwrap(text, ()) == (text, ())


@pytest.mark.parametrize("code", ["run('1').x", "run(x)", "run('1', 2)", "def run(x):\n    return x\nrun('1')"])
def test_run_is_only_the_tool_s_name_when_it_is_the_whole_program(code: str) -> None:
    untouched(code)


def test_a_run_that_is_an_alias_is_that() -> None:
    assert read("run('1')", run="web.get").source == "web.get('1')"


# ---------------------------------------------------------------- packs


@pytest.mark.parametrize(
    ("code", "source"),
    [
        ("import shop", "pass"),
        ("import shop as s", "s = shop"),
        ("import json, shop as s", "import json; s = shop"),
        ("from onetool import shop, web as w", "w = web"),
        ("from onetool import *", "pass"),
        ("from shop import product as p, save", "p = shop.product; save = shop.save"),
        ("from onetool.shop import product", "product = shop.product"),
        ("from ot import help", "help = ot.help"),
        ("def f():\n    import shop; return 1", "def f():\n    pass; return 1"),
        ("from tools import (\n  shop,\n)\n1", "pass\n\n\n1"),
    ],
)
def test_an_import_of_a_pack_names_what_is_there(code: str, source: str) -> None:
    program = read(code)
    assert (program.source, program.written, program.tolerated) == (source, code, ("pack-import",))


@pytest.mark.parametrize(
    "code",
    [
        "import time\ntime.sleep(0)",
        "from time import sleep",
        "import json",
        "import shopkeeper",
        "from . import shop",
        "from shop import *",
        "from numpy import shop",
        "from onetool import nothing",
        "from onetool import (\n  shop,\n); x = '''\n'''",
        "text = 'import shop'",
    ],
)
def test_other_imports_are_python_s_own(code: str) -> None:
    untouched(code)


@pytest.mark.parametrize(
    ("code", "source"),
    [
        ('call_tool("shop.product", {"id": 1})', 'shop.product(**{"id": 1})'),
        ("await mcp.call_tool('web.get', arguments=given)", "await web.get(**given)"),
        ("ot.call_tool('web.get')", "web.get()"),
        ("call_tool('a.b', {'x': call_tool('c.d')})", "a.b(**{'x': c.d()})"),
    ],
)
def test_call_tool_is_the_call_that_it_names(code: str, source: str) -> None:
    program = read(code)
    assert (program.source, program.tolerated) == (source, ("call-tool",))


@pytest.mark.parametrize(
    "code",
    [
        "def call_tool(name, given):\n    return 1\ncall_tool('a.b', {})",
        "call_tool(name, {})",
        "call_tool('product', {})",
        "call_tool('a.b; import os', {})",
        "call_tool('a.b', id=1)",
        "call_tool('a.b', {}, 3)",
        "client = make()\nclient.call_tool('a.b', {})",
        "web.call_tool('a.b', {})",
        "'call_tool'",
    ],
)
def test_a_call_tool_that_is_the_program_s_own_or_names_no_tool_is_left_alone(code: str) -> None:
    assert "call-tool" not in read(code).tolerated
    assert read(code).source == code


async def test_a_function_that_a_session_has_defined_is_called(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        for name in ("call_tool", "run"):
            await app.run(f"def {name}(name, given=0):\n    return 'own'", session="s")
            assert value_of(await app.run(f"{name}('a.b')", session="s")) == "own"


# ---------------------------------------------------------------- main()


@pytest.mark.parametrize(
    "code",
    [
        'if __name__ == "__main__":\n    a()\nelse:\n    b()',
        'if __name__ == "__main__":\n    a()\nb()',
        'if __name__ != "__main__":\n    a()',
        'if __name__ == "main":\n    a()  # "__main__"',
        'def f():\n    if __name__ == "__main__":\n        a()',
        "# __main__",
    ],
)
def test_a_main_block_that_is_more_than_the_end_stays_a_block(code: str) -> None:
    untouched(code)


def test_a_main_block_keeps_its_texts_comments_and_lines() -> None:
    code = 'if __name__ == "__main__":\n    # first\n    text = """\n  kept"""\n    @d\n    def f(): pass  # last'
    assert read(code).source == '\n\ntext = """\n  kept"""\n@d\ndef f(): pass  # last'
    assert read('if __name__ == "__main__": main()').source == "main()"


@pytest.mark.parametrize(
    "code",
    [
        "import asyncio\nasync def main(): pass\nasyncio.run(main())",
        "import asyncio\nasync def main(): pass\nawait main()\nasyncio.run(main(), debug=True)",
        "import asyncio\nasync def main(): pass\ndef go():\n    asyncio.run(main())\ngo()\nawait main()",
        "import asyncio\nasyncio.run(coroutine)",
    ],
)
def test_an_asyncio_run_that_python_can_do_is_left_to_it(code: str) -> None:
    untouched(code)


MAIN = "async def main(): pass\n"


@pytest.mark.parametrize(
    ("code", "source"),
    [
        ("main()", "await main()"),
        ("return main()", "return await main()"),
        ("print(1, main())", "print(1, await main())"),
        ("x = main()\nprint(x)", "x = await main()\nprint(x)"),
        ("if 1:\n    main()", "if 1:\n    await main()"),
    ],
)
def test_a_coroutine_that_nobody_awaits_is_awaited(code: str, source: str) -> None:
    program = read(MAIN + code)
    assert (program.source, program.tolerated) == (MAIN + source, ("bare-coroutine",))


@pytest.mark.parametrize(
    "code",
    [
        "await main()",
        "x = main()\nawait x",
        "import asyncio\nx = main()\nawait asyncio.gather(x, main())",
        "import asyncio\nasyncio.run(main())",
        "def f():\n    main()\nf()",
        "tasks = [main(), main()]",
        "main = 1\nmain()",
        "async def many():\n    yield 1\nmany()",
        "@cached\nasync def later(): pass\nlater()",
    ],
)
def test_a_coroutine_that_somebody_else_may_await_is_left_alone(code: str) -> None:
    untouched(MAIN + code)


# ---------------------------------------------------------------- names that nobody defines


@pytest.mark.parametrize(
    ("code", "statement"),
    [
        ("json.dumps(1)", "import json"),
        ("Counter('a')", "from collections import Counter"),
        ("datetime.datetime.now()", "import datetime"),
        ("datetime.now()", "from datetime import datetime"),
        ("datetime(2024, 1, 1)", "from datetime import datetime"),
        ("string.digits", "import string"),
        ("urllib.parse.quote('a')", "import urllib.parse"),
        ("def f(x: Optional[int]): pass", "from typing import Optional"),
        ("null", "null = None"),
    ],
)
def test_a_name_of_the_standard_library_is_imported(code: str, statement: str) -> None:
    program = read(code)
    assert [text for _, text in program.prelude] == [statement]
    assert program.source == code


@pytest.mark.parametrize(
    "code",
    [
        "json = {'dumps': 1}\njson.get(1)",
        "import simplejson as json\njson.dumps(1)",
        "for re in []:\n    re.x",
        "def f(math):\n    return math.x",
        "time.sleep(0)",
        "print(json)",
        "json + json.x",
        "string.upper()",
        "html.find('a')",
        "copy.name",
        "numpy.array([])",
        "unknown.x",
        "true = 1\ntrue",
        "'json.dumps'",
    ],
)
def test_a_name_that_may_be_something_else_is_not_imported(code: str) -> None:
    untouched(code)


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_variable_of_the_session_is_not_hidden_by_a_module(engine: str, tmp_path: Path) -> None:
    async with running_app(tmp_path, engine=ENGINES[engine]()) as app:
        await app.run("class Own:\n    dumps = 21\njson = Own()", session="s")
        assert value_of(await app.run("json.dumps", session="s")) == "21"


# ---------------------------------------------------------------- help() and dir()


@pytest.mark.parametrize(
    ("source", "read_as"),
    [
        ("help(shop)", "ot.help(query='shop')"),
        ("x = 1; print(help(shop.product))", "x = 1; print(ot.help(query='shop.product'))"),
        ("help('find a file')", "ot.help(query='find a file')"),
        ("help(\n    shop.save\n)", "ot.help(\n    query='shop.save'\n)"),
    ],
)
def test_help_of_a_pack_asks_ot_help(source: str, read_as: str) -> None:
    program = read(source)
    assert (program.source, program.tolerated) == (read_as, ("python-help",))


@pytest.mark.parametrize(
    "code",
    [
        "help(len)",
        "help()",
        "dir()",
        "x = 1\ndir(x)",
        "def help(x):\n    return x\nhelp(shop)",
        "shop = 1\ndir(shop)",
        "ot.help(query='shop')",
        "'help(shop)'",
    ],
)
def test_help_of_anything_else_is_left_alone(code: str) -> None:
    untouched(code)


# ---------------------------------------------------------------- what a program answers


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("command", "texts"),
    [
        ("x = [1]", ("[1]",)),
        ("x: int = 1", ("1",)),
        ("x = 1\nx += 1", ("2",)),
        ("x, y = 1, 2", ("[1,2]",)),
        ("x = None", ("None",)),
        ("print('a')\nx = 1", ("a\n",)),
        ("print('a')", ("a\n",)),
        ("print('a')\nreturn None", ("a\n",)),
        ("for i in [1]:\n    print(i)", ("1\n",)),
        ("print('a')\nFalse", ("a\n", "false")),
        ("print()\nNone", ("\n", "None")),
        ("if 1:\n    return 5\nx = 1", ("5",)),
        ("x = {}\nx['a'] = 1", (NO_VALUE_TEXT,)),
        ("x = 1\nfor i in [1]:\n    x = i", (NO_VALUE_TEXT,)),
        ("f = lambda: 1", (NO_VALUE_TEXT,)),
        ("x: int", (NO_VALUE_TEXT,)),
        ("x = 1\n__format__ = 'yml'", (NO_VALUE_TEXT,)),
        ("def f():\n    x = 1", (NO_VALUE_TEXT,)),
    ],
)
async def test_the_last_assignment_is_the_answer_of_a_program_without_any_other(
    engine: str, command: str, texts: tuple[str, ...], tmp_path: Path
) -> None:
    assert texts == (await run_in(tmp_path, command, engine=ENGINES[engine]())).texts


@pytest.mark.parametrize("engine", ENGINES)
async def test_an_assignment_in_a_session_is_for_the_next_run(engine: str, tmp_path: Path) -> None:
    async with running_app(tmp_path, engine=ENGINES[engine]()) as app:
        assert value_of(await app.run("x = 1", session="s")) == NO_VALUE_TEXT


async def test_an_answer_that_nobody_asked_for_and_that_cannot_be_told_is_no_failure(tmp_path: Path) -> None:
    config = {"limits": {"value_bytes": 1 << 20}}
    deep = "x = []\nfor i in range(10000):\n    x = [x]\ny = x"
    broken = "class Own:\n    def __str__(self):\n        1/0\nx = Own()"
    async with running_app(tmp_path, config=config, engine=ExactEngine(processes=4)) as app:
        for command in ("x = 'a' * (3 << 20)", deep, broken):
            reply = await app.run(command)
            assert value_of(reply) == NO_VALUE_TEXT, command
            assert "tolerated" not in reply.meta


async def test_what_the_portable_engine_would_tell_otherwise_is_not_answered(tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, "x = range(3)")) == NO_VALUE_TEXT


# ---------------------------------------------------------------- one dict as the only argument


def tool(*parameters: Parameter) -> Tool:
    return Tool("web", "get", parameters)


@pytest.mark.parametrize(
    "annotation",
    ["str", "int | None", "list[dict]", "Optional[str]", "Literal['a', 'b']", "Union[int, str]", "tuple[int, int]"],
)
def test_a_dict_that_no_parameter_takes_names_the_arguments(annotation: str) -> None:
    given = {"a": 1}
    assert arguments_in_dict(tool(Parameter("a", annotation=annotation)), [given], {}) == given


@pytest.mark.parametrize(
    ("parameters", "args", "kwargs"),
    [
        ([Parameter("a", annotation="dict")], [{"a": 1}], {}),
        ([Parameter("a", annotation="dict[str, int] | None")], [{"a": 1}], {}),
        ([Parameter("a", annotation="Any")], [{"a": 1}], {}),
        ([Parameter("a")], [{"a": 1}], {}),
        ([Parameter("a", annotation="Settings")], [{"a": 1}], {}),
        ([Parameter("a", annotation="str"), Parameter("b", annotation="dict")], [{"a": 1}], {}),
        ([Parameter("a", annotation="str"), Parameter("more", "kwargs", "str")], [{"a": 1}], {}),
        ([Parameter("a", annotation="str")], [{"a": 1, "b": 2}], {}),
        ([Parameter("a", annotation="str")], [{}], {}),
        ([Parameter("a", annotation="str")], [{"a": 1}, 2], {}),
        ([Parameter("a", annotation="str")], [{"a": 1}], {"b": 1}),
        ([Parameter("a", annotation="str")], [["a"]], {}),
        ([Parameter("a", annotation="str")], [{1: 1}], {}),
    ],
)
def test_a_dict_that_a_parameter_may_take_is_an_argument(
    parameters: list[Parameter], args: list[Any], kwargs: dict[str, Any]
) -> None:
    assert arguments_in_dict(tool(*parameters), args, kwargs) is None


async def test_a_tool_that_takes_an_object_gets_it(tmp_path: Path) -> None:
    assert value_of(await run_in(tmp_path, 'shop.save({"record": 1, "id": 2})', SHOP)) == "2"


# ---------------------------------------------------------------- nothing more than that


@pytest.mark.parametrize(
    "code",
    [
        "1 + 1",
        "import json\nprint(json.dumps({'command': '1'}))",
        "async def f():\n    return 1\nawait f()",
        "for shop in []:\n    shop.product()",
        "",
        "# nothing",
        '"""{"command": "1"}"""',
        "'```python'",
    ],
)
def test_a_plain_program_is_read_as_it_is_written(code: str) -> None:
    untouched(code)


def test_an_alias_is_read_before_the_table() -> None:
    program = read("json(1)\nre.x", json="web.get", re="web.get")
    assert (program.source, program.prelude) == ("web.get(1)\nre.x", (("re", "import re"),))


def test_the_reference_names_every_row() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "run.md").read_text(encoding="utf-8")
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `") and line.count(" | ") == 2]
    assert rows == list(TABLE)

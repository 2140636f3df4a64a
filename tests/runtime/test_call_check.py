"""A program's calls are checked before the first one is made: what the door would refuse, and nothing else."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import re
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_programs import PACKS, all_programs

from docs_blocks import all_pages, blocks
from ot.config.models import Limits
from ot.errors import InvalidArguments, ToolError, UnknownTool
from ot.execution.caller import Caller
from ot.execution.tool_executor import ToolExecutor
from ot.registry.proxy_target import BACKEND, PROXY, ProxyTarget
from ot.registry.schema_types import parameters_of_schema
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_loader import tools_of_functions
from ot.registry.tool_registry import Pack, ToolRegistry
from ot.runtime.call_check import find_mistakes
from ot.runtime.engines.engine import Outcome, Reach
from ot.runtime.engines.failures import builtin_exception
from ot.runtime.pack_proxy import PackProxy
from ot.runtime.program import Program, parse_program
from ot.runtime.project_proxy import ProjectProxy
from ot.runtime.run_budget import RunBudget, RunStart
from ot.runtime.runner import Runner
from run_app import error_of, run_in, running_app, value_of
from stubs import StubBackend, StubEngine

pytestmark = pytest.mark.anyio

TESTS = Path(__file__).parents[1]
NOTHING = "nothing has run: correct this and run the whole program again"
SHOP = '''
    __ot_read_only__ = ["listOrders", "order"]
    __ot_destructive__ = ["removeOrder"]

    def listOrders(*, status: str = "", perPage: int = 10) -> list:
        """List orders."""
        return [status, perPage]

    def order(*, id: int, full: bool = False) -> dict:
        """Return one order."""
        return {"id": id, "full": full}

    def removeOrder(*, id: int) -> str:
        """Remove an order."""
        return f"removed {id}"
'''


async def no_answer(program: Program, reach: Reach) -> Outcome:
    return Outcome()


# ---------------------------------------------------------------- what a program is told


@pytest.mark.usefixtures("each_engine")
async def test_all_mistakes_of_a_program_are_in_one_reply_and_nothing_has_run(tmp_path: Path) -> None:
    program = "\n".join([
        "open('made.txt', 'w').write('x')",
        "print('begun')",
        "shop.listOrders()",
        "rows = shop.getOrders(status='open')",
        "for id in [1, 2]:",
        "    shop.order(number=id, depth=2)",
        "shop.listOrders(perPage='many', stats='open')",
        "shops.order(id=1)",
        "shop.removeOrder(order=3)",
    ])  # fmt: skip
    async with running_app(tmp_path, {"shop": SHOP}) as app:
        reply = await app.run(program)
        assert not (app.paths.cwd / "made.txt").exists()
    text = error_of(reply)
    assert reply.texts == (text,), "something was printed"
    assert [int(line) for line in re.findall(r"^  line (\d+): ", text, re.M)] == [4, 6, 7, 8, 9]
    assert "'getOrders' is not in pack 'shop', did you mean 'listOrders'?" in text
    assert "\nshop.listOrders(status: str = '', perPage: int = 10) -> list\n" in text, "the nearest one's signature"
    assert "unexpected keyword argument 'number'; got an unexpected keyword argument 'depth'" in text
    assert "got an unexpected keyword argument 'stats', did you mean 'status'?" in text
    assert "there is no pack 'shops', did you mean 'shop'?" in text
    assert "shop.removeOrder() got an unexpected keyword argument 'order'; is missing" in text
    assert text.endswith(NOTHING)
    assert (reply.meta["error"], reply.cause, reply.calls) == ("WrongCalls", "UnknownTool", 0)


@pytest.mark.usefixtures("each_engine")
async def test_names_with_one_possible_meaning_are_accepted_and_the_reply_says_so(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"shop": SHOP}, {"policy": {"allow": ["shop.removeOrder"]}}) as app:
        reply = await app.run("shop.list_orders(per_page=3)")
        assert reply.texts == (
            '["",3]',
            "note: shop.listOrders: list_orders() was taken as listOrders()\n"
            "shop.listOrders: per_page= was taken as perPage=",
        )
        reply = await app.run("find = shop.ListOrders\n[find(status='open'), shop.order(order_id=7)['id']]")
        assert reply.texts[0] == '[["open",10],7]'
        assert "order_id= was taken as id=" in reply.texts[1]
        reply = await app.run("shop.remove_order(ID=5)")
        assert reply.texts[0] == "removed 5"
        assert "unexpected keyword argument 'order_id'" in error_of(await app.run("shop.removeOrder(order_id=5)"))
        assert "unexpected keyword argument 'order_id'" in error_of(await app.run("shop.order(order_id='seven')"))


async def test_a_mistake_that_is_made_twice_in_the_same_words_is_told_once(tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, "shpo.order(id=1)\nshpo.order(id=2)\nx = shop.orderr\n", {"shop": SHOP}))
    assert text.count("name 'shpo' is not defined") == 1
    assert text.count("'orderr' is not in pack") == 1


async def test_a_reply_about_very_many_mistakes_is_cut_and_still_says_that_nothing_has_run(
    tmp_path: Path,
) -> None:
    text = error_of(await run_in(tmp_path, "\n".join(f"shop.nothing{n}()" for n in range(300)), {"shop": SHOP}))
    assert text.endswith(f"… [cut]\n{NOTHING}")


async def test_a_keyword_that_is_there_twice_is_one_of_the_mistakes(tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, "shop.order(id=1, id=2)\nshop.order()", {"shop": SHOP}))
    assert "SyntaxError: keyword argument repeated: id\n  line 1: " in text
    assert "is missing 1 required argument: 'id'" in text


async def test_what_the_engine_lacks_is_told_in_the_same_reply(tmp_path: Path) -> None:
    text = error_of(await run_in(tmp_path, "import numpy\nshop.order()", {"shop": SHOP}))
    assert "the portable engine cannot run this" in text
    assert "is missing 1 required argument: 'id'" in text


# ---------------------------------------------------------------- what is left to the door


@pytest.mark.parametrize(
    "program",
    [
        "shop = {}\nshop.get(1)",
        "def f(shop):\n    return shop.keys()\nf({})",
        "[shop.upper() for shop in ['a']]",
        "(shop := 'a').upper()\nshop.lower()",
        "with open('a') as shop:\n    shop.readlines()",
        "import string as shop\nshop.capwords('a')",
        "shop.order(**{'x': 1})",
        "shop.order(*[1, 2, 3])",
        "try:\n    shop.nothing()\nexcept Exception:\n    shop.neither()",
        "def f():\n    shop.nothing()\ntry:\n    f()\nexcept AttributeError:\n    pass",
        "from contextlib import suppress\nwith suppress(Exception):\n    shop.nothing()",
        "import asyncio\nawait asyncio.gather(shop.order(), return_exceptions=True)",
        "if hasattr(shop, 'nothing'):\n    shop.nothing()",
        "globals()['shop'] = 'a'\nshop.upper()",
        "from shutil import *\ndisk_usage.x()",
        "shop.__class__",
        "shop.order(3)",
        "shop.order(id)",
        "shop.order({'id': 3})",
        "given = {'id': 3}\nshop.order(given)",
        "shop.order(id=True, full=0)",
        "shop.order(id=int('3'))",
        "proj.path",
        "proj.LIST()",
        "len.__name__.upper()",
        "bad.anything(1)",
    ],
)
async def test_what_only_the_call_can_judge_is_left_to_it(program: str, tmp_path: Path) -> None:
    packs = {"shop": SHOP, "bad": "def f(: pass"}
    reply = await run_in(tmp_path, program, packs, engine=StubEngine(no_answer))
    assert not reply.is_error, reply.texts


async def test_a_name_that_an_earlier_run_of_the_session_assigned_is_left_alone(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"shop": SHOP}) as app:
        assert "'nothing' is not in pack" in error_of(await app.run("shop.nothing()", session="s"))
        await app.run("shop = 'a'", session="s")
        assert value_of(await app.run("shop.upper()", session="s")) == "A"
        assert "'upper' is not in pack" in error_of(await app.run("shop.upper()", session="other"))


async def test_what_the_policy_hides_keeps_its_own_error(tmp_path: Path) -> None:
    config = {"policy": {"deny": ["shop.order"]}, "packs": {"disabled": ["git"]}}
    async with running_app(tmp_path, {"shop": SHOP}, config) as app:
        assert "shop.order is denied by the policy" in error_of(await app.run("shop.order(wrong=1)"))
        assert "the pack 'git' is disabled" in error_of(await app.run("git.log()"))


async def test_a_run_in_the_background_is_checked_too(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"shop": SHOP}) as app:
        text = error_of(await app.run("print(1)\nshop.nothing()", background=RunStart("run", 1, 5.0)))
    assert text.endswith(NOTHING)


# ---------------------------------------------------------------- correct programs


def sections(path: Path) -> list[str]:
    """Return the programs of a file in which each has a headline."""
    parts = re.split(r"^=== .*\n", path.read_text("utf-8"), flags=re.M)
    return [part for part in parts if part.strip()]


def pack_of(name: str, functions: Mapping[str, Any]) -> Pack:
    return Pack(name, "local", lambda: tools_of_functions(name, functions))


def packs_of_programs() -> list[Pack]:
    """Return the packs that the programs of tests/programs call."""
    spec = importlib.util.spec_from_file_location("program_packs", TESTS / "programs" / "program_packs.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {"shop": module.Shop(), "web": module.Web()}
    return [pack_of(name, dict(_methods(pack))) for name, pack in found.items()]


def _methods(pack: Any) -> Iterator[tuple[str, Any]]:
    return ((name, method) for name, method in inspect.getmembers(pack, inspect.ismethod) if not name.startswith("_"))


OF_PAGES = {
    "git_server": ["git_log"], "notes": ["create_entities", "read_graph"], "everything": ["echo"],
    "weather": ["forecast"], "clock": ["get_current_time"], "browser": ["screenshot"],
}  # fmt: skip
"""Tools of servers and packs that pages and docstrings make their readers add."""


def packs_of_pages() -> list[Pack]:
    parameters = (Parameter("first", default="None"), Parameter("more", "kwargs"))
    return [
        Pack(pack, "local", lambda pack=pack, names=names: [Tool(pack, name, parameters) for name in names])
        for pack, names in OF_PAGES.items()
    ]


def examples(registry: ToolRegistry) -> Iterator[str]:
    """Yield the examples in the docstrings of all tools."""
    for tool in registry.tools():
        if found := re.search(r"^Examples?:\n(.*?)(?:\n\n[A-Z]\w+:\n|\Z)", tool.doc, re.M | re.S):
            yield inspect.cleandoc(found[1])


def calls_in_pages(packs: Collection[str]) -> set[str]:
    """Return the calls of *packs* that pages write out whole within a sentence."""
    found = {
        call for page in all_pages() for call in re.findall(r"`(\w+\.\w+\([^`]+=[^`]+\))`", page.read_text("utf-8"))
    }
    whole = {call for call in found if not re.search(r"\.\.\.|…|=[,)]|proj\.", call)}
    return {call for call in whole if call.partition(".")[0] in packs}


async def test_no_correct_program_of_500_is_refused(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    of_programs = [program for file in sorted((TESTS / "programs").glob("*.txt")) for program in sections(file)]
    of_models = [found.program for found in all_programs() if not found.is_mistake]
    of_pages = [block.text for block in blocks("python") if "ot_sdk" not in block.text]  # that is for packs' own code
    count, refused = 0, list[str]()
    async with running_app(tmp_path, engine=StubEngine(no_answer)) as app:
        known = app.picture.registry.packs.values()
        of_tools = [*examples(app.picture.registry), *calls_in_pages(app.picture.registry.packs)]
        of_files = sections(TESTS / "file_programs" / "programs.txt")
        for programs, packs in (
            (of_programs, packs_of_programs()),
            ([*of_files, *of_pages, *of_tools], packs_of_pages()),
        ):
            app.picture.runner.executor.registry = ToolRegistry([*known, *packs])
            refused += [text for program in programs if (text := await refusal(app, program))]
            count += len(programs)
    async with running_app(tmp_path / "models", PACKS, engine=StubEngine(no_answer)) as app:
        refused += [text for program in of_models if (text := await refusal(app, program))]
        count += len(of_models)
    assert not refused, "\n\n".join(refused)
    assert count >= 500


async def refusal(app: Any, program: str) -> str:
    """Return how *program* is refused, or nothing."""
    reply = await app.run(program)
    return f"{program}\n{error_of(reply)}" if reply.is_error else ""


# ---------------------------------------------------------------- the check says what the door says

SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "perPage": {"type": "integer", "maximum": 10},
        "sort": {"enum": ["up", "down"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["query"],
    "additionalProperties": False,
}
TOOLS = (
    Tool("t", "read", (Parameter("path", "any", "str"), Parameter("limit", "any", "int", "1")), read_only=True),
    Tool("t", "write", (Parameter("path", "any", "str"), Parameter("content", "any", "str | bytes"))),
    Tool("t", "more", (Parameter("first", "any", "Literal['a', 'b']"), Parameter("rest", "kwargs"))),
    Tool(
        "t", "findAll", parameters_of_schema(SCHEMA)[0], source=f"{PROXY}t", backend=BACKEND, input_schema=SCHEMA,
        target=ProxyTarget("t", "", "findAll").text(), read_only=True,
    ),
)  # fmt: skip
NAMES = ["read", "Read", "write", "more", "findAll", "find_all", "find", "nothing"]
PARAMETERS = [
    "path",
    "Path",
    "p",
    "limit",
    "content",
    "first",
    "query",
    "q",
    "per_page",
    "perPage",
    "sort",
    "tags",
    "x",
]
VALUES = ["'a'", "''", "'up'", "3", "-3", "30", "2.5", "True", "None", "b'a'", "['a']", "[1]", "('a',)", "{'a'}", "{}",
          "{'path': 'a'}", "{'query': 'a'}"]  # fmt: skip
LITERALS = st.sampled_from(VALUES)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[str], dict[str, str]]:
    name = draw(st.sampled_from(NAMES))
    args = draw(st.lists(LITERALS, max_size=2))
    return name, args, draw(st.dictionaries(st.sampled_from(PARAMETERS), LITERALS, max_size=3))


def reach_of(tools: tuple[Tool, ...]) -> PackProxy:
    backend = StubBackend({tool.full_name: "done" for tool in tools})
    registry = ToolRegistry([Pack("t", "local", lambda: tools)])
    executor = ToolExecutor(registry, {"in_process": backend, BACKEND: backend})
    limits = Limits()
    return PackProxy(
        executor, ProjectProxy({}), RunBudget(limits, None, None), limits, caller=Caller("test"), run_id="run"
    )


async def told_by_door(name: str, args: list[str], kwargs: Mapping[str, str]) -> str:
    """Return the words with which the door refuses a call for its names or arguments, or nothing."""
    try:
        await reach_of(TOOLS).call("t", name, [*map(eval, args)], {key: eval(text) for key, text in kwargs.items()})
    except (UnknownTool, InvalidArguments) as error:
        return str(builtin_exception(error))
    except ToolError:
        pass
    return ""


async def told_by_check(program: str) -> str:
    found = await find_mistakes(parse_program(program), reach_of(TOOLS))
    return found[0].message if found else ""


def write_call(name: str, args: list[str], kwargs: Mapping[str, str]) -> str:
    return f"t.{name}({', '.join([*args, *(f'{key}={text}' for key, text in kwargs.items())])})"


@given(calls())
@settings(max_examples=150, deadline=None)
def test_the_check_refuses_what_the_door_refuses_in_the_same_words(
    call: tuple[str, list[str], dict[str, str]],
) -> None:
    assert asyncio.run(told_by_check(write_call(*call))) == asyncio.run(told_by_door(*call))


@given(calls(), st.data())
@settings(max_examples=100, deadline=None)
def test_a_value_that_is_not_known_yet_is_never_a_reason_to_refuse(
    call: tuple[str, list[str], dict[str, str]], data: st.DataObject
) -> None:
    name, args, kwargs = call
    hide = st.booleans()
    hidden = [data.draw(hide, label=text) for text in (*args, *kwargs.values())]
    shown = [
        f"value({text})" if is_hidden else text
        for text, is_hidden in zip((*args, *kwargs.values()), hidden, strict=True)
    ]
    program = write_call(name, shown[: len(args)], dict(zip(kwargs, shown[len(args) :], strict=True)))
    told = asyncio.run(told_by_check(f"def value(given):\n    return given\n{program}"))
    assert not told or asyncio.run(told_by_door(*call))


# ---------------------------------------------------------------- what it costs

TWENTY_LINES = """
rows = []
for path in shop.listOrders(status="open", perPage=50):
    text = str(path)
    lines = text.splitlines()
    head, *rest = [line.split(",") for line in lines]
    for line in rest:
        rows.append(dict(zip(head, line)))
total = {}
for row in rows:
    key = row["region"]
    total[key] = total.get(key, 0) + float(row["amount"])
best = sorted(total.items(), key=lambda item: -item[1])[:5]
first = shop.order(id=1, full=True)
names = {entry["name"] for entry in [first]}
found = shop.listOrders(status="closed")
by_name = {}
for hit in found:
    by_name.setdefault(hit, []).append(len(hit))
last = shop.order(id=len(found))
{"best": best, "names": sorted(names), "found": len(found), "last": last}
"""


async def test_checking_calls_takes_no_longer_than_compiling_the_program(
    tmp_path: Path,
) -> None:
    async with running_app(tmp_path, {"shop": SHOP}, engine=StubEngine(no_answer)) as app:
        reach = PackProxy(
            app.picture.runner.executor, ProjectProxy({}), RunBudget(Limits(), None, None), Limits(),
            caller=Caller("test"), run_id="run",
        )  # fmt: skip
        program, small = parse_program(TWENTY_LINES), parse_program("1+1")
        long = short = control = 0.0
        for _ in range(3):
            long, short, control = await seconds(reach, program), await seconds(reach, small), compiling()
            if long < 1.2 * control and short < 0.05 * control:
                return
    pytest.fail(f"{long * 1e6:.0f} and {short * 1e6:.0f} µs, where compiling takes {control * 1e6:.0f}")


async def seconds(reach: PackProxy, program: Program, rounds: int = 50) -> float:
    found = list[float]()
    for _ in range(rounds):
        started = time.perf_counter()
        assert not await find_mistakes(program, reach)
        found.append(time.perf_counter() - started)
    return min(found[1:])


def compiling(rounds: int = 50) -> float:
    found = list[float]()
    for _ in range(rounds):
        started = time.perf_counter()
        compile(TWENTY_LINES, "program", "exec")
        found.append(time.perf_counter() - started)
    return min(found)


async def test_an_equal_program_is_read_and_checked_once_as_long_as_the_registry_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    read, look = Runner._read, PackProxy.foresee

    def reading(runner: Runner, code: str, *rest: Any) -> Program:
        done.append("read")
        return read(runner, code, *rest)

    async def looking(packs: PackProxy, pack: str, *rest: Any, **more: Any) -> Any:
        done.append("checked")
        return await look(packs, pack, *rest, **more)

    monkeypatch.setattr(Runner, "_read", reading)
    monkeypatch.setattr(PackProxy, "foresee", looking)
    async with running_app(tmp_path, {"shop": SHOP}, engine=StubEngine(no_answer)) as app:
        for _ in range(3):
            assert not (await app.run("shop.order(id=1)")).is_error
        assert done == ["read", "checked"]
        for _ in range(2):
            assert (await app.run("shop.order(number=1, depth=2)")).is_error, "a mistake is found each time"
        assert done == ["read", "checked", "read", "checked", "checked"]
        done.clear()
        await app.reload()
        assert not (await app.run("shop.order(id=1)")).is_error
        assert done == ["read", "checked"]


async def test_completed_names_and_denied_tools_are_checked_at_each_run(tmp_path: Path) -> None:
    denied = {"policy": {"deny": ["shop.listOrders"]}}
    async with running_app(tmp_path, {"shop": SHOP}, denied, engine=StubEngine(no_answer)) as app:
        runner = app.picture.runner
        for program in ("shop.order(id=1, f=True)", "shop.listOrders(nothing=1)", "shop.order(id=1)"):
            assert not (await app.run(program)).is_error
        assert [program.source for program in runner._faultless] == ["shop.order(id=1)"]

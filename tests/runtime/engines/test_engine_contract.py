"""What every engine promises to whoever runs a program on it, tried against each of them alike."""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import itertools
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest
from engine_bench import ENGINES, Bench

from ot.config.models import Limits
from ot.errors import LimitExceeded, Overloaded, ProgramFailed, RunError, ToolFailed
from ot.logs import current_run
from ot.registry.tool_registry import Pack, ToolRegistry
from ot.runtime.engines.engine import NO_VALUE, Engine, Outcome
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from pace import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=ENGINES)
async def engine(request: pytest.FixtureRequest) -> AsyncGenerator[Engine]:
    """An engine of all tests here; those that end it, or its processes, are in test_engine_ends.py."""
    engine = ENGINES[request.param]()
    try:
        yield engine
    finally:
        await engine.aclose()


@pytest.fixture
async def bench(engine: Engine) -> Bench:
    return Bench(engine)


# ---------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", 2),
        ("x = [1, 'é', None, True, 1.5]\nx", [1, "é", None, True, 1.5]),
        ("{'a': {'b': (1, 2)}}", {"a": {"b": (1, 2)}}),
        ("None", None),
        ("t.echo()", None),
        ("return 5", 5),
        ("return", None),
        ("if True:\n    return 5\n6", 5),
        ("if False:\n    return 5\n6", 6),
        ("if False:\n    return 5", NO_VALUE),
        ("x = 1", NO_VALUE),
        ("for i in [1]:\n    i", NO_VALUE),
        ("def f():\n    return 1", NO_VALUE),
        ("", NO_VALUE),
        ("def f():\n    return 7\nf()", 7),
        ("2 ** 70", 2**70),
    ],
)
async def test_a_program_comes_to_its_value(bench: Bench, code: str, value: Any) -> None:
    assert value == (await bench.run(code)).value


async def test_a_value_that_cannot_leave_is_a_failure(bench: Bench) -> None:
    deep = "x = []\nfor i in range(10000):\n    x = [x]\nx"
    with contextlib.suppress(RunError):
        assert (await bench.run(deep)).value is not NO_VALUE
    assert (await bench.run("1")).value == 1


# ---------------------------------------------------------------- prints


async def test_prints_of_a_program_are_captured_beside_its_value(bench: Bench) -> None:
    outcome = await bench.run("print('one', 2, sep='-')\nprint('é', end='')\n3")
    assert (outcome.printed, outcome.value) == ("one-2\né", 3)


async def test_prints_are_cut_at_their_limit_and_marked(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limits, "print_bytes", 100)
    outcome = await bench.run("for i in range(1000):\n    print('x' * 9)\n'done'")
    printed, _, mark = outcome.printed.partition("\n[")
    assert outcome.value == "done"
    assert len(printed) <= 100
    assert mark.startswith("print output truncated: 9,9")


async def test_what_was_printed_before_a_failure_is_known(bench: Bench) -> None:
    error = await bench.error("print('so far')\n1/0")
    assert error.printed == "so far\n"


# ---------------------------------------------------------------- calls


async def test_a_plain_call_is_a_value(bench: Bench) -> None:
    assert (await bench.run("x = t.echo(value=[1])\nx + t.echo([2])")).value == [1, 2]


async def test_a_call_works_in_every_place(bench: Bench) -> None:
    code = """
    def f(x):
        return t.echo(value=x)

    class C:
        def m(self):
            return t.echo(value="method")

    g = lambda x: t.echo(value=x)
    keep = t.echo
    pack = t
    text = f"{t.echo(value='f')}"
    [f(1), C().m(), g(2), keep(value=3), pack.echo(value=4), [t.echo(value=i) for i in range(2)], text]
    """
    assert (await bench.run(code)).value == [1, "method", 2, 3, 4, [0, 1], "f"]


async def test_awaited_and_gathered_calls_are_values(bench: Bench) -> None:
    code = """
    import asyncio
    first = await t.echo(value=1)
    a, b = await asyncio.gather(t.echo(value=2), t.echo(value=3))
    rest = await asyncio.gather(*[t.echo(value=i) for i in range(4, 6)])
    [first, a, b, *rest, t.echo(value=6)]
    """
    assert (await bench.run(code)).value == [1, 2, 3, 4, 5, 6]


async def test_calls_are_made_in_the_context_of_their_own_run(bench: Bench) -> None:
    async def run(name: str) -> Any:
        current_run.set(name)
        code = "import asyncio\n[t.whose(), *await asyncio.gather(t.whose(), t.whose())]"
        return (await bench.run(code)).value

    names = [f"run {number}" for number in range(4)]
    one_by_one = [await asyncio.create_task(run(name)) for name in names]
    at_once = await asyncio.gather(*map(run, names))
    assert one_by_one == at_once == [[name] * 3 for name in names]


async def test_ten_gathered_calls_are_under_way_at_once(bench: Bench) -> None:
    async def meet(value: Any = None) -> Any:
        bench.alive += 1
        if bench.alive == 10:
            bench.release.set()
        await bench.release.wait()
        return value

    bench.backend._answers["t.echo"] = meet
    with anyio.fail_after(PATIENCE):
        outcome = await bench.run("import asyncio\nawait asyncio.gather(*[t.echo(value=i) for i in range(10)])")
    assert outcome.value == list(range(10))


async def test_gathered_calls_keep_to_those_allowed_at_a_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limits, "calls_in_flight", 3)
    most = 0

    async def watched(value: Any = None) -> Any:
        nonlocal most
        bench.alive += 1
        most = max(most, bench.alive)
        await asyncio.sleep(0.01)
        bench.alive -= 1
        return value

    bench.backend._answers["t.echo"] = watched
    code = "import asyncio\nawait asyncio.gather(*[t.echo(value=i) for i in range(20)])"
    assert (await bench.run(code)).value == list(range(20))
    assert most == 3


async def test_a_failed_call_can_be_caught_or_not(bench: Bench) -> None:
    code = """
    found = []
    for call in (lambda: t.fail(message="mine"), lambda: t.nothing(), lambda: t.echo(wrong=1)):
        try:
            call()
        except ValueError as error:
            found.append(f"value {error}")
        except AttributeError as error:
            found.append("attribute")
        except TypeError as error:
            found.append("type")
    found
    """
    assert (await bench.run(code)).value == ["value mine", "attribute", "type"]
    error = await bench.error("x = 1\nt.fail(message='mine')")
    assert isinstance(error, ProgramFailed)
    assert (error.kind, error.message, error.line) == ("ValueError", "mine", 2)


KINDS = sorted(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
)


async def test_whatever_kind_of_error_a_tool_has_the_program_gets_an_exception(bench: Bench) -> None:
    async def fail(kind: str) -> None:
        raise ToolFailed("t.fail", kind, "my words")

    bench.backend._answers["t.fail"] = lambda message: fail(message)
    for kind in [*KINDS, "VendorError", "print", "__import__", ""]:
        error = await bench.error(f"t.fail(message={kind!r})")
        assert isinstance(error, ProgramFailed), kind
        assert "my words" in error.message, kind
        outcome = await bench.run(
            f"try:\n    t.fail(message={kind!r})\nexcept Exception as error:\n    text = str(error)\ntext"
        )
        assert "my words" in outcome.value, kind


async def test_one_failure_of_many_gathered_is_raised_and_the_rest_is_ended(bench: Bench) -> None:
    error = await bench.error("import asyncio\nawait asyncio.gather(t.wait(), t.fail(message='mine'), t.wait())")
    assert isinstance(error, ProgramFailed)
    assert (error.kind, error.message) == ("ValueError", "mine")
    assert bench.alive == 0


async def test_a_pack_cannot_be_given_to_a_tool(bench: Bench) -> None:
    for argument in ("t", "[t]", "{'a': t}", "(1, t)", "print"):
        error = await bench.error(f"t.echo(value={argument})")
        assert isinstance(error, ProgramFailed), argument
        assert error.kind == "TypeError", argument
    assert bench.called == []


async def test_a_tool_gets_a_copy(bench: Bench) -> None:
    got: list[Any] = []

    async def keep(value: Any) -> Any:
        got.append(value)
        value.append("changed")
        return value

    bench.backend._answers["t.echo"] = keep
    outcome = await bench.run("x = [1]\ny = t.echo(value=x)\ny.append(2)\n[x, y]")
    assert outcome.value == [[1], [1, "changed", 2]]
    assert got == [[1, "changed"]]


async def test_a_constant_of_a_pack_is_a_value(bench: Bench) -> None:
    bench.executor.registry = ToolRegistry([Pack("proj", "local", lambda: []), bench._pack()])
    assert str((await bench.run("proj.here")).value) == "/srv/here"
    assert (await bench.run("str(proj.here / 'src')")).value == "/srv/here/src"
    error = await bench.error("proj.here()")
    assert isinstance(error, ProgramFailed)


# ---------------------------------------------------------------- limits


async def test_the_budget_of_calls_is_what_it_says(bench: Bench) -> None:
    assert (await bench.run("[t.echo(value=i) for i in range(10)]", calls=10)).value == list(range(10))
    error = await bench.error("[t.echo(value=i) for i in range(11)]", calls=10)
    assert isinstance(error, LimitExceeded)
    assert error.limit == "calls"


@pytest.mark.parametrize("catch", ["Exception", "BaseException", ""])
async def test_a_program_cannot_catch_the_end_of_its_budget(bench: Bench, catch: str) -> None:
    code = f"""
    count = 0
    while True:
        try:
            t.echo()
        except {catch}:
            count += 1
    """
    error = await bench.error(code.replace("except :", "except:"), calls=5)
    assert isinstance(error, LimitExceeded)
    assert error.limit == "calls"
    assert len(bench.called) == 5


async def test_calls_that_are_gathered_count_towards_the_limit_of_calls(bench: Bench) -> None:
    code = (
        "import asyncio\ntry:\n    await asyncio.gather(*[t.echo() for i in range(9)])\nexcept Exception:\n    pass\n1"
    )
    error = await bench.error(code, calls=5)
    assert isinstance(error, LimitExceeded)
    assert len(bench.called) <= 5


async def test_looking_at_functions_costs_no_call_but_is_bounded(bench: Bench) -> None:
    assert (await bench.run("f = t.echo\ng = t.echo\nf(value=1) + g(value=2)", calls=2)).value == 3
    error = await bench.error("while True:\n    f = t.echo", calls=5, cpu_seconds=2)
    assert isinstance(error, LimitExceeded)


async def test_the_wall_clock_ends_a_run_that_waits(bench: Bench) -> None:
    with anyio.fail_after(PATIENCE):
        error = await bench.error("try:\n    t.wait()\nexcept BaseException:\n    pass\nt.wait()", run_seconds=0.3)
    assert isinstance(error, LimitExceeded)
    assert error.limit == "run_seconds"
    assert bench.alive == 0


@pytest.mark.parametrize("sleep", ["import time\ntime.sleep(0.01)\n1", "import asyncio\nawait asyncio.sleep(0.01)\n1"])
async def test_a_program_may_sleep_by_time_or_asyncio_and_goes_on(bench: Bench, sleep: str) -> None:
    assert (await bench.run(sleep)).value == 1


@pytest.mark.parametrize("sleep", ["import time\ntime.sleep(3600)", "import asyncio\nawait asyncio.sleep(3600)"])
async def test_a_program_may_not_sleep_for_ever(bench: Bench, sleep: str) -> None:
    with anyio.fail_after(PATIENCE):
        error = await bench.error(sleep, run_seconds=0.3)
    assert isinstance(error, LimitExceeded)
    assert error.limit == "run_seconds"


@pytest.mark.parametrize(
    "code", ["while True:\n    pass", "try:\n    while True:\n        pass\nexcept BaseException:\n    pass"]
)
async def test_the_cpu_clock_ends_a_run_that_computes(bench: Bench, code: str) -> None:
    with anyio.fail_after(PATIENCE):
        error = await bench.error(code, cpu_seconds=0.3)
    assert isinstance(error, LimitExceeded)
    assert error.limit == "cpu_seconds"
    assert (await bench.run("1")).value == 1


async def test_waiting_for_tools_is_no_computing(bench: Bench) -> None:
    assert (await bench.run("[t.slow(value=i) for i in range(4)]", cpu_seconds=0.2)).value == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "code",
    ["x = 'a' * 10 ** 10", "x = []\nwhile True:\n    x.append('a' * 100_000 + str(len(x)))", "x = [0] * 10 ** 9"],
)
async def test_a_program_that_takes_too_much_memory_is_ended(bench: Bench, code: str) -> None:
    with anyio.fail_after(PATIENCE):
        error = await bench.error(code, memory_mb=16)
    assert "memory" in f"{error} {getattr(error, 'hint', '')}".lower()
    assert (await bench.run("1")).value == 1


async def test_a_program_that_recurses_without_end_fails_alone(bench: Bench) -> None:
    error = await bench.error("def f(n):\n    return f(n + 1)\nf(0)")
    assert "RecursionError" in str(error)


async def test_an_exception_that_only_sounds_like_a_limit_is_the_program_s_own(bench: Bench) -> None:
    for text in ("suspension", "too many suspensions", "time limit exceeded", "memory"):
        error = await bench.error(f"raise RuntimeError({text!r})")
        assert isinstance(error, ProgramFailed), text
        assert (error.kind, error.message) == ("RuntimeError", text)
    assert isinstance(await bench.error("raise TimeoutError('mine')"), ProgramFailed)


# ---------------------------------------------------------------- ends


async def test_a_cancelled_run_leaves_no_call_behind(bench: Bench) -> None:
    for code in ("t.wait()", "import asyncio\nawait asyncio.gather(t.wait(), t.wait())"):
        bench.started.clear()
        task = asyncio.create_task(bench.run(code))
        with anyio.fail_after(PATIENCE):
            await bench.started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert bench.alive == 0
    assert (await bench.run("1")).value == 1


async def test_every_run_has_a_namespace_of_its_own(bench: Bench) -> None:
    await bench.run("x = 1\nimport math")
    for code in ("x", "math"):
        error = await bench.error(code)
        assert isinstance(error, ProgramFailed)
        assert error.kind == "NameError"


async def test_runs_at_the_same_time_do_not_see_each_other(bench: Bench) -> None:
    async def one(number: int) -> Outcome:
        return await bench.run(f"x = {number}\nt.slow()\nprint(x)\nx")

    outcomes = await asyncio.gather(*(one(number) for number in range(12)))
    assert [(number, f"{number}\n") for number in range(12)] == [(o.value, o.printed) for o in outcomes]


async def test_a_run_that_finds_no_place_is_told_so() -> None:
    engine = PortableEngine(processes=1, queue_seconds=0.1)
    bench = Bench(engine)
    try:
        task = asyncio.create_task(bench.run("t.wait()"))
        with anyio.fail_after(PATIENCE):
            await bench.started.wait()
            assert isinstance(await bench.error("1"), Overloaded)
            bench.release.set()
            assert (await task).value == "released"
            assert (await bench.run("1")).value == 1
    finally:
        await engine.aclose()


# ---------------------------------------------------------------- what is told beside the value


async def test_magic_variables_are_told(bench: Bench) -> None:
    outcome = await bench.run("__format__ = 'yml'\n__sanitize__ = True\n1")
    assert (outcome.format, outcome.sanitize, outcome.value) == ("yml", True, 1)
    outcome = await bench.run("if False:\n    __format__ = 'yml'\n1")
    assert (outcome.format, outcome.sanitize) == (None, None)
    outcome = await bench.run("__format__ = t.echo(value='raw')\nreturn 1")
    assert (outcome.format, outcome.value) == ("raw", 1)


@pytest.mark.parametrize(
    ("code", "kind", "line"),
    [
        ("x = 1\n\n1/0", "ZeroDivisionError", 3),
        ("def f():\n    return {}['k']\n\n\nf()", "KeyError", 2),
        ("x = [\n  1,\n  missing,\n]", "NameError", 3),
        ("# é\ns = '''\n\n'''\nint('x')", "ValueError", 5),
        ("t.echo()\nt.fail()", "ValueError", 2),
        ("import asyncio\nawait asyncio.gather(\n    t.echo(),\n    t.fail())", "ValueError", None),
        ("t.echo(\n    value=1,\n    wrong=2)", "TypeError", 1),
        ("if True:\n    raise ValueError('x')", "ValueError", 2),
        ("x = 1\nx.nothing", "AttributeError", 2),
        ("x = 1\nt.nothing", "AttributeError", 2),
    ],
)
async def test_a_failure_names_its_kind_and_line(bench: Bench, code: str, kind: str, line: int | None) -> None:
    error = await bench.error(code)
    assert isinstance(error, ProgramFailed)
    assert error.kind == kind
    assert error.line == line if line is not None else error.line in (2, 3, 4)


VALUES = ["[1]", "{'a': 1}", "'x'", "1", "None"]
STYLES = {
    "gathered later": "calls = [t.echo(value=V), t.echo(value=V)]\n(await asyncio.gather(*calls))[1]",
    "one gathered later": "calls = [t.echo(value=V)]\n(await asyncio.gather(*calls))[0]",
    "variables gathered": "a = t.echo(value=V)\nb = t.echo(value=V)\n(await asyncio.gather(a, b))[0]",
    "a variable awaited": "call = t.echo(value=V)\nawait call",
    "a task": "task = asyncio.create_task(t.echo(value=V))\nawait task",
    "in time": "await asyncio.wait_for(t.echo(value=V), timeout=5)",
    "as completed": "[await done for done in asyncio.as_completed([t.echo(value=V)])][0]",
}
OF_CPYTHON = {
    "an element awaited": "calls = [t.echo(value=V)]\nawait calls[0]",
    "each awaited": "calls = [t.echo(value=V)]\n[await call for call in calls][0]",
    "a group": "async with asyncio.TaskGroup() as group:\n    task = group.create_task(t.echo(value=V))\ntask.result()",
    "waited for": "tasks = [asyncio.ensure_future(t.echo(value=V))]\ndone, _ = await asyncio.wait(tasks)\n"
    "done.pop().result()",
    "waited for as it is": "done, _ = await asyncio.wait([t.echo(value=V)])\ndone.pop().result()",
    "shielded": "await asyncio.shield(t.echo(value=V))",
    "run": "def main():\n    return t.echo(value=V)\nasyncio.run(main())",
    "of a plain function": "def get():\n    return t.echo(value=V)\nawait get()",
    "own coroutine beside": "async def own():\n    return await t.echo(value=V)\n"
    "call = t.echo(value=V)\n(await asyncio.gather(call, own()))[1]",
}
"""Styles whose values the portable engine cannot see in the text of a program, or that it lacks."""
FORGOTTEN_STAR = (
    "calls = [t.echo(value=1)]\nawait asyncio.gather(calls)",
    "call = t.echo(value=1)\nawait asyncio.gather([call])",
    "call = t.echo(value=1)\nawait asyncio.gather(c for c in [call])",
    "await asyncio.gather([t.echo(value=1)])",
    "await asyncio.gather([t.echo(value=1)], [t.echo(value=2)])",
)


async def test_asyncio_takes_the_value_of_a_plain_call(bench: Bench) -> None:
    styles = STYLES if bench.engine.name == "portable" else STYLES | OF_CPYTHON
    for style, value in itertools.product(styles, VALUES):
        outcome = await bench.run("import asyncio\n" + styles[style].replace("V", value))
        assert (outcome.value, outcome.tolerated) == (ast.literal_eval(value), ("finished-value",)), style


async def test_what_is_awaited_in_its_own_time_is_no_value_yet(bench: Bench) -> None:
    code = (
        "import asyncio\nasync def own():\n    return 1\nawait asyncio.gather(own(), t.echo(value=2))\nawait t.echo()"
    )
    assert (await bench.run(code)).tolerated == ()


async def test_what_cannot_be_awaited_tells_how_calls_are_awaited(bench: Bench) -> None:
    codes = [*FORGOTTEN_STAR]
    if bench.engine.name == "portable":
        unseen = ("an element awaited", "each awaited", "of a plain function")
        codes += [OF_CPYTHON[style].replace("V", "1") for style in unseen]
    for code in codes:
        error = await bench.error(f"import asyncio\n{code}")
        assert isinstance(error, ProgramFailed), code
        assert "await the call itself: await asyncio.gather(*" in error.hint, code


async def test_a_program_that_returns_may_annotate_its_variables(bench: Bench) -> None:
    for code in (
        "n: int = 20\nif n:\n    m: int = n + 1\nreturn m",
        "later: int\nlater = 21\nreturn later",
        "class A:\n    x: int = 21\nreturn A.x",
    ):
        assert (await bench.run(code)).value == 21


async def test_a_program_that_returns_may_import_all_of_a_module() -> None:
    engine = ExactEngine(processes=2)
    try:
        bench = Bench(engine)
        assert (
            await bench.run("from math import *\nif 1:\n    from os.path import *\nreturn [floor(2.5), join]")
        ).value
        error = await bench.error("x = 1\nfrom nothing_like_it import *\nreturn x")
    finally:
        await engine.aclose()
    assert isinstance(error, ProgramFailed)
    assert (error.kind, error.line) == ("ModuleNotFoundError", 2)


async def test_health_names_the_engine(bench: Bench) -> None:
    health = await bench.engine.health()
    assert (health.name, health.status) == (bench.engine.name, "ok")

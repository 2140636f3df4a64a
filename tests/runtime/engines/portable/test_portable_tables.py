"""The portable engine's tables of what differs, and its workers that die while they wait."""

from __future__ import annotations

import ast
import asyncio
import builtins
import gc
import os
import runpy
import signal
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic_monty import CollectString, Monty, MontyError

from ot.runtime.engines.portable.gaps import find_gaps
from ot.runtime.engines.portable.gaps.library import BUILTINS, INSTEAD_OF_NAME, LACKING_ATTRIBUTES, METHODS
from ot.runtime.engines.portable.gaps.rules import MODULES, RULES
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.engines.portable.portable_run import STILLBORN_SECONDS
from ot.runtime.engines.portable.ready_sessions import ReadySessions
from ot.runtime.engines.portable.refusals import refusal
from run_app import running_app, value_of
from workers.process_watch import assert_gone, below_this

pytestmark = pytest.mark.anyio

# There, and refused all the same: the engine ignores or answers them differently, or the server gives it no such thing.
REFUSED_THOUGH_THERE = frozenset({"re.A", "re.ASCII", "sys.argv", "sys.executable", "sys.platform"})
NOT_OF_THE_LANGUAGE = frozenset({"copyright", "credits", "license"})  # made by site.py for people at a prompt


@pytest.fixture(scope="module")
def pool() -> Iterator[Monty]:
    with Monty(min_processes=1, max_processes=1) as pool:
        yield pool


def value(pool: Monty, source: str) -> Any:
    with pool.checkout() as session:
        return session.feed_run(source, print_callback=CollectString())


def error(pool: Monty, source: str) -> str:
    """Return what the engine says against *source*, or nothing."""
    try:
        value(pool, source + "\nNone")
    except MontyError as failed:
        return str(failed)
    return ""


def message(pool: Monty, source: str) -> str:
    """Return the message of the exception that *source* ends with."""
    return error(pool, source).rpartition("Error: ")[2]


def lacks(pool: Monty, source: str) -> bool:
    return "has no attribute" in error(pool, source)


# ---------------------------------------------------------------- the engine has what the tables say


def test_a_builtin_is_missing_if_and_only_if_the_table_says_so(pool: Monty) -> None:
    # The table is also of newer Pythons than this one.
    names = {name for name in {*dir(builtins), *BUILTINS} if not name.startswith("_")} - NOT_OF_THE_LANGUAGE
    missing = {name for name in names if error(pool, name)}
    assert missing | {"__import__"} == BUILTINS.keys()


def test_a_module_is_there_if_and_only_if_the_table_says_so(pool: Monty) -> None:
    names = {name for name in sys.stdlib_module_names if name == "__future__" or not name.startswith("_")}
    there = {name for name in names | {"os.path"} if not error(pool, f"import {name}")}
    assert there == MODULES - {"__future__"} | ({"__future__"} & there)


def test_a_name_of_a_module_is_refused_only_when_it_is_missing_or_answers_differently(pool: Monty) -> None:
    used = {path: f"import {path.partition('.')[0]}\n{path}" for path in INSTEAD_OF_NAME}
    calls = {"os.getenv": "('x')", "os.urandom": "(1)"}
    there = {path for path, source in used.items() if not error(pool, source + calls.get(path, ""))}
    assert there == REFUSED_THOUGH_THERE


VALUES = {
    "str": "'abc'",
    "bytes": "b'abc'",
    "int": "(5)",
    "float": "(1.5)",
    "bool": "True",
    "list": "[1]",
    "tuple": "(1,)",
    "dict": "{'a': 1}",
    "set": "{1}",
    "frozenset": "frozenset([1])",
    "range": "range(3)",
}


@pytest.mark.parametrize("kind", sorted(VALUES))
def test_methods_of_values_cannot_be_used_as_values(pool: Monty, kind: str) -> None:
    methods = METHODS.intersection(dir(getattr(builtins, kind)))
    assert not [name for name in methods if not lacks(pool, f"{VALUES[kind]}.{name}")]


@pytest.mark.parametrize("kind", sorted(VALUES))
def test_whatever_a_value_or_its_type_lacks_is_told_by_name(pool: Monty, kind: str) -> None:
    names = [name for name in dir(getattr(builtins, kind)) if not name.startswith("_")]
    for source in [f"{held}.{name}" for name in names for held in (VALUES[kind], kind)]:
        if lacks(pool, source):
            found = refusal(message(pool, source), source, lambda _pack: False)
            assert found, source
            assert source.rpartition(".")[2] in found.what
            assert found.instead


OBJECTS = (
    *VALUES.values(),
    "Counter('a')",
    "defaultdict(int)",
    "deque([1])",
    "datetime(2024, 1, 1)",
    "date(2024, 1, 1)",
    "time(1)",
    "timedelta(1)",
    "timezone.utc",
    "Decimal('1')",
    "re.compile('a')",
    "re.match('(?P<n>a)', 'a')",
    "Path('/a/b')",
    "ValueError('x')",
    "(lambda: 1)",
    "P(1)",
    "C()",
)
START = """import re
from collections import Counter, defaultdict, deque, namedtuple
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
P = namedtuple("P", "x")
class C: pass
"""


@pytest.mark.parametrize("attribute", sorted(LACKING_ATTRIBUTES))
def test_no_value_of_the_engine_has_what_the_table_calls_lacking(pool: Monty, attribute: str) -> None:
    there = [value for value in OBJECTS if not lacks(pool, f"{START}{value}.{attribute}")]
    assert there == (["C()"] if attribute == "__class__" else [])


# ---------------------------------------------------------------- what is advised works, and gives CPython's answer

ADVICE = {
    "round(2.675, 2)": "float(f'{2.675:.2f}')",
    "import math\nround(sum([0.1, 0.2, 0.3]), 12)": "import math\nfloat(f'{math.fsum([0.1, 0.2, 0.3]):.12f}')",
    "sum([0.1] * 10)": "import math\nmath.fsum([0.1] * 10)",
    "float('nan') in [1.0]": "import math\nany(math.isnan(x) for x in [1.0])",
    "next((x for x in [1, 2, 3] if x > 1), None)": "next(iter([x for x in [1, 2, 3] if x > 1]), None)",
    "sorted(['b', 'A'], key=str.lower)": "sorted(['b', 'A'], key=lambda x: x.lower())",
    "dict(**{'a': 1}, b=2)": "{**{'a': 1}, 'b': 2}",
    "'a-b'.translate({45: 32})": "table = {'-': ' '}\n''.join(table.get(c, c) for c in 'a-b')",
    "'{a}'.format_map({'a': 1})": "'{a}'.format(**{'a': 1})",
    "(10).bit_count()": "bin(10).count('1')",
    "(255).bit_length()": "len(bin(255)) - 2",
    "int.from_bytes(b'\\x01\\x00', 'big')": "int(b'\\x01\\x00'.hex(), 16)",
    "(258).to_bytes(2, 'big')": "bytes.fromhex(f'{258:04x}')",
    "bytes([1, 255])": "bytes.fromhex(''.join(f'{n:02x}' for n in [1, 255]))",
    "s = {1, 2}\ns.difference_update({1})\ns": "s = {1, 2}\ns -= {1}\ns",
    "s = {1, 2}\ns.intersection_update({1})\ns": "s = {1, 2}\ns &= {1}\ns",
    "s = {1, 2}\ns.symmetric_difference_update({1})\ns": "s = {1, 2}\ns ^= {1}\ns",
    "import re\nre.sub('(a)', r'\\1b', 'a')": "import re\nre.sub('(a)', r'\\g<1>b', 'a')",
    "import re\nre.subn('a', 'b', 'aa')": "import re\n(re.sub('a', 'b', 'aa'), len(re.findall('a', 'aa')))",
    "import re\nre.findall('a # x', 'a', re.VERBOSE)": "import re\nre.findall('(?x)a # x', 'a')",
    "from datetime import date\ndate(2024, 5, 6).isocalendar()[1]": (
        "from datetime import date\nint(date(2024, 5, 6).strftime('%V'))"
    ),
    "from datetime import date\ndate(2024, 5, 6).toordinal()": (
        "from datetime import date\n(date(2024, 5, 6) - date(1, 1, 1)).days + 1"
    ),
    "from datetime import date\ndate.fromordinal(739012)": (
        "from datetime import date, timedelta\ndate(1, 1, 1) + timedelta(days=739012 - 1)"
    ),
    "from datetime import datetime\ndatetime.fromisocalendar(2024, 19, 1)": (
        "from datetime import datetime\ndatetime.strptime('2024-W19-1', '%G-W%V-%u')"
    ),
    "from datetime import datetime, timezone\ndatetime.fromtimestamp(5, tz=timezone.utc)": (
        "from datetime import datetime, timedelta, timezone\n"
        "datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=5)"
    ),
    "from datetime import date\ndate(2024, 5, 6).timetuple().tm_yday": (
        "from datetime import date\nint(date(2024, 5, 6).strftime('%j'))"
    ),
    "from datetime import datetime\ndatetime.strptime('07:08', '%H:%M')": (
        "from datetime import datetime\ndatetime.strptime('1900-01-01 ' + '07:08', '%Y-%m-%d %H:%M')"
    ),
    "from datetime import timedelta\ntimedelta(hours=1.5)": "from datetime import timedelta\ntimedelta(minutes=90)",
    "import statistics\nstatistics.mean([1, 2, 6])": "xs = [1, 2, 6]\nint(sum(xs) / len(xs))",
    "import heapq\nheapq.nsmallest(2, [3, 1, 2])": "sorted([3, 1, 2])[:2]",
    "from functools import cmp_to_key\nsorted([1, 3], key=cmp_to_key(lambda a, b: b - a))": (
        "sorted([1, 3], key=lambda x: -x)"
    ),
    "from collections import ChainMap\ndict(ChainMap({'a': 1}, {'a': 2}))": "{**{'a': 2}, **{'a': 1}}",
    "class A:\n    def __init__(self, n): self.n = n\n    def __lt__(self, o): return self.n < o.n\n"
    "[a.n for a in sorted([A(2), A(1)])]": (
        "class A:\n    def __init__(self, n): self.n = n\n[a.n for a in sorted([A(2), A(1)], key=lambda x: x.n)]"
    ),
    "try: int('x')\nexcept Exception as e: r = type(e) == ValueError\nr": (
        "try: int('x')\nexcept Exception as e: r = isinstance(e, ValueError)\nr"
    ),
    "import re\nre.fullmatch(r'a\\Z', 'a').group()": "import re\nre.fullmatch('a', 'a').group()",
    "list({1}.union({2}, {3}))": "list({1} | {2} | {3})",
}


@pytest.mark.parametrize(("refused", "advised"), ADVICE.items(), ids=list(ADVICE))
def test_what_is_advised_is_accepted_and_gives_the_answer_of_cpython(pool: Monty, refused: str, advised: str) -> None:
    assert find_gaps(ast.walk(ast.parse(refused)), ()) or refusal(message(pool, refused), refused, lambda _pack: False)
    assert not find_gaps(ast.walk(ast.parse(advised)), ())
    assert cpython(refused) == value(pool, advised)


def cpython(source: str) -> Any:
    tree = ast.parse(source)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    names: dict[str, Any] = {}
    exec(compile(tree, "<advice>", "exec", dont_inherit=True), names)
    return eval(compile(ast.Expression(last.value), "<advice>", "eval", dont_inherit=True), names)


def test_every_rule_says_what_and_nearly_every_one_what_to_write_instead() -> None:
    from_tables = {"module", "name", "keyword", "special method"}
    assert {name for name, rule in RULES.items() if not rule.instead} == from_tables
    assert all(rule.what for rule in RULES.values())


# ---------------------------------------------------------------- the page


def test_the_reference_page_is_what_the_tables_make() -> None:
    root = Path(__file__).parents[4]
    page = runpy.run_path(str(root / "docs" / "make_portable_engine.py"))["page"]()
    written = (root / "docs" / "reference" / "portable-engine.md").read_text(encoding="utf-8")
    assert page == written, "run: PYTHONPATH=src python docs/make_portable_engine.py"


async def test_a_worker_that_is_dying_when_a_run_begins_costs_the_run_nothing(tmp_path: Path) -> None:
    engine = PortableEngine()
    free = 0
    async with running_app(tmp_path, engine=engine) as app:
        with anyio.fail_after(60):
            for number in range(30):
                await app.run("0")
                # A signal is delivered in its own time: some of these workers still look alive when they are taken.
                for session in engine._sessions._ready:
                    if session.worker_pid:
                        os.kill(session.worker_pid, signal.SIGKILL)
                reply = await app.run(str(number))
                # On a busy machine a worker may live on for so long that the program could have worked in it.
                if reply.cause != "EngineCrashed" or reply.meta["ms"] < STILLBORN_SECONDS * 1000:
                    assert str(number) == value_of(reply)
                    free += 1
    assert free >= 10


async def test_two_tools_whose_names_could_be_put_together_alike_are_kept_apart(tmp_path: Path) -> None:
    packs = {"a": "def b__c() -> str: return 'a.b__c'", "a__b": "def c() -> str: return 'a__b.c'"}
    async with running_app(tmp_path, packs) as app:
        assert value_of(await app.run("f=a.b__c; g=a__b.c; [f(), g()]")) == '["a.b__c","a__b.c"]'
        assert value_of(await app.run("a.b__c")) == "<tool a.b__c>"


async def test_a_named_tuple_is_a_list_in_the_result_as_it_is_in_the_exact_engine(tmp_path: Path) -> None:
    made = "from collections import namedtuple\nP = namedtuple('P', 'x y')\n"
    async with running_app(tmp_path) as app:
        assert value_of(await app.run(made + "P(1, 2)")) == "[1,2]"
        assert value_of(await app.run(made + "{'k': [P(1, P(2, 3))]}")) == '{"k":[[1,[2,3]]]}'


async def test_an_engine_that_is_closed_reaps_the_workers_that_its_pool_only_killed(tmp_path: Path) -> None:
    engine = PortableEngine()
    async with running_app(tmp_path, engine=engine) as app:
        await app.run("0")
        forgotten = os.posix_spawn(sys.executable, [sys.executable, "-c", "input()"], {})  # noqa: ASYNC221 - at once
        engine._sessions._know(forgotten)
        os.kill(forgotten, signal.SIGKILL)
    with pytest.raises(ChildProcessError):
        os.waitpid(forgotten, os.WNOHANG)  # noqa: ASYNC222 - it does not wait


@pytest.fixture
def without_collection() -> Generator[None]:
    """Keep Python from finding lost objects, which would end their processes some time later."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collection")
@pytest.mark.parametrize("turns", range(4), ids=["at once", "a turn later", "two turns later", "three turns later"])
@pytest.mark.parametrize("is_started", [False, True], ids=["with the pool", "with a session"])
async def test_a_run_that_is_given_up_while_its_process_starts_leaves_none(is_started: bool, turns: int) -> None:
    before, sessions = below_this(), ReadySessions(processes=4, queue_seconds=5)
    if is_started:
        await sessions.prepare({})
    given_up = [asyncio.ensure_future(sessions.session({}, time.monotonic() + 30).__aenter__()) for _ in range(4)]
    for _ in range(turns):
        await asyncio.sleep(0)
    for task in given_up:
        task.cancel()
    ended = await asyncio.gather(*given_up, return_exceptions=True)
    assert any(isinstance(one, asyncio.CancelledError) for one in ended)
    await sessions.aclose()
    assert_gone(below_this() - before)

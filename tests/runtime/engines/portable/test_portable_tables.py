"""The tables of the portable engine say what the installed engine has, and their advice works."""

from __future__ import annotations

import ast
import builtins
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_monty import CollectString, Monty, MontyError

from ot.runtime.engines.portable.gaps import find_gaps
from ot.runtime.engines.portable.gaps.library import BUILTINS, INSTEAD_OF_NAME, LACKING_ATTRIBUTES, METHODS
from ot.runtime.engines.portable.gaps.rules import MODULES, RULES
from ot.runtime.engines.portable.refusals import refusal

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
def test_a_method_is_no_value(pool: Monty, kind: str) -> None:
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

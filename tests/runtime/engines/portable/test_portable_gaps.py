"""What the portable engine refuses before it runs anything, and what it must not refuse."""

from __future__ import annotations

import ast
import os
import statistics
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from no_files import NoFiles
from ot.config.models import Limits
from ot.errors import Gap, ProgramFailed, ToolFailed
from ot.runtime.engines.portable.gaps import find_gaps
from ot.runtime.engines.portable.gaps.library import BUILTINS, INSTEAD_OF_MODULE
from ot.runtime.engines.portable.gaps.rules import MODULES
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.program import parse_program

PACKS = frozenset({"web", "deepl"})


class Packs(NoFiles):
    """A reach of packs whose tools all fail with the message that they are given."""

    packs = PACKS

    async def call(self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], **places: object) -> Any:
        raise ToolFailed(f"{pack}.{name}", "AttributeError", kwargs["message"])


def gaps(source: str, packs: frozenset[str] = PACKS) -> list[Gap]:
    return find_gaps(ast.walk(ast.parse(source)), packs)


def whats(source: str) -> list[str]:
    return [gap.what for gap in gaps(source)]


# ---------------------------------------------------------------- what is refused

REFUSED = {
    "import statistics": "there is no module statistics",
    "import urllib.parse": "there is no module urllib.parse",
    "from collections import OrderedDict": "there is no collections.OrderedDict",
    "import asyncio\nasyncio.create_task(f())": "there is no asyncio.create_task",
    "import datetime as dt\ndt.datetime.utcnow()": "there is no datetime.datetime.utcnow",
    "vars(x)": "there is no vars",
    "class A:\n    def __len__(self): return 1": "__len__ is ignored",
    "class A:\n    __slots__ = ('x',)": "__slots__ is ignored",
    "'abc'.translate({})": "there is no .translate",
    "def f(text): return text.translate({})": "there is no .translate",
    "(5).bit_length()": "there is no .bit_length",
    "sorted(xs, key=str.lower)": "str.lower can only be called, not held",
    "d = {}\nsorted(d, key=d.get)": ".get can only be called, not held",
    "def f(d): return map(d.get, 'ab')": ".get can only be called, not held",
    "x = 1\nhasattr(x, 'items')": "hasattr(x, 'items') does not see methods",
    "import json\njson.dumps(x, default=str)": "json.dumps(default=) is not supported",
    "import asyncio\nasyncio.gather(a, return_exceptions=True)": "asyncio.gather(return_exceptions=) is not supported",
    "round(x, 2)": "round(x, n) rounds ties differently",
    "sum([0.1, 0.2, 0.3])": "sum() of these floats ends in another digit",
    "sum([0.1] * 10)": "sum() of these floats ends in another digit",
    "xs = 10 * (0.1, 0.2)\nsum(xs)": "sum() of these floats ends in another digit",
    "sum([0.5] * 10**9 + [1]) or sum([0.5] * 1000000000)": "sum() of these floats ends in another digit",
    "float('nan') in [float('nan')]": "nan is found and compared by its value",
    "from math import nan\nxs = [nan]\nif f() not in xs: pass": "nan is found and compared by its value",
    "x = float('NaN')\n[x] == [1]": "nan is found and compared by its value",
    "web.x = 1": "a pack cannot be changed: web.x",
    "import web as w\nw.count += 1": "a pack cannot be changed: web.count",
    "setattr(web, 'x', 1)": "a pack cannot be changed: web",
    "{1: 'a', True: 'b'}": "1 and True are one key: CPython keeps the first, this engine the last",
    "dict(**x, a=1)": "k=v after ** comes first",
    "type(e) == ValueError": "type(error) is never equal to an exception's class",
    "ValueError('a', 1)": "an exception takes at most one text",
    "import re\nre.sub('(a)', r'\\1b', x)": "the replacement must be a literal, and a backslash in it is only safe",
    "import re\nre.sub('a', lambda m: 'b', x)": "the replacement must be a literal",
    "import re\nre.findall('a*', x)": "a pattern that can match nothing finds fewer matches",
    "import re\np = re.compile('a*')\np.split(x)": "a pattern that can match nothing finds fewer matches",
    "import re\nre.match(r'a\\Z', x)": "\\Z also matches before a last newline",
    "import re\nre.match('[[a]', x)": "[, &&, -- and ~~ inside [...] are set operations",
    "import re\nre.findall('a', x, re.ASCII)": "there is no re.ASCII",
    "from datetime import datetime\ndatetime.strptime(x, '%H:%M')": "strptime() needs a whole date",
    "'\\ud800'": "a text cannot hold half a surrogate pair",
    "(await f(x) for x in xs)": "CPython refuses await inside (... for ...)",
    "{'a': 1}.keys()": ".keys(), .values() or .items() leaves the program as text, not as a list",
    "return range(3)": "range() leaves the program as text, not as a list",
    "d = {}\n{'names': d.keys()}": ".keys(), .values() or .items() leaves the program as text, not as a list",
    "web.find(ids=range(3))": "range() leaves the program as text, not as a list",
    "web.find(key=lambda x: x)": "a function cannot be passed to a tool",
    "try: assert x > 1, 'm'\nexcept AssertionError as e: str(e)": "a caught assert has more text than its message",
}


@pytest.mark.parametrize(("source", "what"), REFUSED.items(), ids=list(REFUSED))
def test_what_the_engine_lacks_is_refused_by_name_with_what_to_write_instead(source: str, what: str) -> None:
    found = gaps(source)
    assert any(gap.what.startswith(what) for gap in found), found
    assert all(gap.instead for gap in found)


def test_every_gap_is_found_at_its_line_and_in_their_order() -> None:
    found = gaps("x = 1\nimport statistics\n\ndef f():\n    return vars(x), dir(x)\nround(y, 2)")
    assert [2, 5, 5, 6] == [gap.line for gap in found]


@given(st.sampled_from(sorted(REFUSED)), st.integers(min_value=0, max_value=20))
def test_lines_above_a_gap_move_its_line_and_nothing_else(source: str, lines: int) -> None:
    moved = gaps("# a comment\n" * lines + source)
    assert [Gap(gap.line + lines, gap.what, gap.instead) for gap in gaps(source)] == moved


@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_a_missing_builtin_is_refused(name: str) -> None:
    assert [f"there is no {name}"] == whats(f"x = {name}")


@pytest.mark.parametrize("name", sorted(INSTEAD_OF_MODULE))
def test_a_missing_module_is_refused_in_every_form_of_import(name: str) -> None:
    for source in (f"import {name}", f"import {name} as m", f"from {name} import x", f"def f():\n    import {name}"):
        assert [f"there is no module {name}"] == whats(source)


# ---------------------------------------------------------------- what the interpreter refuses itself, in our words

BY_THE_PARSER = {
    "from math import *": "there is no support for wildcard imports",
    "from . import x": "there is no support for relative imports",
    "def f():\n    yield 1": "there is no support for yield expressions",
    "def f():\n    yield from [1]": "there is no support for yield from expressions",
    "x = {}\ndel x['a']": "there is no support for the 'del' statement",
    "class A(dict): pass": "there is no support for class inheritance and metaclasses",
    "class A:\n    @property\n    def x(self): return 1": "there is no support for method decorators",
    "class A:\n    x, y = 1, 2": "there is no support for complex class variable targets",
    "class A:\n    print(1)": "there is no support for class bodies containing anything other than methods",
    "async def f():\n    async with x: pass": "there is no support for async context managers (async with)",
    "async def f():\n    async for x in y: pass": "there is no support for async for loops",
    "async def f():\n    return [x async for x in y]": "there is no support for async comprehensions",
    "try: f()\nexcept* ValueError: pass": "there is no support for exception groups (try*/except*)",
    "type X = int": "there is no support for type aliases",
}
WHEN_REACHED = {
    "str.lower('A')": "there is no str.lower",
    "d = {'a': 1}\nsorted(d, key=d.get if d else web)": "there is no dict.get",
    "try: int('x')\nexcept ValueError as e: e.__reduce__()": "there is no ValueError.__reduce__",
    "import json\ntry: json.loads('{')\nexcept json.JSONDecodeError as e: e.pos": "there is no json.JSONDecodeError",
    "object()": "object() cannot be created",
    "'é'.encode('latin-1')": "there is no encoding latin-1",
    "def f(): pass\nf.__name__": "there is no function.__name__",
    "def f(): pass\nf.calls = 1": "there is no function.calls",
    "{1}.union({2}, {3})": "set.union() takes one argument",
    "bytes([1, 2])": "bytes() takes no list",
    "from datetime import timedelta\ntimedelta(hours=1.5)": "timedelta() takes whole numbers",
    "from dataclasses import dataclass\n@dataclass(order=True)\nclass P: x: int": "dataclass() does not support",
    "pow(base=2, exp=3)": "pow() does not support keyword arguments",
    "import json\njson.dump(1, 2, skipkeys=True, iterable=1)": "json lacks iterable=",
    "import re\nre.match('(?P<n>a)', 'a').start('n')": ".start(), .end() and .span() take no name",
    "import re\nre.match('(a)(b)?', 'a').groups('-')": ".groups() takes no default",
    "import re\nre.match(r'\\0', 'a')": "the pattern cannot be read",
    "import re\nre.match('(?a)a', 'a')": "the pattern cannot be read",
    "from functools import update_wrapper": "there is no functools.update_wrapper",
    "import math\nmath.nothing": "there is no math.nothing",
    "x = 5\nx.real": "there is no int.real",
    "x = range(3)\nx.index(1)": "there is no range.index",
    "eval('vars(1)')": "there is no vars",
    "def call(f, *args): return f(*args)\ncall(map, lambda u: web.fetch(url=u), ['a'])": "a tool cannot be called from",
    "n = 5\nraise ValueError(n)": "an exception takes at most one text",
}
NO_LINE = ("an exception takes", "there is no vars")
"""The interpreter names none for these."""


async def failure(source: str) -> ProgramFailed:
    """Return how a program ends that nothing refused before it ran."""
    engine = PortableEngine(processes=1)
    program, packs = parse_program(source), Packs()
    try:
        engine.refuse(program, packs)
        with pytest.raises(ProgramFailed) as failed:
            await engine.run(program, packs, Limits())
    finally:
        await engine.aclose()
    return failed.value


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("source", "what"), (BY_THE_PARSER | WHEN_REACHED).items(), ids=[*BY_THE_PARSER, *WHEN_REACHED]
)
async def test_what_the_interpreter_refuses_itself_is_told_by_name_and_line_with_what_to_write(
    source: str, what: str
) -> None:
    error = await failure("print('began')\n" + source)
    assert error.kind == "NotImplementedError"
    assert error.message.startswith(f"the portable engine cannot run this: {what}"), error.message
    assert error.hint
    assert error.line or what.startswith(NO_LINE)
    assert error.message.endswith("; nothing was run") is (source in BY_THE_PARSER)
    assert error.printed == ("" if source in BY_THE_PARSER else "began\n")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("source", "kind"),
    {
        "x = 5\nx.missing_everywhere()": "AttributeError",
        "nothing": "NameError",
        "import math\nmath.sqrt('x')": "TypeError",
        "'a'.index('b')": "ValueError",
        "len(range(1.5))": "TypeError",
        "web.fail(message=\"'dict' object has no attribute 'get'\")": "AttributeError",
    }.items(),
)
async def test_a_slip_of_the_program_or_the_failure_of_a_tool_is_not_called_a_gap(source: str, kind: str) -> None:
    error = await failure(source)
    assert error.kind == kind
    assert "portable engine" not in f"{error.message} {error.hint}"


# ---------------------------------------------------------------- iterators, which are lists here


@pytest.mark.parametrize(
    "lazy", ["(x for x in y)", "map(f, y)", "filter(f, y)", "zip(y)", "enumerate(y)", "reversed(y)"]
)
@pytest.mark.parametrize("use", ["next({})", "next({}, None)", "len({})", "{}[0]", "bool({})", "isinstance({}, list)"])
def test_what_tells_a_list_from_an_iterator_is_refused(lazy: str, use: str) -> None:
    assert whats(use.format(lazy))
    assert whats(f"it = {lazy}\n" + use.format("it"))


@pytest.mark.parametrize(
    "source",
    [
        "m = map(f, xs)\nlist(m)\nlist(m)",
        "g = (x for x in xs)\nfor y in ys:\n    print(y in g)",
        "g = (x for x in xs)\n[y for y in ys if y in g]",
    ],
)
def test_an_iterator_that_is_run_through_twice_is_refused(source: str) -> None:
    assert any("the second use would not be empty" in what for what in whats(source))


@pytest.mark.parametrize(
    "source",
    [
        "m = map(f, xs)\nlist(m)",
        "for x in map(f, xs): print(x)",
        "for y in ys:\n    m = map(f, y)\n    print(list(m))",
        "sum(x for x in xs)",
        "any(x > 1 for x in xs)",
        "m = map(f, xs)\nm = list(m)\nlen(m)",
        "dict(zip('ab', [1, 2]))",
        "first = next(iter([x for x in xs if x]), None)",
        "it = iter(xs)\nnext(it)\nnext(it)",
    ],
)
def test_an_iterator_that_is_run_through_once_is_not_refused(source: str) -> None:
    assert not whats(source)


# ---------------------------------------------------------------- tools where the interpreter cannot wait for them


@pytest.mark.parametrize(
    "source",
    [
        "list(map(web.fetch, urls))",
        "list(map(lambda u: web.fetch(url=u), urls))",
        "sorted(urls, key=lambda u: web.fetch(url=u))",
        "max(urls, key=web.fetch)",
        "urls.sort(key=lambda u: web.fetch(url=u))",
        "def get(u): return web.fetch(url=u)\nlist(map(get, urls))",
        "def get(u): return web.fetch(url=u)\ndef outer(u): return get(u)\nlist(filter(outer, urls))",
        "get = lambda u: web.fetch(url=u)\nmin(urls, key=get)",
        "fetch = web.fetch\nlist(map(fetch, urls))",
        "w = web\nlist(map(w.fetch, urls))",
        "from web import fetch\nlist(map(fetch, urls))",
        "from itertools import groupby as g\ng(urls, key=lambda u: web.fetch(url=u))",
        "from collections import defaultdict\ndefaultdict(lambda: web.fetch())",
        "from functools import partial\nlist(map(partial(web.fetch, 1), urls))",
        "class A:\n    def get(self, u): return web.fetch(url=u)\nlist(map(A().get, urls))",
        "class A:\n    def __str__(self): return web.fetch()",
        "class A:\n    def __getitem__(self, k): return self.get(k)\n    def get(self, k): return web.fetch(k)",
    ],
)
def test_a_tool_in_a_callback_or_a_special_method_is_refused(source: str) -> None:
    assert any("a tool cannot be called from inside" in what for what in whats(source)), whats(source)


@pytest.mark.parametrize(
    "source",
    [
        "any(web.fetch(url=u) for u in urls)",
        "all(check(u) for u in urls)\ndef check(u): return web.fetch(url=u)",
        "next((u for u in urls if web.fetch(url=u)), None)",
        "for page in (web.fetch(url=u) for u in urls): break",
        "pages = (web.fetch(url=u) for u in urls)",
        "4 in (web.fetch(url=u) for u in urls)",
        "any(p for u in urls for p in web.fetch(url=u))",
    ],
)
def test_a_tool_in_a_generator_that_may_stop_early_is_refused(source: str) -> None:
    assert any(what.startswith("a tool call inside (... for ...)") for what in whats(source)), whats(source)


@pytest.mark.parametrize(
    "source",
    [
        "[web.fetch(url=u) for u in urls]",
        "any([web.fetch(url=u) for u in urls])",
        "sum(web.count(url=u) for u in urls)",
        "', '.join(web.name(url=u) for u in urls)",
        "import asyncio\nawait asyncio.gather(*(web.fetch(url=u) for u in urls))",
        "any(p for p in web.fetch(url=u))",
        "sorted(web.fetch(), key=lambda p: p['n'])",
        "list(map(lambda p: p['n'], web.fetch()))",
        "from functools import reduce\nreduce(lambda a, u: a + web.count(url=u), urls, 0)",
        "from functools import lru_cache\n@lru_cache\ndef get(u): return web.fetch(url=u)",
        "class A:\n    def __init__(self): self.x = web.fetch()\n    def __enter__(self): return web.fetch()",
        "class A:\n    def run(self): return web.fetch()\n    def __str__(self): return 'a'",
        "def get(u): return web.fetch(url=u)\nlist(map(lambda u: u + 1, get(1)))",
    ],
)
def test_a_tool_where_it_can_be_waited_for_is_not_refused(source: str) -> None:
    assert not whats(source)


# ---------------------------------------------------------------- names that are the program's own, or a pack's


@pytest.mark.parametrize(
    "binding",
    [
        "{0} = 1\n{0}",
        "def {0}(): pass\n{0}()",
        "class {0}: pass\n{0}()",
        "for {0} in xs: print({0})",
        "def f({0}): return {0}",
        "lambda {0}: {0}",
        "[{0} for {0} in xs]",
        "import math as {0}\n{0}.pi",
        "from math import pi as {0}\n{0}",
        "with x as {0}: {0}",
        "try: f()\nexcept OSError as {0}: print({0})",
        "({0} := 1) + {0}",
        "match x:\n    case [{0}]: {0}",
    ],
)
def test_a_name_that_the_program_binds_is_never_missing(binding: str) -> None:
    assert not [name for name in BUILTINS if whats(binding.format(name))]


@pytest.mark.parametrize(
    "source",
    [
        "def next(x): return x\nnext(x for x in y)",
        "def round(x, n): return x\nround(1.5, 1)",
        "def f(sum): return sum([0.1, 0.2, 0.3])",
        "map = {'a': 1}\nmap['a']\nlen(map)",
        "class re:\n    pass\nre.sub('(a)', r'\\1b', 'a')",
        "import mylib_of_the_host as json",
        "hasattr = lambda x, n: True\nhasattr(x, 'items')",
    ],
)
def test_a_function_of_the_program_is_not_the_builtin_of_that_name(source: str) -> None:
    assert not [what for what in whats(source) if "mylib" not in what]


@pytest.mark.parametrize(
    "source",
    [
        "class T:\n    def translate(self, x): return x\nT().translate(1)",
        "class T:\n    def get(self): return 1\nf = T().get\nf()",
        "class T:\n    def __init__(self): self.parents = []\nT().parents",
        "from collections import namedtuple\nP = namedtuple('P', 'index count')\nP(1, 2).index",
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    values: list\nprint(P([]).values)",
        "class T: pass\nt = T()\nt.keys = [1]\nprint(t.keys)",
        "class T: pass\nt = T()\nsetattr(t, 'pop', 1)\nt.pop",
        "class T:\n    def items(self): return [1]\nT().items()",
        "class T:\n    items = 1\nhasattr(T(), 'items')",
        "class T:\n    def __repr__(self): return self.__class__.__name__\nrepr(T())",
    ],
)
def test_an_attribute_of_the_programs_own_classes_is_not_refused(source: str) -> None:
    assert not whats(source)


@pytest.mark.parametrize("source", ["{0}.translate(x=1)", "import {0}\n{0}.get(x=1)", "from {0} import f\nf(1)"])
def test_a_pack_is_never_missing_whatever_its_name(source: str) -> None:
    packs = {name.partition(".")[0] for name in (*BUILTINS, *INSTEAD_OF_MODULE, *MODULES)} - {"__future__"}
    assert not [name for name in packs if gaps(source.format(name), frozenset({name}))]


@pytest.mark.parametrize(
    "source",
    [
        "deepl.translate(text='a')",
        "t = deepl.translate\nt(text='a')",
        "d = deepl\nd.translate(text='a')",
        "def run(tool): return tool.translate(text='a')\nrun(deepl)",
        "for tool in [deepl, web]:\n    tool.translate(text='a')",
        "hasattr(deepl, 'translate')",
        "getattr(web, 'get', None)",
        "web.keys()",
        "{'keys': web.items()}",
        "import deepl\ndeepl.translate(text='a')",
    ],
)
def test_a_function_of_a_pack_is_never_a_missing_attribute(source: str) -> None:
    assert not whats(source)


@pytest.mark.parametrize("caught", ["ImportError", "ModuleNotFoundError", "(ImportError, OSError)"])
def test_an_import_whose_failure_is_handled_is_not_refused(caught: str) -> None:
    assert not whats(f"try:\n    import numpy as np\nexcept {caught}:\n    np = None")


def test_an_import_whose_failure_is_swallowed_with_everything_else_is_refused() -> None:
    assert ["there is no module statistics"] == whats("try:\n    import statistics\nexcept Exception:\n    pass")


@pytest.mark.parametrize(
    "source",
    [
        "",
        "1 + 1",
        "round(x)",
        "round(x, 0)",
        "round(1234, -2)",
        "sum([1, 2, 3])",
        "sum([0.5, 0.25, 0.25])",
        "sum(prices)",
        "sum([0.5] * 10)",
        "sum([1] * 1000000)",
        "x = float('nan')\nx != x or x > 1",
        "'nan' in ['nan']",
        "import math\nmath.isnan(math.nan) and 1 in [1]",
        "class A: pass\na = A()\na.x = 1",
        "{'a': 1, 'a': 2}",
        "{1: 'a', 2: 'b'}",
        "f(**x, a=1)",
        "ValueError(f'{x}')",
        "type(x) == int",
        "assert x > 1, 'm'",
        "try: f()\nexcept ValueError as e: print(e.args, str(e))",
        "import re\nre.sub(r'\\s+', ' ', x)",
        "import re\nre.sub(r'(\\w+) (\\w+)', r'\\2 \\1', x)",
        "import re\nre.sub('(a)', r'\\g<1>b', x)",
        "import re\nnew = 'b'\nre.sub('a', new, x)",
        "import re\nre.search('a*', x)",
        "import re\nre.findall(r'^', x, re.M)",
        "from datetime import datetime\ndatetime.strptime(x, '%Y-%m-%d %H:%M:%S')",
        "list({'a': 1}.keys())",
        "len({'a': 1}.items())",
        "for k, v in d.items(): print(k)",
        "for i in range(3): print(i)",
        "'é'.encode('utf-8')",
        "x.missing_everywhere()",
        "from __future__ import annotations",
        "import os.path\nos.path.join('a', 'b')",
        "f = len\nf(x)",
        "import json\nlist(map(json.dumps, xs))",
        "sorted(xs, key=len)",
    ],
)
def test_what_works_is_not_refused(source: str) -> None:
    assert not whats(source)


# ---------------------------------------------------------------- it is on the way of every run


def test_a_tiny_program_costs_less_than_eight_times_what_its_parsing_costs() -> None:
    source = "web.fetch(url='x')"
    tree = ast.parse(source)

    def seconds(act: Callable[[], object]) -> float:
        return timeit.timeit(act, number=20, timer=time.thread_time)

    # In turns: a processor that others use too changes its pace from one moment to the next.
    turns = [seconds(lambda: find_gaps(ast.walk(tree), PACKS)) / seconds(lambda: ast.parse(source)) for _ in range(50)]
    assert statistics.median(turns) < 8


@pytest.mark.parametrize(
    "source",
    [
        "x0 = web\n" + "\n".join(f"x{n + 1} = x{n}" for n in range(5000)) + "\nx5000.f()",
        "x = " + "[" * 80 + "]" * 80,
        "a" + ".b" * 800,
        "f" + "(f" * 80 + ")" * 80,
    ],
    ids=["names", "lists", "attributes", "calls"],
)
def test_a_deep_program_is_answered_and_never_breaks_the_server(source: str) -> None:
    assert isinstance(gaps(source), list)


@pytest.mark.parametrize(
    "repeated",
    [
        "m{0} = map(f, xs)\nfor y in ys: m{0}",
        "def f{0}(): return f{1}()",
        "import re\nre.findall('(a|b*)?c*[{0}]*', x)",
    ],
)
def test_a_long_program_costs_in_proportion_to_its_length(repeated: str) -> None:
    def cost(lines: int) -> float:
        tree = ast.parse("\n".join(repeated.format(n, n + 1) for n in range(lines)))
        return min(timeit.repeat(lambda: find_gaps(ast.walk(tree), PACKS), number=1, repeat=3, timer=time.thread_time))

    # Eight times the length, and room for a busy machine: a square would be sixty-four times the cost.
    assert cost(1600) < 30 * cost(200)


def test_any_python_at_all_can_be_checked() -> None:
    library = sorted(Path(os.__file__).parent.glob("*.py"))[:60]
    assert len(library) == 60
    assert sum(len(find_gaps(ast.walk(ast.parse(path.read_bytes())), PACKS)) for path in library) > 1000

"""What the portable engine refuses or answers differently (pydantic-monty 1.4), with what to write instead: data only.

The differential test finds out when a new release of the engine makes a line untrue, and `docs/make_portable_engine.py`
writes the reference page from it.
"""

from __future__ import annotations

import ast
from typing import Final, NamedTuple

from ot.errors import Gap


class Rule(NamedTuple):
    """What is refused, and what to write instead; ``{name}`` stands for the name found in the program."""

    what: str
    instead: str


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def table(text: str) -> dict[str, str]:
    """Return the advice for each name of *text*, whose lines are ``names: advice``."""
    rows = (line.partition(": ") for line in text.strip().splitlines())
    return {name: instead for names, _, instead in rows for name in names.split()}


MODULES: Final = _names(
    """
    __future__ asyncio base64 binascii bisect collections copy csv dataclasses datetime decimal functools
    hashlib itertools json math os os.path pathlib posixpath random re sys time tomllib typing unicodedata
    """
)
"""The modules that are there."""

# ---------------------------------------------------------------- special methods of a program's own classes

SPECIAL_METHODS_LACKING: Final = table(
    """
    __len__: use a method of another name: p.size()
    __bool__: use a method of another name: p.is_empty()
    __ne__: write __eq__ only
    __format__: write __str__, without a format specification
    __new__: use a plain function that returns the object
    __del__: use with, or try/finally
    __reversed__: use a method that returns a list
    __missing__: use dict.get() or defaultdict
    __await__: use async def
    __aenter__: use __enter__ and with
    __aexit__: use __exit__ and with
    __aiter__: use __iter__ and for
    __anext__: use __next__ and for
    __fspath__: use str(path)
    __lt__ __le__ __gt__ __ge__: compare with a key: sorted(xs, key=lambda x: x.n), x.n < y.n
    __getattr__ __getattribute__ __setattr__ __delattr__ __get__ __set__: attributes cannot be guarded: use methods
    __set_name__: attributes cannot be guarded: use methods
    __bytes__ __complex__ __delitem__: use a method of another name
    __slots__ __class_getitem__ __init_subclass__ __instancecheck__: leave it out
    __iadd__ __isub__ __imul__ __imatmul__: write the plain operator's method, which returns a new object
    __itruediv__ __ifloordiv__ __imod__ __ipow__: write the plain operator's method, which returns a new object
    __ilshift__ __irshift__ __iand__ __ixor__ __ior__: write the plain operator's method, which returns a new object
    """
)
# Special methods in which a tool may be called; the interpreter runs the others itself and cannot wait inside them.
SPECIAL_METHODS_THAT_WAIT: Final = frozenset({"__init__", "__call__", "__enter__", "__exit__"})

# Functions of the interpreter that call a function they are given, and cannot wait inside it.
CALLBACKS: Final = _names(
    """
    map filter iter sorted min max bisect.bisect bisect.bisect_left bisect.bisect_right bisect.insort
    bisect.insort_left bisect.insort_right collections.defaultdict dataclasses.field itertools.accumulate
    itertools.dropwhile itertools.filterfalse itertools.groupby itertools.starmap itertools.takewhile
    """
)

# ---------------------------------------------------------------- what a call gives back

# Lists here, one-pass iterators in CPython.
LAZY: Final = frozenset({"enumerate", "filter", "map", "re.finditer", "reversed", "zip"})
# Objects that leave the program as their printed form, not as data; so do the iterators of itertools.
NOT_PLAIN: Final = frozenset({"csv.DictReader", "csv.reader", "iter", "range", "slice"})
VIEWS: Final = frozenset({"items", "keys", "values"})
# Calls that take every item of a generator expression, in order: it makes no difference that it is a list.
TAKE_ALL: Final = _names(
    """
    asyncio.gather collections.Counter collections.deque dict frozenset list math.fsum math.prod max min print
    set sorted sum tuple
    """
)
METHODS_THAT_TAKE_ALL: Final = _names("extend join update")
ENDLESS: Final = frozenset({"itertools.count", "itertools.cycle"})
# Calls that answer differently for a list than for an iterator.
TELL_LISTS_APART: Final = _names("bool isinstance json.dumps len next reversed type")

# ---------------------------------------------------------------- regular expressions

# Searched in a pattern that the program writes out; an even number of backslashes before the one that counts.
_ESCAPE: Final = r"(?<!\\)(?:\\\\)*\\"
PATTERNS: Final = {
    _ESCAPE + "Z": Rule(r"\Z also matches before a last newline", "use re.fullmatch(), or $, which does not"),
    _ESCAPE + "[<>]": Rule(r"\< and \> are word boundaries", r"write < and > without a backslash, or \b"),
    _ESCAPE + "[pPhHKGzRXe]": Rule("this escape is unknown to CPython", "write the characters out"),
    r"(?<!\\)\[\^?\]?(?:[^\]\\\[&~-]|\\.|&(?!&)|~(?!~)|-(?!-))*+(?:\[|&&|--|~~)": Rule(
        "[, &&, -- and ~~ inside [...] are set operations", r"put a backslash before them: \["
    ),
    r"\(\?<[A-Za-z_]": Rule("(?<name>...) is unknown to CPython", "write (?P<name>...)"),
}
# A replacement is safe if every backslash in it is one of: \\, \g<name>, \1 not followed by a letter, digit or _.
SAFE_REPLACEMENT: Final = r"(?:[^\\]|\\\\|\\g<\w+>|\\[1-9](?!\w))*"
TAKE_PATTERN: Final = _names("compile findall finditer fullmatch match search split sub")
# Functions in which a pattern that can match nothing as well as something finds fewer matches than in CPython.
FIND_ALL: Final = _names("findall finditer split sub")

# ---------------------------------------------------------------- everything else that is refused, by a short name

RULES: Final = {
    "module": Rule("there is no module {name}", ""),
    "name": Rule("there is no {name}", ""),
    "keyword": Rule("{name} is not supported", ""),
    "method value": Rule("{name} can only be called, not held", "use a lambda: lambda x: x.{method}()"),
    "hasattr": Rule("{name} does not see methods", "use isinstance(x, dict), isinstance(x, list)"),
    "special method": Rule("{name} is ignored", ""),
    "builtin as item": Rule(
        "{name} in [... for {name} in ...] outside functions is the builtin, not the item",
        "use another name: [f(x) for x in xs]",
    ),
    "await in generator": Rule("CPython refuses await inside (... for ...)", "use a list: [await f(x) for x in xs]"),
    "generator as iterator": Rule(
        "{name} would see a list: (... for ...), map, filter, zip, enumerate and reversed are lists here",
        "write the list yourself: next(iter([x for x in xs if x > 1]), None), list(map(...))",
    ),
    "used twice": Rule("{name} is an iterator, and a list here: the second use would not be empty", "use list(...)"),
    "tool in generator": Rule(
        "a tool call inside (... for ...) runs for every item at once", "use a for loop with break, or a list: [...]"
    ),
    "tool in callback": Rule(
        "a tool cannot be called from inside {name}", "call it in a list comprehension first: [pack.f(x) for x in xs]"
    ),
    "tool in method": Rule("a tool cannot be called from inside {name}", "call it from a method of another name"),
    "not plain": Rule("{name} leaves the program as text, not as a list", "write list(...) around it"),
    "function given": Rule("a function cannot be passed to a tool", "pass data"),
    "round": Rule("round(x, n) rounds ties differently", "use float(f'{x:.2f}'), or Decimal"),
    "sum": Rule("sum() of these floats ends in another digit", "use math.fsum(...)"),
    "nan": Rule("nan is found and compared by its value", "use any(math.isnan(x) for x in xs)"),
    "pack attribute": Rule("a pack cannot be changed: {name}", "keep the value in a variable"),
    "equal keys": Rule("{name} are one key: CPython keeps the first, this engine the last", "write the key once"),
    "order of keywords": Rule("k=v after ** comes first", "use {**mapping, 'k': v}, or give k=v before **"),
    "type of exception": Rule(
        "type(error) is never equal to an exception's class", "use isinstance(error, ValueError)"
    ),
    "caught assert": Rule("a caught assert has more text than its message", "use if ...: raise ValueError('...')"),
    "exception arguments": Rule("an exception takes at most one text", "use one f-string: ValueError(f'...')"),
    "endless": Rule("this runs forever: {name} makes its whole list at once", "use a for loop with break"),
    "empty match": Rule("a pattern that can match nothing finds fewer matches", "use + instead of *, or leave ? out"),
    "replacement": Rule(
        "the replacement must be a literal, and a backslash in it is only safe as \\g<1>",
        "use a constant text, or build the text from re.finditer()",
    ),
    "group": Rule("the replacement names a group that the pattern lacks", "count the groups of the pattern"),
    "strptime": Rule(
        "strptime() needs a whole date, and hours with minutes (and %p with %I)",
        "put a date in front: '1900-01-01 ' + text, or use .split(':')",
    ),
    "too deep": Rule("the program is nested too deeply", "write it in smaller steps"),
    "surrogate": Rule("a text cannot hold half a surrogate pair", "write the whole character"),
}


def gap(node: ast.AST, rule: str | Rule, *, instead: str = "", **names: str) -> Gap:
    """Return the gap that *rule* describes, at the line of *node*, with *names* put into its text."""
    what, advice = RULES[rule] if isinstance(rule, str) else rule
    # Not str.format(): the texts show code, and code has braces of its own.
    for name, value in names.items():
        what, advice = what.replace(f"{{{name}}}", value), advice.replace(f"{{{name}}}", value)
    return Gap(getattr(node, "lineno", 1), what, instead or advice)

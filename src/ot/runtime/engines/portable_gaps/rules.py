"""What the portable engine refuses or answers differently (pydantic-monty 1.4), with what to write instead: data only.

The differential test finds out when a new release of the engine makes a line untrue, and `docs/make_portable_engine.py`
writes the reference page from it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ot.runtime.engines.portable_gaps.library import MODULES


class Rule(NamedTuple):
    """What is refused, and what to write instead; ``{name}`` stands for the name found in the program."""

    what: str
    instead: str


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LEAVE_OUT: Final = "leave it out"

# ---------------------------------------------------------------- syntax, by the name of its node

SYNTAX: Final = {
    "Yield": Rule("yield is not supported", "build a list and return it"),
    "YieldFrom": Rule("yield from is not supported", "build a list and return it"),
    "Delete": Rule("del is not supported", "use .pop(key), a slice such as xs[1:], or leave it out"),
    "AsyncFor": Rule("async for is not supported", "await the whole list, then use a plain for"),
    "AsyncWith": Rule("async with is not supported", "use await and try/finally"),
    "TryStar": Rule("except* is not supported", "use except"),
    "TypeAlias": Rule("type X = ... is not supported", "leave the alias out"),
    "TemplateStr": Rule("t-strings are not supported", "use an f-string"),
}

# ---------------------------------------------------------------- special methods of a program's own classes

_COMPARE: Final = "compare with a key: sorted(xs, key=lambda x: x.n), x.n < y.n"
_NOT_HIDDEN: Final = "attributes cannot be guarded: use methods"
SPECIAL_METHODS_LACKING: Final = {
    "__len__": "use a method of another name: p.size()",
    "__bool__": "use a method of another name: p.is_empty()",
    "__lt__": _COMPARE,
    "__le__": _COMPARE,
    "__gt__": _COMPARE,
    "__ge__": _COMPARE,
    "__ne__": "write __eq__ only",
    "__format__": "write __str__, without a format specification",
    "__getattr__": _NOT_HIDDEN,
    "__getattribute__": _NOT_HIDDEN,
    "__setattr__": _NOT_HIDDEN,
    "__delattr__": _NOT_HIDDEN,
    "__slots__": _LEAVE_OUT,
    "__new__": "use a plain function that returns the object",
    "__del__": "use with, or try/finally",
    "__reversed__": "use a method that returns a list",
    "__bytes__": "use a method of another name",
    "__complex__": "use a method of another name",
    "__delitem__": "use a method of another name",
    "__missing__": "use dict.get() or defaultdict",
    "__class_getitem__": _LEAVE_OUT,
    "__init_subclass__": _LEAVE_OUT,
    "__instancecheck__": _LEAVE_OUT,
    "__get__": _NOT_HIDDEN,
    "__set__": _NOT_HIDDEN,
    "__set_name__": _NOT_HIDDEN,
    "__await__": "use async def",
    "__aenter__": "use __enter__ and with",
    "__aexit__": "use __exit__ and with",
    "__aiter__": "use __iter__ and for",
    "__anext__": "use __next__ and for",
    "__fspath__": "use str(path)",
    **{
        f"__i{name}__": "write the plain operator's method, which returns a new object"
        for name in (
            "add",
            "sub",
            "mul",
            "matmul",
            "truediv",
            "floordiv",
            "mod",
            "pow",
            "lshift",
            "rshift",
            "and",
            "xor",
            "or",
        )
    },
}
# Special methods in which a tool may be called; the interpreter runs the others itself and cannot wait inside them.
SPECIAL_METHODS_THAT_WAIT: Final = frozenset({"__init__", "__call__", "__enter__", "__exit__"})

# ---------------------------------------------------------------- functions that call a function they are given

FIRST: Final = 0
SECOND: Final = 1
# The position or the keyword of the function that each one calls.
CALLBACKS: Final = {
    "map": (FIRST,),
    "filter": (FIRST,),
    "iter": (FIRST,),
    "sorted": ("key",),
    "min": ("key",),
    "max": ("key",),
    "bisect.bisect": ("key",),
    "bisect.bisect_left": ("key",),
    "bisect.bisect_right": ("key",),
    "bisect.insort": ("key",),
    "bisect.insort_left": ("key",),
    "bisect.insort_right": ("key",),
    "collections.defaultdict": (FIRST,),
    "dataclasses.field": ("default_factory",),
    "itertools.accumulate": (SECOND, "func"),
    "itertools.dropwhile": (FIRST,),
    "itertools.filterfalse": (FIRST,),
    "itertools.groupby": (SECOND, "key"),
    "itertools.starmap": (FIRST,),
    "itertools.takewhile": (FIRST,),
}

# ---------------------------------------------------------------- what a call gives back

# Lists here, one-pass iterators in CPython.
LAZY: Final = frozenset({"enumerate", "filter", "map", "re.finditer", "reversed", "zip"})
# Objects that leave the program as their printed form, not as data.
NOT_PLAIN: Final = frozenset({"csv.DictReader", "csv.reader", "iter", "range", "slice"}) | {
    f"itertools.{name}" for name in MODULES["itertools"] - {"tee"}
}
VIEWS: Final = frozenset({"items", "keys", "values"})
MAKES: Final = {
    "bytes": "bytes",
    "decimal.Decimal": "Decimal",
    "dict": "dict",
    "float": "float",
    "frozenset": "frozenset",
    "int": "int",
    "list": "list",
    "repr": "str",
    "set": "set",
    "sorted": "list",
    "str": "str",
    "tuple": "tuple",
}
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

ENCODINGS: Final = _names("ascii us-ascii u8 utf-16 utf-16-be utf-16-le utf-32 utf-32-be utf-32-le utf-8 utf8")
EXCEPTIONS: Final = _names(
    """
    ArithmeticError AssertionError AttributeError BaseException Exception FileExistsError FileNotFoundError
    ImportError IndexError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError
    ModuleNotFoundError NameError NotADirectoryError NotImplementedError OSError OverflowError PermissionError
    RecursionError RuntimeError StopIteration SyntaxError SystemExit TimeoutError TypeError UnboundLocalError
    UnicodeDecodeError UnicodeEncodeError ValueError ZeroDivisionError
    """
)

# ---------------------------------------------------------------- regular expressions

# Searched in a pattern that the program writes out; an even number of backslashes before the one that counts.
_ESCAPE: Final = r"(?<!\\)(?:\\\\)*\\"
PATTERNS: Final = {
    _ESCAPE + "Z": Rule(r"\Z also matches before a last newline", "use re.fullmatch(), or $, which does not"),
    _ESCAPE + "[<>]": Rule(r"\< and \> are word boundaries", r"write < and > without a backslash, or \b"),
    _ESCAPE + "[pPhHKGzRXe]": Rule("this escape is unknown to CPython", "write the characters out"),
    _ESCAPE + "0": Rule("octal escapes are not supported", r"write \x00"),
    _ESCAPE + "N": Rule(r"\N{...} is not supported", "write the character itself"),
    r"(?<!\\)\[\^?\]?(?:[^\]\\\[&~-]|\\.|&(?!&)|~(?!~)|-(?!-))*+(?:\[|&&|--|~~)": Rule(
        "[, &&, -- and ~~ inside [...] are set operations", r"put a backslash before them: \["
    ),
    r"\(\?<[A-Za-z_]": Rule("(?<name>...) is unknown to CPython", "write (?P<name>...)"),
    r"\(\?[a-zA-Z]*[aL]": Rule("the flags a and L are not supported", "write [a-zA-Z0-9_] and [0-9] out"),
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
    "builtin": Rule("there is no {name}", ""),
    "attribute": Rule("there is no .{name}", ""),
    "star import": Rule("from {name} import * is not supported", "name what you import"),
    "relative import": Rule("relative imports are not supported", "a program is one file: define it here"),
    "keyword": Rule("{name} is not supported", ""),
    "method value": Rule(".{name} can only be called, not held", "use a lambda: lambda *args: x.{name}(*args)"),
    "type method": Rule(
        "{name} is missing: methods are not reached through their type", "use a lambda: lambda x: x.{method}()"
    ),
    "hasattr": Rule("{name} does not see methods", "use isinstance(x, dict), isinstance(x, list)"),
    "inheritance": Rule("a class cannot have bases or a metaclass", "repeat what you need; raise ValueError('...')"),
    "method decorator": Rule(
        "a method cannot be decorated", "write a plain method, or a function outside of the class"
    ),
    "class body": Rule("a class may hold only methods and name = value", "move the rest out of the class"),
    "special method": Rule("{name} is ignored", ""),
    "function attribute": Rule("a function has no .{name}", "write the text out, or keep the value in a variable"),
    "builtin as item": Rule(
        "{name} in [... for {name} in ...] outside of functions is the builtin, not the item",
        "use another name: [f(x) for x in xs]",
    ),
    "async comprehension": Rule("async for is not supported", "await the whole list, then use a plain for"),
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
    "function given": Rule("a function cannot be given to a tool", "give it data"),
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
    "exception attribute": Rule("an exception has only .args", "use str(error) and type(error).__name__"),
    "match arguments": Rule(".{name} takes no name and no default", "use .group('name'), or .groups() and a check"),
    "one set": Rule(".{name}() takes one argument", "use the operator: a | b | c"),
    "fraction of time": Rule("timedelta() takes whole numbers", "use a smaller unit: timedelta(minutes=90)"),
    "endless": Rule("this runs for ever: {name} makes its whole list at once", "use a for loop with break"),
    "sentinel": Rule(
        "object() cannot be made", "use a value that cannot occur, such as a list of its own: MISSING = []"
    ),
    "bytes": Rule("bytes() takes no list of ints", "use bytes.fromhex(''.join(f'{n:02x}' for n in ns))"),
    "encoding": Rule("there is no encoding {name}", "use utf-8, utf-16, utf-32 or ascii"),
    "empty match": Rule("a pattern that can match nothing finds fewer matches", "use + instead of *, or leave ? out"),
    "replacement": Rule(
        "the replacement must be written out, and a backslash in it is only safe as \\g<1>",
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

# ---------------------------------------------------------------- differences that a program's text cannot show

DIFFERENCES: Final = {
    "sets": Rule("the order of a set differs from CPython's", "use sorted(...)"),
    "lists for iterators": Rule(
        "(... for ...), map, filter, zip, enumerate, reversed and re.finditer work at once and are lists: prints and "
        "errors inside them come earlier, any() and all() run every item, later changes to the source are not seen",
        "use a for loop where the order of effects matters",
    ),
    "sum of floats": Rule("sum() adds floats plainly, CPython 3.12 and later corrects the error", "use math.fsum(...)"),
    "float text": Rule("a float of 15 or more digits that ends in a tie may be written with another last digit", ""),
    "huge round": Rule("round(x, -n) of floats above 1e16 may differ in the last digit", "use ints"),
    "math": Rule("math.cbrt and math.lgamma may differ in the last digit", "round the result"),
    "dollar": Rule("$ matches only at the very end of a text, not before a last newline", "strip the text first"),
    "classes of characters": Rule(
        r"\w takes combining marks and joiners and not superscripts and fractions, \s not \x1c to \x1f, İ is not i", ""
    ),
    "groups": Rule("a group inside a repetition that ends with an empty turn keeps its last text", ""),
    "variable look-behind": Rule("a look-behind of variable width and (?i) in the middle are accepted", ""),
    "flags": Rule("pattern.flags is without re.UNICODE", ""),
    "equal keys": Rule("d[True] = x renames the key 1 to True", "use one type of key"),
    "nan": Rule(
        "nan is found in a list or dict by its value, also where the text does not show that it is one",
        "use math.isnan()",
    ),
    "hash": Rule("hash() gives other numbers", "use hashlib"),
    "is": Rule("is tells equal constants apart that CPython shares", "use =="),
    "messages": Rule("some messages of built-in exceptions are worded differently", "catch by type"),
    "object text": Rule("str() of an object without __str__ is '<P object at ...>'", "write __str__"),
    "format": Rule("a width is accepted for None, lists and dicts: f'{None:5}'", "use str(x)"),
    "hints": Rule("type hints are not evaluated", ""),
    "gather": Rule("gathered coroutines take no turns at asyncio.sleep(0), and may wake in another order", ""),
    "dates": Rule(
        "strptime() ignores leading spaces, is strict about upper and lower case, and reads %y 69 as 2069; "
        "strftime('%Y') has four digits for any year, and directives outside of C's standard differ",
        "",
    ),
    "find": Rule("'abc'.find('', 10) is 3", ""),
    "unicode": Rule("Unicode tables are those of version 16", ""),
    "values": Rule(
        "a value that is no plain data (a view, a range, a match, a function) leaves the program as its printed form",
        "",
    ),
    "interpreter": Rule("sys.version_info says 3.14", ""),
    "eval": Rule("text given to eval() and exec() is not checked before it runs", "write the code itself"),
    "dynamic attributes": Rule("getattr(x, name, default) with a computed name sees no methods", "use isinstance()"),
    "private names": Rule("self.__x is stored under its own name", ""),
}

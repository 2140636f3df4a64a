"""What the portable engine's library lacks (pydantic-monty 1.4), and what to write instead: tables, and their check.

What is named here is refused before a program runs; whatever else is missing, the engine itself refuses when it is
reached. The differential test finds out when a new release makes a line untrue, and `docs/make_portable_engine.py`
writes the reference page from it.
"""

from __future__ import annotations

import ast
import datetime
import decimal
import pathlib
import random
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from ot.errors import Gap
from ot.runtime.engines.portable.gaps.names import PACK, Names
from ot.runtime.engines.portable.gaps.rules import MODULES, SPECIAL_METHODS_LACKING, gap, table

BUILTINS: Final = table(
    """
    __import__: use an import statement
    ascii: use repr(x)
    breakpoint: use print()
    bytearray: use bytes, or a list of ints
    callable: know what you call; a program's own functions are callable
    compile: write the code itself
    delattr: set the attribute to None
    dir: pack functions are listed by ot.help()
    globals: keep values in a dict of your own
    help: use ot.help()
    input: programs cannot ask for input; take the value from a tool
    issubclass: compare the types themselves
    memoryview: use bytes
    super: classes have no bases here; call the function by its name
    vars: write the attributes out: {'x': p.x}
    FloatingPointError: use ArithmeticError
    GeneratorExit: there are no generators
    ReferenceError: use LookupError
    StopAsyncIteration: use StopIteration
    PythonFinalizationError SystemError: use RuntimeError
    aiter anext: use a plain list
    classmethod staticmethod: use a plain function
    exit quit: end the program with the value as its last expression
    BaseExceptionGroup ExceptionGroup: raise one exception
    BlockingIOError BrokenPipeError ChildProcessError ConnectionAbortedError ConnectionError: use OSError
    ConnectionRefusedError ConnectionResetError EnvironmentError IOError InterruptedError: use OSError
    ProcessLookupError: use OSError
    BufferError EOFError UnicodeError UnicodeTranslateError: use ValueError
    BytesWarning DeprecationWarning EncodingWarning FutureWarning ImportWarning: print() what you want to say
    PendingDeprecationWarning ResourceWarning RuntimeWarning SyntaxWarning: print() what you want to say
    UnicodeWarning UserWarning Warning: print() what you want to say
    IndentationError TabError: use SyntaxError
    """
)

ANY_NAME: Final = "use plain Python, or a tool that does it"
INSTEAD_OF_MODULE: Final = table(
    r"""
    abc: leave abstract classes out
    ast: use json.loads() for data
    calendar: use datetime.date and timedelta
    contextlib: use try/finally, or a class with __enter__ and __exit__
    difflib: compare the lines yourself
    enum: use a plain class with constants: class Color: RED = 1
    fnmatch: use re, or str.startswith() and str.endswith()
    fractions: use decimal, or keep numerator and denominator as ints
    heapq: use sorted(xs)[:n]
    glob: use pathlib: sorted(str(path) for path in Path('.').glob('*.txt'))
    html: use str.replace(): text.replace('&', '&amp;').replace('<', '&lt;')
    inspect: pack functions are described by ot.help()
    io: read with csv.reader(text.splitlines()); build text with '\n'.join(lines)
    numbers: use isinstance(x, (int, float))
    numpy: use lists and math
    operator: use a lambda: key=lambda x: x[1]
    pandas: use lists of dicts
    pprint: use json.dumps(x, indent=2)
    queue: use a list
    shutil: use file.copy(), file.move() and file.delete()
    string: write the characters out: 'abcdefghijklmnopqrstuvwxyz', '0123456789'
    tempfile: keep the data in a variable
    textwrap: work on text.splitlines()
    traceback: use str(error) and type(error).__name__
    types: use a class or a dict
    typing_extensions: use typing, or leave the hint out
    urllib: use a tool to fetch, str methods to take a URL apart
    xml: use re, or a tool that returns data
    yaml: use json or tomllib
    zoneinfo: use datetime.timezone(timedelta(hours=2))
    collections.abc: use typing, or isinstance(x, (list, tuple))
    concurrent multiprocessing threading: use await asyncio.gather(...)
    ctypes http httpx requests socket subprocess: a program is contained: use a tool
    logging warnings: use print()
    secrets uuid: use random.randbytes(16).hex()
    """
) | {
    "statistics": "use sum(xs) / len(xs) for the mean; for the median s, n = sorted(xs), len(xs), and then "
    "s[n // 2] if n % 2 else (s[n // 2 - 1] + s[n // 2]) / 2"
}

# Missing, or there and different: re.ASCII is ignored, sys.platform says 'monty'.
INSTEAD_OF_NAME: Final = table(
    """
    asyncio.Lock: leave it out: nothing runs at the same moment
    asyncio.Queue: use a list
    asyncio.Semaphore: gather slices of the list: xs[i:i + 10]
    asyncio.TimeoutError: use TimeoutError
    asyncio.get_event_loop: use await at the top of the program
    asyncio.timeout: a call has its own time limit
    asyncio.wait_for: a call has its own time limit; await it directly
    collections.ChainMap: use {**defaults, **own}
    collections.OrderedDict: use dict, which keeps its order
    dataclasses.asdict: write the fields out: {'x': p.x}
    dataclasses.astuple: write the fields out: (p.x, p.y)
    dataclasses.fields: write the names of the fields out
    dataclasses.replace: call the class with all its fields
    datetime.UTC: use datetime.timezone.utc
    datetime.date.fromtimestamp: use date(1970, 1, 1) + timedelta(seconds=n)
    datetime.datetime.today: use datetime.now()
    functools.cached_property: use a plain method
    functools.cmp_to_key: use a key function that returns a tuple
    functools.singledispatch: use isinstance() or match
    functools.total_ordering: use sorted(xs, key=lambda x: x.n)
    functools.wraps: leave it out: functions have no __name__ here
    json.JSONDecoder: use json.loads()
    json.JSONEncoder: turn the values into plain data before json.dumps()
    os.urandom: use random.randbytes(n)
    random.SystemRandom: use random.Random()
    re.subn: use re.sub() and len(re.findall())
    sys.argv: a program has no arguments: write the value out
    sys.exit: end the program with the value as its last expression, or raise an error
    sys.getsizeof: use len()
    sys.platform: leave it out: it would say 'monty'
    sys.stderr.write: use print(..., file=sys.stderr)
    sys.stdin: programs cannot ask for input; take the value from a tool
    sys.stdout.write: use print(..., end='')
    typing.NamedTuple: use collections.namedtuple
    typing.TypedDict: use a plain dict
    typing.cast: leave the cast out
    asyncio.TaskGroup asyncio.as_completed asyncio.create_task asyncio.ensure_future: use await asyncio.gather(...)
    asyncio.to_thread asyncio.wait: use await asyncio.gather(...)
    os.environ os.getenv: a program has no environment: use a tool
    pathlib.PurePath pathlib.PurePosixPath: use pathlib.Path
    re.A re.ASCII: write [a-zA-Z0-9_] and [0-9] out: the flag is ignored
    re.U re.UNICODE: leave it out: patterns are Unicode already
    re.VERBOSE re.X: start the pattern with (?x)
    sys.executable typing.NewType typing.TypeAlias typing.overload: leave it out
    sys.stderr.flush sys.stdout.flush: use print(), which needs no flush
    """
)

# Attributes that CPython has and no value of this engine does.
LACKING_ATTRIBUTES: Final = table(
    """
    format_map: use .format(**mapping)
    maketrans: use .replace() for each character
    translate: use .replace() for each character, or ''.join(table.get(c, c) for c in text)
    bit_count: use bin(n).count('1')
    bit_length: use len(bin(n)) - 2
    from_bytes: use int(data.hex(), 16)
    is_integer: use x == int(x)
    to_bytes: use bytes.fromhex(f'{n:04x}')
    difference_update: use s -= other
    intersection_update: use s &= other
    symmetric_difference_update: use s ^= other
    ctime: use .strftime('%c')
    fromisocalendar: use datetime.strptime(text, '%G-W%V-%u')
    fromordinal: use date(1, 1, 1) + timedelta(days=n - 1)
    fromtimestamp: use datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=n)
    isocalendar: use int(d.strftime('%V'))
    timetuple: use .year, .month, .day, or int(d.strftime('%j'))
    toordinal: use (d - date(1, 1, 1)).days + 1
    utcfromtimestamp: use datetime(1970, 1, 1) + timedelta(seconds=n)
    utcnow: use datetime.now(timezone.utc)
    utctimetuple: use .astimezone(timezone.utc)
    subn: use sub() and len(findall())
    expand: use .group() and an f-string
    groupindex: use .groupdict()
    lastgroup: look for the name in .groupdict() that is not None
    lastindex: look at .groups()
    as_uri: use 'file://' + str(path)
    expanduser: write the whole path
    is_relative_to: use str(path).startswith(str(base) + '/')
    relative_to: use str(path).removeprefix(str(base) + '/')
    samefile: compare the paths
    parents: take str(path) apart with .split('/')
    add_note: put it into the message
    __dict__: write the attributes out: {'x': p.x}
    symlink_to hardlink_to: a program is contained: use a tool
    with_traceback __globals__ __builtins__ __code__ __closure__ __defaults__: leave it out
    strerror __cause__ __context__ __traceback__: keep what you need in variables; an exception has only .args
    __notes__: keep what you need in variables; an exception has only .args
    __class__ __bases__ __mro__ __subclasses__ __qualname__: use type(x) and type(x).__name__
    __len__ __getitem__ __contains__ __iter__ __next__: use the operator or the builtin: len(x), x == y, x[i]
    __add__ __sub__ __mul__ __lt__ __ne__ __bool__: use the operator or the builtin: len(x), x == y, x[i]
    """
)

TYPES: tuple[type[Any], ...] = (
    str, bytes, int, float, list, tuple, dict, set, range, slice, Counter, defaultdict, deque, datetime.datetime,
    datetime.date, datetime.time, datetime.timedelta, datetime.timezone, decimal.Decimal, re.Pattern, re.Match,
    pathlib.Path, random.Random,
)  # fmt: skip
_PUBLIC = {(name, callable(getattr(kind, name))) for kind in TYPES for name in dir(kind) if name[0] != "_"}
METHODS = frozenset(name for name, is_method in _PUBLIC if is_method and (name, False) not in _PUBLIC)
"""The methods of what a program can make: in the engine they exist only in a call, and hasattr() says False."""

# Arguments that are given late in a program, when its tools have been called: these are refused before it runs.
KEYWORDS: Final = table(
    """
    asyncio.gather(return_exceptions=): catch the error inside the coroutine and return it
    json.dumps(cls=): turn the values into plain data first
    json.dumps(default=): turn the values into plain data first: str(date)
    json.loads(cls=) json.loads(object_hook=) json.loads(object_pairs_hook=): change the data after loading it
    json.loads(parse_constant=): change the data after loading it
    """
)


# ---------------------------------------------------------------- the check

_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError"})


def imports(names: Names) -> Iterator[Gap]:
    """Yield modules, and names in them, that are missing and whose absence the program does not handle."""
    handled = _find_handled_imports(names)
    for node in names.of(ast.Import):
        if id(node) not in handled:
            yield from (found for alias in node.names for found in _module(names, node, alias.name))
    for node in names.of(ast.ImportFrom):
        if id(node) not in handled and node.module and not node.level:
            yield from _module(names, node, node.module)
            yield from (found for alias in node.names for found in _name(node, f"{node.module}.{alias.name}"))


def _find_handled_imports(names: Names) -> frozenset[int]:
    """Return the ids of what stands in a try that catches the failure of an import."""
    tries = [
        node for node in names.of(ast.Try) if not _IMPORT_ERRORS.isdisjoint(chain(*map(list_caught, node.handlers)))
    ]
    return frozenset(id(node) for statement in tries for part in statement.body for node in ast.walk(part))


def list_caught(handler: ast.ExceptHandler) -> list[str]:
    """Return the names of the exceptions that *handler* catches."""
    return [node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)] if handler.type else []


def _module(names: Names, node: ast.stmt, module: str) -> Iterator[Gap]:
    top = module.partition(".")[0]
    if module not in MODULES and top not in names.packs:
        instead = INSTEAD_OF_MODULE.get(module) or INSTEAD_OF_MODULE.get(top, ANY_NAME)
        yield gap(node, "module", name=module, instead=instead)


def _name(node: ast.AST, path: str) -> Iterator[Gap]:
    if instead := INSTEAD_OF_NAME.get(path):
        yield gap(node, "name", name=path, instead=instead)


def builtins(names: Names) -> Iterator[Gap]:
    """Yield builtins that are missing and that the program does not define itself."""
    for node in names.of(ast.Name):
        if node.id in BUILTINS and not names.binds(node.id):
            yield gap(node, "name", name=node.id, instead=BUILTINS[node.id])


def attributes(names: Names) -> Iterator[Gap]:
    """Yield attributes that no module or value of the engine has, and those of packs that are assigned."""
    called = {id(call.func) for call in names.of(ast.Call)}
    for node in names.of(ast.Attribute):
        path, is_read = names.path(node), isinstance(node.ctx, ast.Load)
        if path.startswith(PACK):
            if not is_read:
                yield gap(node, "pack attribute", name=path.removeprefix(PACK))
        elif is_read and (path in INSTEAD_OF_NAME or names.path(node.value) in MODULES):
            yield from _name(node, path)
        elif is_read and not names.may_have(node.attr):
            if instead := LACKING_ATTRIBUTES.get(node.attr):
                yield gap(node, "name", name=path or f".{node.attr}", instead=instead)
            elif node.attr in METHODS and id(node) not in called:
                yield gap(node, "method value", name=path or f".{node.attr}", method=node.attr)


def keywords(names: Names) -> Iterator[Gap]:
    """Yield arguments that a function of the library does not take."""
    for call, path in names.calls:
        for keyword in call.keywords if path else ():
            if instead := KEYWORDS.get(f"{path}({keyword.arg}=)"):
                yield gap(keyword, "keyword", name=f"{path}({keyword.arg}=)", instead=instead)


def special_methods(names: Names) -> Iterator[Gap]:
    """Yield special methods and variables of the program's classes that the engine ignores."""
    for node in names.of(ast.ClassDef):
        for statement in node.body:
            for name in names.list_bound(statement):
                if instead := SPECIAL_METHODS_LACKING.get(name):
                    yield gap(statement, "special method", name=name, instead=instead)

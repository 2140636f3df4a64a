"""What the portable engine's library has and lacks (pydantic-monty 1.4): data only.

A name that is not here is refused before a program runs. The differential test finds out when a new release of the
engine makes a line untrue, and `docs/make_portable_engine.py` writes the reference page from it.
"""

from __future__ import annotations

from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NONE: Final = frozenset[str]()
_LEAVE_OUT: Final = "leave it out"
_A_TOOL: Final = "a program is contained: use a tool"

# ---------------------------------------------------------------- builtins that are missing

_NO_WARNINGS: Final = "print() what you want to say"
_OS_ERROR: Final = "use OSError"
BUILTINS: Final = {
    "__import__": "use an import statement",
    "aiter": "use a plain list",
    "anext": "use a plain list",
    "ascii": "use repr(x)",
    "breakpoint": "use print()",
    "bytearray": "use bytes, or a list of ints",
    "callable": "know what you call; a program's own functions are callable",
    "classmethod": "use a plain function",
    "compile": "write the code itself",
    "delattr": "set the attribute to None",
    "dir": "pack functions are listed by ot.help()",
    "exit": "end the program with the value as its last expression",
    "globals": "keep values in a dict of your own",
    "help": "use ot.help()",
    "input": "a program cannot ask; take the value from a tool",
    "issubclass": "compare the types themselves",
    "memoryview": "use bytes",
    "quit": "end the program with the value as its last expression",
    "staticmethod": "use a plain function",
    "super": "classes have no bases here; call the function by its name",
    "vars": "write the attributes out: {'x': p.x}",
    "BaseExceptionGroup": "raise one exception",
    "BlockingIOError": _OS_ERROR,
    "BrokenPipeError": _OS_ERROR,
    "BufferError": "use ValueError",
    "BytesWarning": _NO_WARNINGS,
    "ChildProcessError": _OS_ERROR,
    "ConnectionAbortedError": _OS_ERROR,
    "ConnectionError": _OS_ERROR,
    "ConnectionRefusedError": _OS_ERROR,
    "ConnectionResetError": _OS_ERROR,
    "DeprecationWarning": _NO_WARNINGS,
    "EOFError": "use ValueError",
    "EncodingWarning": _NO_WARNINGS,
    "EnvironmentError": _OS_ERROR,
    "ExceptionGroup": "raise one exception",
    "FloatingPointError": "use ArithmeticError",
    "FutureWarning": _NO_WARNINGS,
    "GeneratorExit": "there are no generators",
    "IOError": _OS_ERROR,
    "ImportWarning": _NO_WARNINGS,
    "IndentationError": "use SyntaxError",
    "InterruptedError": _OS_ERROR,
    "PendingDeprecationWarning": _NO_WARNINGS,
    "ProcessLookupError": _OS_ERROR,
    "ReferenceError": "use LookupError",
    "ResourceWarning": _NO_WARNINGS,
    "RuntimeWarning": _NO_WARNINGS,
    "StopAsyncIteration": "use StopIteration",
    "SyntaxWarning": _NO_WARNINGS,
    "SystemError": "use RuntimeError",
    "TabError": "use SyntaxError",
    "UnicodeError": "use ValueError",
    "UnicodeTranslateError": "use ValueError",
    "UnicodeWarning": _NO_WARNINGS,
    "UserWarning": _NO_WARNINGS,
    "Warning": _NO_WARNINGS,
}

# ---------------------------------------------------------------- modules: what each one has

_OS_PATH: Final = _names(
    """
    abspath altsep basename commonpath commonprefix curdir defpath devnull dirname exists expanduser expandvars
    extsep getatime getctime getmtime getsize isabs isdir isfile isjunction islink ismount join lexists normcase
    normpath pardir pathsep realpath relpath samefile samestat sep split splitdrive splitext splitroot
    supports_unicode_filenames
    """
)
_RANDOM: Final = _names(
    """
    betavariate binomialvariate choice choices expovariate gammavariate gauss getrandbits getstate lognormvariate
    normalvariate paretovariate randbytes randint random randrange sample seed setstate shuffle triangular uniform
    vonmisesvariate weibullvariate
    """
)
MODULES: Final = {
    "__future__": frozenset(["annotations"]),
    "asyncio": _names("gather run sleep"),
    "base64": _names(
        """
        MAXBINSIZE MAXLINESIZE a85decode a85encode b16decode b16encode b32decode b32encode b32hexdecode
        b32hexencode b64decode b64encode b85decode b85encode decodebytes encodebytes standard_b64decode
        standard_b64encode urlsafe_b64decode urlsafe_b64encode
        """
    ),
    "binascii": _names(
        """
        Error Incomplete a2b_base64 a2b_hex a2b_qp a2b_uu b2a_base64 b2a_hex b2a_qp b2a_uu crc32 crc_hqx hexlify
        unhexlify
        """
    ),
    "bisect": _names("bisect bisect_left bisect_right insort insort_left insort_right"),
    "collections": _names("Counter defaultdict deque namedtuple"),
    "copy": _names("copy deepcopy"),
    "csv": _names(
        """
        Dialect DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC QUOTE_NOTNULL
        QUOTE_STRINGS excel excel_tab field_size_limit get_dialect list_dialects reader unix_dialect writer
        """
    ),
    "dataclasses": _names("FrozenInstanceError MISSING dataclass field is_dataclass"),
    "datetime": _names("date datetime time timedelta timezone"),
    "decimal": _names(
        """
        BasicContext Clamped Context ConversionSyntax Decimal DecimalException DecimalTuple DefaultContext
        DivisionByZero DivisionImpossible DivisionUndefined ExtendedContext FloatOperation HAVE_CONTEXTVAR
        HAVE_THREADS Inexact InvalidContext InvalidOperation MAX_EMAX MAX_PREC MIN_EMIN MIN_ETINY Overflow
        ROUND_05UP ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP
        Rounded Subnormal Underflow getcontext localcontext setcontext
        """
    ),
    "functools": _names("cache lru_cache partial reduce"),
    "hashlib": _names(
        """
        algorithms_available algorithms_guaranteed blake2b blake2s md5 new pbkdf2_hmac sha1 sha224 sha256 sha384
        sha3_224 sha3_256 sha3_384 sha3_512 sha512 shake_128 shake_256
        """
    ),
    "itertools": _names(
        """
        accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile
        filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest
        """
    ),
    "json": _names("JSONDecodeError dump dumps load loads"),
    "math": _names(
        """
        acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc exp exp2
        expm1 fabs factorial floor fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm
        ldexp lgamma log log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder sin sinh sqrt
        sumprod tan tanh tau trunc ulp
        """
    ),
    "os": _names(
        """
        altsep chdir curdir defpath devnull extsep fspath getcwd getcwdb linesep listdir makedirs mkdir name
        pardir path pathsep remove rename replace rmdir scandir sep stat unlink walk
        """
    ),
    "os.path": _OS_PATH,
    "pathlib": frozenset(["Path"]),
    "posixpath": _OS_PATH,
    "random": _RANDOM | {"Random"},
    "re": _names(
        """
        DOTALL I IGNORECASE M MULTILINE Match NOFLAG Pattern S compile error escape findall finditer fullmatch
        match search split sub
        """
    ),
    "sys": _names(
        """
        abiflags api_version base_exec_prefix base_prefix builtin_module_names byteorder copyright
        dont_write_bytecode exec_prefix flags float_info float_repr_style hexversion maxsize maxunicode
        platlibdir prefix pycache_prefix stderr stdout version version_info
        """
    ),
    "time": _names(
        """
        altzone asctime ctime daylight gmtime localtime mktime monotonic monotonic_ns perf_counter
        perf_counter_ns process_time process_time_ns sleep strftime strptime thread_time thread_time_ns time
        time_ns timezone tzname
        """
    ),
    "tomllib": _names("TOMLDecodeError load loads"),
    "typing": _names(
        """
        Annotated Any Callable ClassVar Dict Final FrozenSet Generator Generic Iterable Iterator List Literal
        Mapping Never NoReturn Optional Protocol Self Sequence Set TYPE_CHECKING Tuple Type TypeVar Union
        """
    ),
    "unicodedata": _names("category combining is_normalized lookup name normalize unidata_version"),
}

# ---------------------------------------------------------------- what to write instead of a missing module

ANY_MODULE: Final = "use plain Python, or a tool that does it"
INSTEAD_OF_MODULE: Final = {
    "abc": "leave abstract classes out",
    "ast": "use json.loads() for data",
    "calendar": "use datetime.date and timedelta",
    "concurrent": "use await asyncio.gather(...)",
    "contextlib": "use try/finally, or a class with __enter__ and __exit__",
    "ctypes": _A_TOOL,
    "difflib": "compare the lines yourself",
    "enum": "use a plain class with constants: class Color: RED = 1",
    "fnmatch": "use re, or str.startswith() and str.endswith()",
    "fractions": "use decimal, or keep numerator and denominator as ints",
    "glob": _A_TOOL,
    "heapq": "use sorted(xs)[:n]",
    "html": "use str.replace(): text.replace('&', '&amp;').replace('<', '&lt;')",
    "http": _A_TOOL,
    "httpx": _A_TOOL,
    "inspect": "pack functions are described by ot.help()",
    "io": "read with csv.reader(text.splitlines()); build text with '\\n'.join(lines)",
    "logging": "use print()",
    "multiprocessing": "use await asyncio.gather(...)",
    "numbers": "use isinstance(x, (int, float))",
    "numpy": "use lists and math",
    "operator": "use a lambda: key=lambda x: x[1]",
    "pandas": "use lists of dicts",
    "pprint": "use json.dumps(x, indent=2)",
    "queue": "use a list",
    "requests": _A_TOOL,
    "secrets": "use random.randbytes(16).hex()",
    "shutil": _A_TOOL,
    "socket": _A_TOOL,
    "statistics": "use sum(xs) / len(xs) for the mean, sorted(xs)[len(xs) // 2] for the median",
    "string": "write the characters out: 'abcdefghijklmnopqrstuvwxyz', '0123456789'",
    "subprocess": _A_TOOL,
    "tempfile": _A_TOOL,
    "textwrap": "work on text.splitlines()",
    "threading": "use await asyncio.gather(...)",
    "traceback": "use str(error) and type(error).__name__",
    "types": "use a class or a dict",
    "typing_extensions": "use typing, or leave the hint out",
    "urllib": "use a tool to fetch, str methods to take a URL apart",
    "uuid": "use random.randbytes(16).hex()",
    "warnings": "use print()",
    "xml": "use re, or a tool that returns data",
    "yaml": "use json or tomllib",
    "zoneinfo": "use datetime.timezone(timedelta(hours=2))",
    "collections.abc": "use typing, or isinstance(x, (list, tuple))",
}

# ---------------------------------------------------------------- what to write instead of a missing attribute

ANY_NAME: Final = "use plain Python, or a tool that does it"
_GATHER: Final = "use await asyncio.gather(...)"
INSTEAD_OF_NAME: Final = {
    "asyncio.Lock": "leave it out: nothing runs at the same moment",
    "asyncio.Queue": "use a list",
    "asyncio.Semaphore": "gather slices of the list: xs[i:i + 10]",
    "asyncio.TaskGroup": _GATHER,
    "asyncio.TimeoutError": "use TimeoutError",
    "asyncio.as_completed": _GATHER,
    "asyncio.create_task": _GATHER,
    "asyncio.ensure_future": _GATHER,
    "asyncio.get_event_loop": "use await at the top of the program",
    "asyncio.timeout": "a call has its own time limit",
    "asyncio.to_thread": _GATHER,
    "asyncio.wait": _GATHER,
    "asyncio.wait_for": "a call has its own time limit; await it directly",
    "collections.ChainMap": "use {**defaults, **own}",
    "collections.OrderedDict": "use dict, which keeps its order",
    "dataclasses.asdict": "write the fields out: {'x': p.x}",
    "dataclasses.astuple": "write the fields out: (p.x, p.y)",
    "dataclasses.fields": "write the names of the fields out",
    "dataclasses.replace": "call the class with all its fields",
    "datetime.UTC": "use datetime.timezone.utc",
    "datetime.date.fromtimestamp": "use date(1970, 1, 1) + timedelta(seconds=n)",
    "datetime.datetime.fromtimestamp": "use datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=n)",
    "datetime.datetime.today": "use datetime.now()",
    "datetime.datetime.utcfromtimestamp": "use datetime(1970, 1, 1) + timedelta(seconds=n)",
    "datetime.datetime.utcnow": "use datetime.now(timezone.utc)",
    "functools.cached_property": "use a plain method",
    "functools.cmp_to_key": "use a key function that returns a tuple",
    "functools.singledispatch": "use isinstance() or match",
    "functools.total_ordering": "use sorted(xs, key=lambda x: x.n)",
    "functools.wraps": "leave it out: functions have no __name__ here",
    "json.JSONDecoder": "use json.loads()",
    "json.JSONEncoder": "turn the values into plain data before json.dumps()",
    "os.environ": "a program has no environment: use a tool",
    "os.getenv": "a program has no environment: use a tool",
    "os.urandom": "use random.randbytes(n)",
    "pathlib.PurePath": "use pathlib.Path",
    "pathlib.PurePosixPath": "use pathlib.Path",
    "random.SystemRandom": "use random.Random()",
    "re.A": "write [a-zA-Z0-9_] and [0-9] out: the flag is ignored",
    "re.ASCII": "write [a-zA-Z0-9_] and [0-9] out: the flag is ignored",
    "re.U": "leave it out: patterns are Unicode already",
    "re.UNICODE": "leave it out: patterns are Unicode already",
    "re.VERBOSE": "start the pattern with (?x)",
    "re.X": "start the pattern with (?x)",
    "re.subn": "use re.sub() and len(re.findall())",
    "sys.argv": "a program has no arguments: write the value out",
    "sys.executable": _LEAVE_OUT,
    "sys.exit": "end the program with the value as its last expression, or raise an error",
    "sys.getsizeof": "use len()",
    "sys.platform": "leave it out: it would say 'monty'",
    "sys.stderr.flush": "use print(), which needs no flush",
    "sys.stderr.write": "use print(..., file=sys.stderr)",
    "sys.stdin": "a program cannot ask; take the value from a tool",
    "sys.stdout.flush": "use print(), which needs no flush",
    "sys.stdout.write": "use print(..., end='')",
    "typing.NamedTuple": "use collections.namedtuple",
    "typing.NewType": _LEAVE_OUT,
    "typing.TypeAlias": _LEAVE_OUT,
    "typing.TypedDict": "use a plain dict",
    "typing.cast": "leave the cast out",
    "typing.overload": _LEAVE_OUT,
}

# What a type itself answers to: type.attribute. Methods of its values are not among them: str.lower is missing.
TYPE_ATTRIBUTES: Final = {
    "bool": _NONE,
    "bytes": frozenset(["fromhex"]),
    "complex": _NONE,
    "dict": frozenset(["fromkeys"]),
    "float": _NONE,
    "frozenset": _NONE,
    "int": _NONE,
    "list": _NONE,
    "object": _NONE,
    "set": _NONE,
    "str": _NONE,
    "tuple": _NONE,
    "collections.Counter": frozenset(["fromkeys"]),
    "collections.defaultdict": frozenset(["fromkeys"]),
    "collections.deque": _NONE,
    "datetime.date": _names("fromisoformat max min resolution today"),
    "datetime.datetime": _names("combine fromisoformat max min now resolution strptime"),
    "datetime.time": _names("fromisoformat max min resolution"),
    "datetime.timedelta": _names("max min resolution"),
    "datetime.timezone": _names("max min utc"),
    "decimal.Decimal": frozenset(["from_float"]),
    "itertools.chain": frozenset(["from_iterable"]),
    "pathlib.Path": frozenset(["cwd"]),
    "sys.stderr": _NONE,
    "sys.stdout": _NONE,
}
# Of these, the ones that can also be held as a value; the rest can only be called.
TYPE_VALUES: Final = _names("max min resolution utc from_iterable __name__")

# ---------------------------------------------------------------- attributes of values

METHODS: Final = {
    "str": _names(
        """
        capitalize casefold center count encode endswith expandtabs find format index isalnum isalpha isascii
        isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower
        lstrip partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split
        splitlines startswith strip swapcase title upper zfill
        """
    ),
    "bytes": _names(
        """
        capitalize center count decode endswith find fromhex hex index isalnum isalpha isascii isdigit islower
        isspace istitle isupper join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex
        rjust rpartition rsplit rstrip split splitlines startswith strip swapcase title upper zfill
        """
    ),
    "int": _NONE,
    "float": _NONE,
    "bool": _NONE,
    "list": _names("append clear copy count extend index insert pop remove reverse sort"),
    "tuple": _names("count index"),
    "dict": _names("clear copy fromkeys get items keys pop popitem setdefault update values"),
    "set": _names(
        """
        add clear copy difference discard intersection isdisjoint issubset issuperset pop remove
        symmetric_difference union update
        """
    ),
    "frozenset": _names("copy difference intersection isdisjoint issubset issuperset symmetric_difference union"),
    "range": _NONE,
}
# Methods of the other types that a program can make.
_OTHER_METHODS: Final = _RANDOM | _names(
    """
    appendleft extendleft popleft rotate elements most_common subtract total astimezone dst isoformat
    isoweekday strftime timestamp timetz tzname utcoffset weekday total_seconds findall finditer fullmatch match
    search sub group groupdict groups span absolute as_posix exists glob is_absolute is_dir is_file is_symlink
    iterdir joinpath mkdir read_bytes read_text resolve rglob rmdir unlink with_name with_stem with_suffix
    write_bytes write_text adjusted as_tuple quantize to_integral_value digest hexdigest
    """
)
# A method exists only in a call: it is no value, and hasattr() says False.
METHOD_NAMES: Final = _NONE.union(*METHODS.values(), _OTHER_METHODS)

# Attributes that CPython has and no value of this engine does.
_NO_PARENTS: Final = "take str(path) apart with .split('/')"
_EXCEPTION: Final = "keep what you need in variables; an exception has only .args"
_TYPE_OF: Final = "use type(x) and type(x).__name__"
_OPERATOR: Final = "use the operator or the builtin: len(x), x == y, x[i]"
LACKING_ATTRIBUTES: Final = {
    "format_map": "use .format(**mapping)",
    "maketrans": "use .replace() for each character",
    "translate": "use .replace() for each character, or ''.join(table.get(c, c) for c in text)",
    "bit_count": "use bin(n).count('1')",
    "bit_length": "use len(bin(n)) - 2",
    "from_bytes": "use int(data.hex(), 16)",
    "is_integer": "use x == int(x)",
    "to_bytes": "use bytes.fromhex(f'{n:04x}')",
    "difference_update": "use s -= other",
    "intersection_update": "use s &= other",
    "symmetric_difference_update": "use s ^= other",
    "ctime": "use .strftime('%c')",
    "fromisocalendar": "use datetime.strptime(text, '%G-W%V-%u')",
    "fromordinal": "use date(1, 1, 1) + timedelta(days=n - 1)",
    "fromtimestamp": "use datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=n)",
    "isocalendar": "use int(d.strftime('%V'))",
    "timetuple": "use .year, .month, .day, or int(d.strftime('%j'))",
    "toordinal": "use (d - date(1, 1, 1)).days + 1",
    "utcfromtimestamp": "use datetime(1970, 1, 1) + timedelta(seconds=n)",
    "utcnow": "use datetime.now(timezone.utc)",
    "utctimetuple": "use .astimezone(timezone.utc)",
    "subn": "use sub() and len(findall())",
    "expand": "use .group() and an f-string",
    "groupindex": "use .groupdict()",
    "lastgroup": "look for the name in .groupdict() that is not None",
    "lastindex": "look at .groups()",
    "as_uri": "use 'file://' + str(path)",
    "expanduser": "write the whole path",
    "is_relative_to": "use str(path).startswith(str(base) + '/')",
    "relative_to": "use str(path).removeprefix(str(base) + '/')",
    "samefile": "compare the paths",
    "symlink_to": _A_TOOL,
    "hardlink_to": _A_TOOL,
    "parents": _NO_PARENTS,
    "add_note": "put it into the message",
    "with_traceback": _LEAVE_OUT,
    "strerror": _EXCEPTION,
    "__cause__": _EXCEPTION,
    "__context__": _EXCEPTION,
    "__traceback__": _EXCEPTION,
    "__notes__": _EXCEPTION,
    "__class__": _TYPE_OF,
    "__bases__": _TYPE_OF,
    "__mro__": _TYPE_OF,
    "__subclasses__": _TYPE_OF,
    "__qualname__": _TYPE_OF,
    "__dict__": "write the attributes out: {'x': p.x}",
    "__globals__": _LEAVE_OUT,
    "__builtins__": _LEAVE_OUT,
    "__code__": _LEAVE_OUT,
    "__closure__": _LEAVE_OUT,
    "__defaults__": _LEAVE_OUT,
    "__len__": _OPERATOR,
    "__getitem__": _OPERATOR,
    "__contains__": _OPERATOR,
    "__iter__": _OPERATOR,
    "__next__": _OPERATOR,
    "__add__": _OPERATOR,
    "__sub__": _OPERATOR,
    "__mul__": _OPERATOR,
    "__lt__": _OPERATOR,
    "__ne__": _OPERATOR,
    "__bool__": _OPERATOR,
}

# ---------------------------------------------------------------- arguments that are missing or ignored

ANY_KEYWORD: Final = "*"
_WRITE_INIT: Final = "write __init__ yourself"
KEYWORDS: Final = {
    "asyncio.gather": {ANY_KEYWORD: "catch the error inside the coroutine and return it"},
    "dataclasses.dataclass": {
        "init": _WRITE_INIT,
        "kw_only": "call it with keywords",
        "match_args": _LEAVE_OUT,
        "order": "use sorted(xs, key=lambda x: x.n)",
        "repr": "write __repr__ yourself",
        "slots": _LEAVE_OUT,
        "unsafe_hash": "use frozen=True",
        "weakref_slot": _LEAVE_OUT,
    },
    "dataclasses.field": {
        "compare": "write __eq__ yourself",
        "hash": "write __hash__ yourself",
        "init": "set it in __post_init__",
        "kw_only": "call it with keywords",
        "metadata": _LEAVE_OUT,
        "repr": "write __repr__ yourself",
    },
    "json.dumps": {
        "cls": "turn the values into plain data first",
        "default": "turn the values into plain data first: str(date)",
    },
    "json.loads": {
        "cls": "change the data after loading it",
        "object_hook": "change the data after loading it",
        "object_pairs_hook": "change the data after loading it",
        "parse_constant": "change the data after loading it",
    },
    "pow": {ANY_KEYWORD: "give the arguments by position"},
}

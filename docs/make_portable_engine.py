"""Writes docs/reference/portable-engine.md from the tables that the portable engine refuses by.

Run it after a change of the tables: ``PYTHONPATH=src python docs/make_portable_engine.py``
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ot.runtime.engines.portable import refusals
from ot.runtime.engines.portable.gaps import library, rules
from ot.runtime.engines.portable.gaps.rules import Rule

PAGE = Path(__file__).parent / "reference" / "portable-engine.md"

START = """\
# The portable engine

<!-- Written by docs/make_portable_engine.py from the engine's tables. Change those, then run it. -->

OneTool runs a program in one of its engines. The *portable* engine is a small Python in a separate process: it works on
every platform, starts in well under a millisecond, and can access only the tools. It supports a subset of Python. This
page says what it runs, what it refuses, and what to write instead.

1. What the engine is known to answer differently from CPython is **refused before anything runs**, by name and line,
   with what to write instead. So are the missing names listed below.
2. The engine itself refuses anything else it lacks: syntax before anything runs, the rest when it is reached.
3. Differences that cannot be seen in a program's text are listed under [Differences](#differences).
4. These lists are checked against CPython with more than two thousand programs. If a new release of the engine changes
   one of them, that test fails.

A name that the program defines itself, or that is a pack, is never refused: `def next(...)` is yours.

## What it runs

Functions, closures, decorators, lambdas, `async def`, `await` and `asyncio.gather`; plain classes with most special
methods; dataclasses and named tuples; comprehensions, unpacking, `match`, the walrus, f-strings, `with`, `try`; ints of
any size, floats, `Decimal`, text, bytes, lists, dicts, sets; and these modules:

{modules}

The value of the last expression is the value of the program; `return` works at the top level too.
"""

REFUSALS = """
## What it refuses before anything runs

A refusal looks like this; nothing of the program has run:

```text
the portable engine cannot run this; nothing was run
line 1: there is no module statistics; {statistics}
```

An import whose failure the program handles (`try: import numpy` with `except ImportError`) is not refused.
"""

WAITING = """
### Where a tool cannot be called

The interpreter runs these itself and cannot wait inside them: the function passed to {callbacks} or `list.sort`, and
the special methods of your classes other than {methods}. Tools can be called everywhere else: in comprehensions, loops,
functions, methods, `functools.reduce` and cached functions.
"""

SYNTAX = """
### Syntax

The engine's parser refuses these one at a time; nothing of the program has run.

"""

REACHED = """
## What it refuses when it is reached

Earlier tool calls have already been made. The reply names the line, what is missing and what to write instead:

```text
NotImplementedError: the portable engine cannot run this: there is no encoding latin-1
  line 3: text.encode("latin-1")
use utf-8, utf-16, utf-32 or ascii
```

The same goes for attributes and names of modules that are not listed above, and for these:

"""

DIFFERENT = """
## Differences

These cannot be seen in a program's text, so they are not refused. In the portable engine:
"""

PROJECTS = """
A project, `proj.<name>`, is a `PosixPath`: the engine has one class of paths. On the exact engine it is a
`ProjectPath`, which does the same things under another name; write `isinstance(p, Path)`, not `type(p).__name__`.
"""

DIFFERENCES = {
    "sets": Rule("the order of a set differs from CPython's", "use sorted(...)"),
    "lists for iterators": Rule(
        "(... for ...), map, filter, zip, enumerate, reversed and re.finditer run at once and return lists: prints and "
        "errors inside them come earlier, any() and all() run every item, later changes to the source are not seen",
        "use a for loop where the order of effects matters",
    ),
    "sum of floats": Rule("sum() adds floats naively; CPython 3.12 and later corrects the error", "use math.fsum(...)"),
    "float text": Rule(
        "a float of 15 or more digits that ends in a tie may be written with a different last digit", ""
    ),
    "huge round": Rule("round(x, -n) of floats above 1e16 may differ in the last digit", "use ints"),
    "math": Rule("math.cbrt and math.lgamma may differ in the last digit", "round the result"),
    "dollar": Rule("$ matches only at the very end of a text, not before a final newline", "strip the text first"),
    "classes of characters": Rule(
        r"\w matches combining marks and joiners but not superscripts and fractions, \s not \x1c to \x1f, İ is not i",
        "",
    ),
    "groups": Rule("a group inside a repetition that ends with an empty match keeps its last text", ""),
    "variable look-behind": Rule("a look-behind of variable width and (?i) in the middle are accepted", ""),
    "flags": Rule("pattern.flags does not include re.UNICODE", ""),
    "equal keys": Rule("d[True] = x renames the key 1 to True", "use one type of key"),
    "nan": Rule(
        "nan is found in a list or dict by its value, even where the text does not show that it is nan",
        "use math.isnan()",
    ),
    "hash": Rule("hash() returns different numbers", "use hashlib"),
    "is": Rule("is distinguishes equal constants that CPython shares", "use =="),
    "messages": Rule("some messages of built-in exceptions are worded differently", "catch by type"),
    "object text": Rule("str() of an object without __str__ is '<P object at ...>'", "write __str__"),
    "format": Rule("a width is accepted for None, lists and dicts: f'{None:5}'", "use str(x)"),
    "hints": Rule("type hints are not evaluated", ""),
    "gather": Rule("gathered coroutines do not take turns at asyncio.sleep(0), and may wake in another order", ""),
    "dates": Rule(
        "strptime() ignores leading spaces, is case-sensitive, and reads %y 69 as 2069; "
        "strftime('%Y') has four digits for any year, and directives outside the C standard differ",
        "",
    ),
    "find": Rule("'abc'.find('', 10) is 3", ""),
    "unicode": Rule("Unicode tables are those of version 16", ""),
    "values": Rule(
        "a value that is not plain data (a view, a range, a match, a function, an object of your own class) leaves the "
        "program as a text that names it",
        "return a dict, a list or str(x)",
    ),
    "interpreter": Rule("sys.version_info says 3.14", ""),
    "eval": Rule("text given to eval() and exec() is not checked before it runs", "write the code itself"),
    "dynamic attributes": Rule("getattr(x, name, default) with a computed name sees no methods", "use isinstance()"),
    "private names": Rule("self.__x is stored under its own name", ""),
}

_FROM_TABLES = ("module", "name", "keyword", "special method")


def page() -> str:
    """Return the page that the tables make."""
    every = [rule for name, rule in rules.RULES.items() if name not in _FROM_TABLES]
    parts = [
        START.format(modules=code(sorted(rules.MODULES - {"__future__"}))),
        REFUSALS.format(statistics=library.INSTEAD_OF_MODULE["statistics"]),
        "\n### Iterators, tools, calls and values\n\n",
        table(every),
        WAITING.format(callbacks=code(sorted(rules.CALLBACKS)), methods=code(sorted(rules.SPECIAL_METHODS_THAT_WAIT))),
        "\n### Special methods of your own classes\n\nThe engine would ignore these; all others work.\n\n",
        names_table(rules.SPECIAL_METHODS_LACKING),
        "\n### Literal regular expressions\n\n",
        table(rules.PATTERNS.values()),
        "\n### Arguments\n\n",
        names_table(library.KEYWORDS),
        "\n### Builtins\n\n",
        names_table(library.BUILTINS),
        "\n### Modules\n\nEvery module that is not listed above is missing. Instead of the common ones:\n\n",
        names_table(library.INSTEAD_OF_MODULE),
        "\n### Names in modules\n\nThe modules contain less than CPython's. Instead of what is missed most:\n\n",
        names_table(library.INSTEAD_OF_NAME),
        "\n### Attributes and methods\n\n",
        names_table({f".{name}": text for name, text in library.LACKING_ATTRIBUTES.items()}),
        SYNTAX,
        names_table(refusals.SYNTAX),
        REACHED,
        table(rule for _, _, rule in refusals.RAISED),
        DIFFERENT,
        "\n",
        table(DIFFERENCES.values()),
        PROJECTS,
    ]
    return "".join(parts)


def code(names: Iterable[str]) -> str:
    """Return names as a list of code."""
    return ", ".join(f"`{name}`" for name in names)


def table(found: Iterable[Rule]) -> str:
    """Return a table of what is so, and what to write instead."""
    rows = [f"| {cell(rule.what)} | {cell(rule.instead)} |" for rule in found]
    return "\n".join(["| what | write instead |", "|---|---|", *rows]) + "\n"


def names_table(texts: Mapping[str, str]) -> str:
    """Return a table of names, those with the same advice in one row."""
    names: dict[str, list[str]] = {}
    for name, instead in texts.items():
        names.setdefault(instead, []).append(name)
    rows = [f"| {code(together)} | {cell(instead)} |" for instead, together in names.items()]
    return "\n".join(["| missing | write instead |", "|---|---|", *rows]) + "\n"


def cell(text: str) -> str:
    """Return *text* as it must be written inside a table."""
    shown = re.sub(r"\\\d|\\g<0>", "...", text.replace("{name}", "name").replace("{method}", "method"))
    for character in ("\\", "|", "*", "_", "<", "[", "`"):
        shown = shown.replace(character, f"\\{character}")
    return shown


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""Writes docs/reference/portable-engine.md from the tables that the portable engine refuses by.

Run it after a change of the tables: ``PYTHONPATH=src python docs/make_portable_engine.py``
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ot.runtime.engines.portable_gaps import library, rules
from ot.runtime.engines.portable_gaps.rules import Rule

PAGE = Path(__file__).parent / "reference" / "portable-engine.md"

START = """\
# The portable engine

<!-- Written by docs/make_portable_engine.py from the engine's tables. Change those, then run it. -->

OneTool runs a program in one of its engines. The *portable* engine is a small Python in a process of its own: it works
on every platform, starts in well under a millisecond, and reaches nothing but the tools. It is not all of Python. This
page says what it runs, what it refuses, and what to write instead.

Three promises hold:

1. What the engine lacks, or is known to answer differently from CPython, is **refused before anything runs**, by name
   and line, with what to write instead.
2. What cannot be seen in a program's text is listed below under [Differences](#differences).
3. Both lists are checked against CPython with more than two thousand programs. A new release of the engine that moves
   one of them fails that test.

A name that the program defines itself, or that is a pack, is never refused: `def next(...)` is yours.

## What it runs

Functions, closures, decorators, lambdas, `async def`, `await` and `asyncio.gather`; plain classes with most special
methods; dataclasses and named tuples; comprehensions, unpacking, `match`, the walrus, f-strings, `with`, `try`; ints of
any size, floats, `Decimal`, text, bytes, lists, dicts, sets; and these modules:

{modules}

The value of the last expression is the value of the program; `return` works at the top, too.
"""

REFUSALS = """
## What it refuses

A refusal looks like this, and nothing of the program has run:

```text
the portable engine cannot run this; nothing was run
line 1: there is no module statistics; use sum(xs) / len(xs) for the mean, sorted(xs)[len(xs) // 2] for the median
```

What is missing and cannot be seen beforehand (a method of a value that comes from a tool) fails when it is reached,
with `NotImplementedError`, `ImportError`, `AttributeError`, `NameError` or `TypeError` and its line.

An import whose failure the program handles itself (`try: import numpy` with `except ImportError`) is not refused.
"""

WAITING = """
### Where a tool cannot be called

The interpreter runs these itself and cannot wait inside them: the function given to {callbacks} or `list.sort`, and the
special methods of your classes other than {methods}. A tool can be called everywhere else: in comprehensions, loops,
functions, methods, `functools.reduce` and cached functions.
"""

DIFFERENCES = """
## Differences

These cannot be seen in a program's text, so nothing is refused. In the portable engine:
"""

_OF_STATEMENTS = (
    "star import",
    "relative import",
    "inheritance",
    "method decorator",
    "class body",
    "function attribute",
    "builtin as item",
    "async comprehension",
    "too deep",
)
_FROM_TABLES = ("module", "name", "builtin", "attribute", "keyword", "special method")


def page() -> str:
    """Return the page that the tables make."""
    every = [rule for name, rule in rules.RULES.items() if name not in (*_OF_STATEMENTS, *_FROM_TABLES)]
    keywords = {f"{path}({key}=)": text for path, keys in library.KEYWORDS.items() for key, text in keys.items()}
    parts = [
        START.format(modules=code(name for name in library.MODULES if name != "__future__")),
        REFUSALS,
        "\n### Statements and classes\n\n",
        table([*rules.SYNTAX.values(), *(rules.RULES[name] for name in _OF_STATEMENTS)]),
        "\n### Special methods of your own classes\n\nThese would be ignored; all others work.\n\n",
        names_table(rules.SPECIAL_METHODS_LACKING),
        "\n### Iterators, tools, calls and values\n\n",
        table(every),
        WAITING.format(callbacks=code(rules.CALLBACKS), methods=code(sorted(rules.SPECIAL_METHODS_THAT_WAIT))),
        "\n### Regular expressions that are written out\n\n",
        table(rules.PATTERNS.values()),
        "\n### Arguments\n\n",
        names_table({name.replace("(*=)", "(any=)"): text for name, text in keywords.items()}),
        "\n### Builtins\n\n",
        names_table(library.BUILTINS),
        "\n### Modules\n\nEvery module that is not listed above is missing. Instead of the common ones:\n\n",
        names_table(library.INSTEAD_OF_MODULE),
        "\n### Names in modules\n\nThe modules have less in them than CPython's. Instead of what is missed most:\n\n",
        names_table(library.INSTEAD_OF_NAME),
        "\n### Attributes and methods\n\n",
        names_table({f".{name}": text for name, text in library.LACKING_ATTRIBUTES.items()}),
        DIFFERENCES,
        "\n",
        table(rules.DIFFERENCES.values()),
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
    shown = text.replace("{name}", "name").replace("{method}", "method")
    for character in ("\\", "|", "*", "_", "<", "[", "`"):
        shown = shown.replace(character, f"\\{character}")
    return shown


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""Stores one large result and reads it; run by test_result_search.py.

Usage: store_large.py DIRECTORY LINES. Prints as JSON how many plain loops' work storing, paging and searching take, and
how much memory.
"""

from __future__ import annotations

import json
import random
import resource
import sys
from collections.abc import Callable
from itertools import repeat
from pathlib import Path

from output.store_desk import file_store
from pace import TURNS, effort

PATTERNS = ("needle|pin9x", "^err.*x$", "[a-z]+XX[0-9]", "(?i)needle", "NEEDLE")
HOSTILE = ("(?:.{0,30}a){30}Q", "[a-q][^u-z]{13}Q", "(?:[a-z ]?){900}[0-9]{50}Q", "(.*a){25}Q", "(x+x+)+Q")


def main() -> None:
    directory, lines = Path(sys.argv[1]), int(sys.argv[2])
    store = file_store(directory)
    # What only a first call costs.
    tiny = store.put(["x"], tool="t", owner="me").handle
    store.page(tiny, owner="me", search="a.b")
    store.page(tiny, owner="me", search="a", fuzzy=True)
    some = text()
    before = peak()
    with effort() as storing:
        handle = store.put(repeat(some, lines // 10_000), tool="t", owner="me").handle
    report: dict[str, float] = {"store": storing.loops}

    def found(**query: object) -> int:
        return store.page(handle, owner="me", **query).returned  # pyright: ignore[reportArgumentType] - known above

    report["first"] = least(lambda: found() == 100)
    report["last"] = least(lambda: found(offset=lines - 99) == 100)
    report["search"] = max(least(lambda p=p: found(search=p) == 0) for p in PATTERNS)
    report["hostile"] = max(once(lambda p=p: found(search=p) == 0) for p in HOSTILE)
    report["fuzzy"] = once(lambda: found(search="needles in hay", fuzzy=True) <= 1000)
    report["megabytes"] = (peak() - before) / 1024
    sys.stdout.write(json.dumps(report))


def text() -> bytes:
    """Return a megabyte of lines that look like nothing else."""
    characters = b"abcdefghij klmnop_/.:0123456789"
    return b"".join(bytes(random.Random(n).choices(characters, k=99)) + b"\n" for n in range(10_000))


def least(act: Callable[[], bool]) -> float:
    return min(once(act) for _ in range(TURNS))


def once(act: Callable[[], bool]) -> float:
    with effort() as spent:
        if not act():
            raise AssertionError("the page is not the one that was asked for")
    return spent.loops


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()

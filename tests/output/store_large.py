"""Stores one large result and reads it; run by test_result_speed.py.

Usage: store_large.py DIRECTORY LINES. Prints seconds and memory as JSON.

Pages and storing are measured by the clock. Searches are measured by the processor's time: on a machine that does
other things, too, the clock tells about those.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Callable
from itertools import repeat
from pathlib import Path

from output.store_desk import file_store

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
    start = time.perf_counter()
    handle = store.put(repeat(some, lines // 10_000), tool="t", owner="me").handle
    report: dict[str, float] = {"store": time.perf_counter() - start}

    def found(**query: object) -> int:
        return store.page(handle, owner="me", **query).returned  # pyright: ignore[reportArgumentType] - known above

    report["first"] = best_of_three(time.perf_counter, lambda: found() == 100)
    report["last"] = best_of_three(time.perf_counter, lambda: found(offset=lines - 99) == 100)
    report["search"] = max(best_of_three(time.process_time, lambda p=p: found(search=p) == 0) for p in PATTERNS)
    report["hostile"] = max(once(time.process_time, lambda p=p: found(search=p) == 0) for p in HOSTILE)
    report["fuzzy"] = once(time.perf_counter, lambda: found(search="needles in hay", fuzzy=True) <= 1000)
    report["megabytes"] = (peak() - before) / 1024
    sys.stdout.write(json.dumps(report))


def text() -> bytes:
    """Return a megabyte of lines that look like nothing else."""
    characters = b"abcdefghij klmnop_/.:0123456789"
    return b"".join(bytes(random.Random(n).choices(characters, k=99)) + b"\n" for n in range(10_000))


def best_of_three(clock: Callable[[], float], act: Callable[[], bool]) -> float:
    """Return the shortest of three times: the others tell about the machine's other work."""
    return min(once(clock, act) for _ in range(3))


def once(clock: Callable[[], float], act: Callable[[], bool]) -> float:
    start = clock()
    if not act():
        raise AssertionError("the page is not the one that was asked for")
    return clock() - start


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()

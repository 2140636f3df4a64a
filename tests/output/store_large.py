"""Stores one large result and reads it; run by test_result_speed.py.

Usage: store_large.py DIRECTORY LINES. Prints seconds and memory as JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from itertools import repeat
from pathlib import Path

from output.store_desk import file_store


def main() -> None:
    directory, lines = Path(sys.argv[1]), int(sys.argv[2])
    store = file_store(directory)
    store.put(["x"], tool="t", owner="me")  # what only a first call costs
    before = peak()
    start = time.perf_counter()
    handle = store.put(repeat((b"x" * 99 + b"\n") * 100, lines // 100), tool="t", owner="me").handle
    report = {"store": time.perf_counter() - start}
    report["first"] = best_of_three(lambda: store.page(handle, owner="me").returned == 100)
    report["last"] = best_of_three(lambda: store.page(handle, owner="me", offset=lines - 99).returned == 100)
    report["search"] = best_of_three(lambda: store.page(handle, owner="me", search="needle|pin").returned == 0)
    report["megabytes"] = (peak() - before) / 1024
    sys.stdout.write(json.dumps(report))


def best_of_three(act: Callable[[], bool]) -> float:
    """Return the shortest of three times: the others tell about the machine's other work."""
    times: list[float] = []
    for _ in range(3):
        start = time.perf_counter()
        if not act():
            raise AssertionError("the page is not the one that was asked for")
        times.append(time.perf_counter() - start)
    return min(times)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()

"""Stores a result in a child that is killed at one point after another; run by test_result_faults.py.

Usage: store_crashes.py DIRECTORY BLOCKS. Prints how many points there were.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ot.output import result_lines
from ot.output.result_lines import BLOCK
from ot.output.result_store import ResultStore
from output.store_desk import file_store

WATCHED = ("open", "write", "fsync", "fchmod", "replace", "close", "unlink", "scandir", "fstat", "mkdir")
TTL = 60.0
OLD = b"old\n" * 1000


def main() -> None:
    directory, blocks = Path(sys.argv[1]), int(sys.argv[2])
    result_lines.FLUSH = BLOCK
    point = 0
    while True:
        point += 1
        shutil.rmtree(directory, ignore_errors=True)
        store(directory).put([OLD], tool="old", owner="me")
        if not killed_at(point, directory, blocks):
            break
        check(directory, blocks, point)
    sys.stdout.write(f"{point - 1}\n")


def killed_at(point: int, directory: Path, blocks: int) -> bool:
    """Tell whether a child that stores a result was killed: False when it came through before the point."""
    child = os.fork()
    if child == 0:
        kill_at(point)
        store(directory, later=TTL + 1).put(content(blocks), tool="new", owner="me")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    if status != 0:
        raise AssertionError(f"the child failed by itself at point {point}: {status}")
    return False


def kill_at(point: int) -> None:
    """Die before, in the middle of, or after the call that is number *point*."""
    passed = 0

    def step() -> None:
        nonlocal passed
        passed += 1
        if passed == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            step()
            if real is write:
                half = len(arguments[1]) // 2
                real(arguments[0], arguments[1][:half])
                step()
                arguments = (arguments[0], arguments[1][half:])
                value = real(*arguments) + half
            else:
                value = real(*arguments, **options)
            step()
            return value

        return call

    write = os.write
    for name in WATCHED:
        setattr(os, name, watched(getattr(os, name)))
    fcntl.flock = watched(fcntl.flock)


def check(directory: Path, blocks: int, point: int) -> None:
    """Every result that can be found is whole, and what cannot be found is gone after one TTL."""
    expected = {"old": OLD, "new": b"".join(content(blocks))}
    reader = store(directory, ttl=0)
    for meta in directory.glob("result-*.meta.json"):
        handle = meta.name.removeprefix("result-").removesuffix(".meta.json")
        tool = reader.describe(handle, owner="me").tool
        with reader.open_content(handle, owner="me") as file:
            assert file.read() == expected[tool], point
        last = reader.describe(handle, owner="me").total_lines
        assert reader.page(handle, owner="me", offset=last).returned == 1, point
    after = store(directory, later=2 * TTL + 2).put(["last"], tool="last", owner="me")
    left = {file.name for file in directory.iterdir() if after.handle not in file.name}
    assert not left, (point, left)


def store(directory: Path, later: float = 0, ttl: float = TTL) -> ResultStore:
    return file_store(directory, ttl, lambda: time.time() + later)


def content(blocks: int) -> Iterator[bytes]:
    for number in range(blocks):
        yield (b"%d " % number * BLOCK)[: BLOCK - 1] + b"\n"


if __name__ == "__main__":
    main()

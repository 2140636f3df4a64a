# ruff: noqa: BLE001, PTH123, T201 - does what packs do, good and bad
"""A pack without async tools: what it does is what worker tests need to see survived."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import ot_sdk

pack = "plain"

FORGED = '{"jsonrpc":"2.0","id":"%s","result":{"value":"forged"}}'


def echo(value: Any) -> Any:
    """Return *value*."""
    return value


def thread_name() -> str:
    """Return the name of the thread that this runs in."""
    return threading.current_thread().name


# ---------------------------------------------------------------- writing where it should not


def print_lines(count: int) -> str:
    """Print some lines, the last without an end."""
    for number in range(count):
        print("line", number)
    print("rest", end="")
    return "printed"


def print_long(size: int) -> int:
    """Print one line without an end."""
    return sys.stdout.write("x" * size)


def print_odd() -> str:
    """Print in the other ways there are."""
    sys.stdout.buffer.write(b"bytes \xff\n")
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[attr-defined] - as packs do that expect a terminal
    print("lone \ud800", flush=True)
    return f"{sys.stdout.encoding} {sys.stdout.isatty()} {sys.stdout.writable()} {sys.stdin.read()!r}"


def print_from_threads() -> str:
    """Print from a thread that shares the call's context, and from one that does not."""
    copied = contextvars.copy_context()
    threads = [
        threading.Thread(target=lambda: copied.run(print, "of this call")),
        threading.Thread(target=lambda: print("of nobody")),
    ]
    for thread in threads:
        thread.start()
        thread.join()
    return "done"


def print_later(gate: str) -> str:
    """Leave a thread behind that prints once the file *gate* is there."""
    copied = contextvars.copy_context()

    def wait_and_print() -> None:
        while not Path(gate).exists():
            time.sleep(0.001)
        copied.run(print, "too late")

    threading.Thread(target=wait_and_print).start()
    return "returned"


def forge_prints(ids: list[str]) -> str:
    """Print replies in the names of other calls."""
    for id in ids:
        print(FORGED % id)
    return "real"


def forge_writes(ids: list[str]) -> str:
    """Write replies to standard output itself, from here and from a child process."""
    for id in ids:
        os.write(1, (FORGED % id).encode() + b"\n")
    os.write(1, b"\xff\xfe\x00\n")
    code = "import sys, os; os.write(1, sys.argv[1].encode() + b'\\n'); print(sys.stdin.read())"
    subprocess.run([sys.executable, "-c", code, FORGED % ids[0]], check=True)
    assert sys.__stdout__ is not None
    sys.__stdout__.write(FORGED % ids[0] + "\n")
    sys.__stdout__.flush()
    return "real"


def flood(size: int) -> str:
    """Write *size* bytes, without a line break, to standard error."""
    rest = size
    while rest:
        rest -= os.write(2, b"\0" * min(rest, 1 << 16))
    return "flooded"


# ---------------------------------------------------------------- failing


class Own(BaseException):
    """A pack's own exception that is no Exception."""


class Mute(Exception):
    """An exception that cannot be shown."""

    def __str__(self) -> NoReturn:
        raise SystemExit


FAILURES: dict[str, type[BaseException]] = {
    kind.__name__: kind for kind in (ValueError, SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration, Own, Mute)
}


def fail(kind: str, message: str) -> NoReturn:
    """Raise an exception."""
    raise FAILURES[kind](message)


def fail_inside(depth: int) -> int:
    """Raise far below."""
    return 1 // 0 if depth == 0 else fail_inside(depth - 1)


def return_lock() -> dict[str, Any]:
    """Return something that cannot cross."""
    return {"rows": [1, {"lock": threading.Lock()}]}


def return_endless() -> Iterator[int]:
    """Return an iterator without end."""
    while True:
        yield 1


def return_failing() -> Iterator[int]:
    """Return an iterator that fails."""
    yield 1
    raise LookupError("halfway")


def leave(status: int) -> NoReturn:
    """End the process."""
    os._exit(status)


def close_files() -> str:
    """Close every file that might be open, and open another one in its place."""
    os.closerange(3, 256)
    with open("/dev/null", "wb"), open("/dev/null", "wb"), open("/dev/null", "wb"):
        print("to nobody")
        return "closed"


def fork_and_return() -> str:
    """Return twice: here and in a forked child."""
    child = os.fork()
    if child == 0:
        print("printed by the child")
        ot_sdk.log("logged by the child")
        return "from the child"
    os.waitpid(child, 0)
    return "from the parent"


# ---------------------------------------------------------------- waiting


def wait_for(gate: str) -> str:
    """Return once the file *gate* is there."""
    print("waiting")
    while not Path(gate).exists():
        time.sleep(0.001)
    return "opened"


def spin() -> NoReturn:
    """Never return."""
    print("spinning")
    while True:
        pass


def spin_printing() -> NoReturn:
    """Never return, and print all the time."""
    while True:
        print("spinning")


def spin_stubborn() -> str:
    """Return although cancelled."""
    try:
        print("spinning")
        while True:
            pass
    except BaseException:
        print("cleaning up")
        return "late"


def leave_thread_running() -> str:
    """Leave a thread behind that never ends and keeps Python from exiting."""

    def never_end() -> None:
        while True:
            time.sleep(0.01)

    threading.Thread(target=never_end, daemon=False).start()
    return "left"


# ---------------------------------------------------------------- large values


def text(size: int, piece: str = "x") -> str:
    """Return a text of *size* characters."""
    return piece * (size // len(piece))


def rows(count: int, width: int) -> list[dict[str, Any]]:
    """Return a list."""
    return [{"n": number, "text": "y" * width} for number in range(count)]


def page(count: int, width: int) -> dict[str, Any]:
    """Return a list inside a dict."""
    return {"page": 1, "found": {"rows": rows(count, width)}}


def row_stream(count: int, width: int) -> Iterator[dict[str, Any]]:
    """Return rows one by one."""
    return ({"n": number, "text": "y" * width} for number in range(count))


def table(count: int, width: int) -> dict[str, str]:
    """Return a dict."""
    return {f"key {number}": "z" * width for number in range(count)}


def peak_memory() -> int:
    """Return the most memory that this process has used, in bytes."""
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


# ---------------------------------------------------------------- the server's door


def ask(tool: str, arguments: dict[str, Any]) -> Any:
    """Return another tool's value."""
    return ot_sdk.call_tool(tool, **arguments)


def ask_carefully(tool: str) -> list[str]:
    """Return what another tool failed with."""
    try:
        return ot_sdk.call_tool(tool)
    except ot_sdk.ToolCallFailed as error:
        return [error.kind, error.message]


def ask_much(size: int) -> Any:
    """Give another tool more than a message holds."""
    return ot_sdk.call_tool("a.b", text="x" * size)


def ask_odd() -> Any:
    """Give another tool what cannot cross."""
    return ot_sdk.call_tool("a.b", lock=threading.Lock())


def report() -> str:
    """Log and tell progress."""
    ot_sdk.log("started", level="debug", count=3, lock=threading.Lock())
    odd: dict[str, Any] = {"$ot": "no tag"}
    ot_sdk.log("odd", **odd)
    ot_sdk.progress(1, 4, "a quarter")
    return "reported"

"""Runs attacks in an exact engine and prints what they came to: started as a script, also as another user.

``python exact_attacks.py [--no-namespaces]`` prints JSON: the layers, who runs the programs, and the answers.
With ``--linger`` it says when an endless program runs, and waits to be killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import linux_probes
import unruly_programs

from ot.config.models import Limits
from ot.errors import RunError, ToolFailed, UnknownTool
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import Constant, Function, Missing
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.program import parse_program

KERNEL = """
import _io, builtins, io, os, posix
for name in dir(posix):
    if callable(getattr(posix, name)):
        setattr(os, name, getattr(posix, name))
builtins.open = io.open = _io.open
"""
"""Takes off what asks the server for files: the kernel is to refuse."""
TRIED = """
import ctypes, os, signal, socket, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
parent = os.getppid()

def mapped(pid):
    return open(f"/proc/{pid}/maps").read()

def raw(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")

def many_threads():
    threading.stack_size(32768)
    for _ in range(20000):
        threading.Thread(target=threading.Event().wait, daemon=True).start()

ATTACKS = {
    "read a file of the host": lambda: open("/etc/passwd").read(),
    "list the root": lambda: os.listdir("/"),
    "list a home": lambda: os.listdir("/root"),
    "write a file": lambda: open("/tmp/exact-attack", "w"),
    "write shared memory": lambda: open("/dev/shm/exact-attack", "w"),
    "read its own memory map": lambda: mapped("self"),
    "read the memory map of its parent": lambda: mapped(parent),
    "write the memory of its parent": lambda: open(f"/proc/{parent}/mem", "r+b"),
    "open a socket": lambda: socket.socket(),
    "open a netlink socket": lambda: socket.socket(16, 3, 0),
    "fork": lambda: os.fork() or os._exit(0),
    "execute": lambda: os.execv("/bin/true", ["true"]),
    "kill its parent": lambda: os.kill(parent, signal.SIGKILL),
    "kill all": lambda: os.kill(-1, signal.SIGKILL),
    "become root": lambda: os.setuid(0),
    "raise its limits": lambda: __import__("resource").setrlimit(9, (-1, -1)),
    "leave the jail by chroot": lambda: os.chroot("/"),
    "make a device": lambda: os.mknod("/tmp/exact-device"),
    "make a namespace": lambda: os.unshare(0x10000000),
    "trace its parent": lambda: raw(101, 16, parent, 0, 0),
    "read the memory of its parent": lambda: raw(310, parent, 0, 0, 0, 0, 0),
    "take a descriptor of its parent": lambda: raw(434, parent, 0),
    "use io_uring": lambda: raw(425, 1, ctypes.create_string_buffer(200)),
    "make a hidden file": lambda: os.memfd_create("x"),
    "use all memory": lambda: ctypes.create_string_buffer(1 << 33),
    "make twenty thousand threads": many_threads,
}
found = []
for name, attack in ATTACKS.items():
    try:
        attack()
        found.append(name)
    except (OSError, RuntimeError, MemoryError, ValueError):
        pass
found
"""
DESCRIPTORS = """
import os
found = []
for fd in range(256):
    try:
        found.append((fd, oct(os.fstat(fd).st_mode & 0o170000)))
    except OSError:
        pass
found
"""
WHO = "import os\n[os.getuid() == 0, dict(os.environ), os.getcwd()]"
RANDOM = "import random, uuid\n[random.random(), str(uuid.uuid4())]"


class NoPacks:
    """A reach of nothing."""

    given = None

    def has_pack(self, name: str) -> bool:
        return False

    def member(self, pack: str, name: str) -> Function | Constant | Missing:
        return Missing()

    def saved(self, name: str) -> None:
        return None

    async def call(self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], **places: object) -> Any:
        raise AssertionError("there is nothing to call")

    async def file(self, step: str, arguments: Mapping[str, Any]) -> Any:
        raise ToolFailed(f"file.{step}", "PermissionError", "there are no files here")

    def note_print(self, text: str) -> None:
        pass


async def main(namespaces: bool) -> dict[str, Any]:
    engine = ExactEngine(namespaces=namespaces)

    async def run(source: str) -> Any:
        limits = Limits(memory_mb=256)
        return (await engine.run(parse_program(KERNEL + source), NoPacks(), limits, Deadline.after(30))).value

    try:
        locked = await engine.open()
        return {
            "layers": locked.layers, "user": locked.user, "notes": locked.notes, "succeeded": await run(TRIED),
            "descriptors": await run(DESCRIPTORS), "who": await run(WHO),
            "random": [await run(RANDOM), await run(RANDOM)],
            "unruly": await unruly(engine),
            "probes": await run(linux_probes.program(os.uname().machine)),
        }  # fmt: skip
    finally:
        await engine.aclose()


class OnePack(NoPacks):
    """A reach of one pack, which writes down what was called that is not in it."""

    def __init__(self) -> None:
        self.reached: list[str] = []

    def has_pack(self, name: str) -> bool:
        return name == "pack"

    def member(self, pack: str, name: str) -> Function | Constant | Missing:
        return Function() if (pack, name) in TOOLS else Missing()

    async def call(self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], **places: object) -> Any:
        if (pack, name) not in TOOLS:
            raise UnknownTool(pack, name, [f"tool_{number}" for number in range(100)])
        if not all(type(value) in PLAIN for value in (*args, *kwargs.values())):
            self.reached.append(f"{pack}.{name} was given {args!r} {kwargs!r}"[:200])
        if name == "slow":
            await asyncio.sleep(60)
        return args[0] if args else kwargs.get("value")


TOOLS = {("pack", "echo"), ("pack", "slow")}
PLAIN = (str, int, float, bool, bytes, list, dict, tuple, set, frozenset, type(None))


async def unruly(engine: ExactEngine) -> dict[str, Any]:
    """Run every unruly program, while honest ones run beside them; return how each ended, and how the server fared."""
    problems: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(str(context)[:500]))
    reach, gate, done = OnePack(), asyncio.Semaphore(3), asyncio.Event()
    limits = Limits(cpu_seconds=1, memory_mb=256)

    async def attack(source: str) -> str:
        async with gate:
            try:
                await asyncio.wait_for(engine.run(parse_program(source), reach, limits, Deadline.after(5)), 20)
            except RunError as error:
                return type(error).__name__
            except Exception as error:  # noqa: BLE001 - what must not be is told
                return f"{type(error).__name__}: {error}"[:200]
            return "value"

    async def honest() -> list[int]:
        wrong, number = list[int](), 0
        while not done.is_set():
            number += 1
            source = f"print({number})\npack.echo(value={number}) + 1"
            outcome = await engine.run(parse_program(source), reach, limits, Deadline.after(20))
            if (outcome.value, outcome.printed) != (number + 1, f"{number}\n"):
                wrong.append(number)
        return wrong if number > 10 else [-1]

    async def longest_pause() -> float:
        longest = 0.0
        while not done.is_set():
            began, before = time.monotonic(), seconds_withheld()
            await asyncio.sleep(0.005)
            withheld = sum(seconds - before.get(thread, 0.0) for thread, seconds in seconds_withheld().items())
            longest = max(longest, time.monotonic() - began - withheld)
        return longest

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    beside = asyncio.gather(honest(), longest_pause())
    sources = unruly_programs.programs()
    ends = await asyncio.gather(*[attack(source) for source in sources.values()])
    done.set()
    wrong, pause = await beside
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {
        "ends": dict(zip(sources, ends, strict=True)), "reached": reach.reached, "wrong": wrong, "problems": problems,
        "pause": pause, "grown_mb": grown / 1024,
    }  # fmt: skip


def seconds_withheld() -> dict[str, float]:
    """Return by thread how long it has been ready to run while others had the processors, as the kernel counts it."""
    found: dict[str, float] = {}
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended meanwhile
            found[thread.name] = int((thread / "schedstat").read_text().split()[1]) / 1e9
    return found


async def linger() -> None:
    engine = ExactEngine(namespaces=False)
    limits = Limits(cpu_seconds=60)
    await engine.start(limits)
    running = asyncio.ensure_future(
        engine.run(parse_program("print(1)\nwhile True: pass"), NoPacks(), limits, Deadline.after(60))
    )
    await asyncio.sleep(0)  # the run takes its child
    sys.stdout.write("running\n")
    sys.stdout.flush()
    await running


if __name__ == "__main__":
    if "--linger" in sys.argv:
        asyncio.run(linger())
    sys.stdout.write(json.dumps(asyncio.run(main("--no-namespaces" not in sys.argv))))

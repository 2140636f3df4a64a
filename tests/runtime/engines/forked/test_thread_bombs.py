"""Threads that a program makes without Python, on small stacks of its own, are counted wherever they can be."""

from __future__ import annotations

import os
import resource
import socket
import sys
import threading

import pytest
from exact_attacks import NoPacks

from ot.config.models import Limits
from ot.execution.deadline import Deadline
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.forked.jail import lockdown
from ot.runtime.engines.forked.jail.channel import Room
from ot.runtime.engines.forked.jail.lockdown import MAX_THREADS, MAX_THREADS_BESIDE, most_threads_beside
from ot.runtime.program import parse_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")

CLONES = """
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
libc.clone.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
asleep = ctypes.cast(libc.sleep, ctypes.c_void_p)
stacks = mmap.mmap(-1, 4096 * 10000)
bottom = ctypes.addressof(ctypes.c_char.from_buffer(stacks))
made = 0
while made < 10000 and libc.clone(asleep, bottom + 4096 * (made + 1), 0x50F00, 1000) > 0:
    made += 1
made
"""
HONEST = (
    "from concurrent.futures import ThreadPoolExecutor\nsum(ThreadPoolExecutor(20).map(lambda n: n * n, range(100)))"
)


@pytest.mark.anyio
async def test_a_bomb_of_bare_threads_is_bounded_and_honest_threads_work() -> None:
    engine = ExactEngine()

    async def run(source: str) -> object:
        return (await engine.run(parse_program(source), NoPacks(), Limits(), Deadline.after(30))).value

    try:
        locked = await engine.open()
        if locked.user.startswith("uid 0,") or not locked.namespaces:
            pytest.skip("no user of its own here, whose threads could be counted")
        assert 0 < int(str(await run(CLONES))) <= MAX_THREADS
        assert await run(HONEST) == sum(n * n for n in range(100))
    finally:
        await engine.aclose()


def test_threads_of_the_users_other_programs_are_counted_in() -> None:
    before = most_threads_beside()
    assert before is not None
    assert before > MAX_THREADS_BESIDE
    ends = threading.Event()
    threads = [threading.Thread(target=ends.wait) for _ in range(200)]
    for thread in threads:
        thread.start()
    after = most_threads_beside()
    ends.set()
    for thread in threads:
        thread.join()
    assert after is not None
    assert after >= before + 100  # other processes may end meanwhile


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_user_who_shares_with_other_programs_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockdown, "MAX_THREADS_BESIDE", 100)
    ours, theirs = socket.socketpair()
    if (child := os.fork()) == 0:
        os.setresuid(54_321, 54_321, 54_321)
        most = lockdown.most_threads_beside() or 0
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        found: dict[str, int] = {}
        exec(CLONES, found)
        theirs.send(f"{most} {found['made']}".encode())
        os._exit(0)
    theirs.close()
    ours.settimeout(30)
    most, made = map(int, ours.recv(100).split())
    ours.close()
    os.waitpid(child, 0)
    assert 100 <= most < 200
    assert 0 < made <= most


def test_every_child_gets_the_limit() -> None:
    kinds = dict(lockdown._limits(Room(1 << 20, 1), 0, 700))  # pyright: ignore[reportPrivateUsage] - what is set is not seen from outside
    assert kinds[resource.RLIMIT_NPROC] == 700

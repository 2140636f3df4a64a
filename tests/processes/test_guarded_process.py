"""A process under guard, as the server sees it: its streams, its endings, and what is left when either dies."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from process_marks import (
    TREE,
    TREE_SIZE,
    are_all_there,
    are_gone_in_time,
    children_of,
    fresh_environ,
    marked,
    zombies_of,
)

import pace
from ot.processes import guarded_process
from ot.processes.guard_pipes import PipeEnd
from ot.processes.guarded_process import STDERR_BYTES, Ending, GuardedProcess
from pace import PATIENCE, busy_seconds

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group is killed"),
]

PYTHON = (sys.executable, "-I", "-S", "-c")
HERE = Path(__file__).parent


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"], scope="module")
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Both loops: the server's own is uvloop."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
def environ() -> Generator[dict[str, str]]:
    """An environment whose processes are all gone when the test ends."""
    made = fresh_environ()
    yield made
    assert are_gone_in_time(made)


async def start(environ: dict[str, str], *argv: str, **options: Any) -> GuardedProcess:
    with anyio.fail_after(PATIENCE):
        return await GuardedProcess.start(argv, env=environ, cwd=Path("/"), **options)


async def ending_of(process: GuardedProcess) -> Ending:
    with anyio.fail_after(PATIENCE):
        return await process.wait()


def open_descriptors() -> set[int]:
    # The one that lists them is closed again.
    return {int(name) for name in os.listdir("/proc/self/fd") if Path(f"/proc/self/fd/{name}").exists()}  # noqa: PTH208 - names


@asynccontextmanager
async def nothing_left_open() -> AsyncGenerator[None]:
    """Fail when descriptors or children are left; what a loop opens once is open before, and tests leave children."""
    await ending_of(await start(fresh_environ(), "true"))
    children_before = children_of(os.getpid())

    def left_open() -> tuple[set[int], set[int]]:
        return open_descriptors(), children_of(os.getpid()).keys() - children_before

    before = left_open()
    yield
    with anyio.move_on_after(PATIENCE):
        # A guard that has said how its process ended may still have to exit.
        while before != left_open():  # noqa: ASYNC110 - no event
            await anyio.sleep(0.005)
    assert before == left_open()


async def test_it_reads_answers_and_ends(environ: dict[str, str]) -> None:
    code = "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)\nsys.exit(3)"
    async with nothing_left_open():
        process = await start(environ, *PYTHON, code)
        process.stdin.write(b"hello\n")
        assert b"HELLO\n" == await process.stdout.readline()
        assert process.running
        process.stdin.close()
        assert Ending("exit", 3) == await ending_of(process)
        assert not process.running
        assert b"" == await process.stdout.read()


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("raise SystemExit(0)", "exit code 0"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "signal SIGSEGV"),
        ("import os; os.kill(os.getpid(), 40)", "signal 40"),
    ],
)
async def test_the_end_of_a_process_is_described_in_words(environ: dict[str, str], code: str, text: str) -> None:
    assert text == (await ending_of(await start(environ, *PYTHON, code))).text


async def test_the_last_words_come_with_the_ending(environ: dict[str, str]) -> None:
    process = await start(environ, *PYTHON, "import sys; print('line'); sys.exit('no such thing')")
    assert Ending("exit", 1, "no such thing\n") == await ending_of(process)


async def test_a_large_answer_comes_whole(environ: dict[str, str]) -> None:
    process = await start(environ, *PYTHON, "import os, sys; sys.stdout.write('x' * (9 << 20) + '\\n')")
    with anyio.fail_after(PATIENCE):
        assert (9 << 20) + 1 == len(await process.stdout.readline())
    await ending_of(process)


@pytest.mark.parametrize("chunk", ["b'x' * 99 + b'\\n'", "b'\\0' * 100"], ids=["lines", "binary"])
async def test_a_flood_on_stderr_never_blocks_and_its_end_is_kept(environ: dict[str, str], chunk: str) -> None:
    code = f"import os\nfor _ in range(2000): os.write(2, ({chunk}) * 100)\nos.write(2, b'the end')\nprint('done')"
    process = await start(environ, *PYTHON, code)
    with anyio.fail_after(PATIENCE):
        assert b"done\n" == await process.stdout.readline()
    ending = await ending_of(process)
    assert ending.stderr.endswith("the end")
    assert STDERR_BYTES == len(process.stderr_tail())
    assert process.stderr_tail().endswith(ending.stderr)


async def test_lines_of_stderr_are_told_as_they_come(environ: dict[str, str]) -> None:
    lines: list[str] = []
    code = "import os, sys\nos.write(2, b'on')\nos.write(2, b'e\\n\\xfftwo\\n' + b'x' * 100_000 + b'\\nlast')"
    await ending_of(await start(environ, *PYTHON, code, on_line=lines.append))
    assert ["one", "\ufffdtwo"] == lines[:2]
    assert 3 == len(lines)
    assert set("x") == set(lines[2])


async def test_kill_takes_the_whole_tree_with_it(environ: dict[str, str]) -> None:
    process = await start(environ, *PYTHON, TREE + "time.sleep(300)")
    with anyio.fail_after(PATIENCE):
        assert b"ready\n" == await process.stdout.readline()
    assert are_all_there(environ)
    with pace.within(1):
        process.kill()
        process.kill()
        assert Ending("signal", signal.SIGKILL) == await ending_of(process)
    assert [] == marked(environ)


async def test_a_polite_process_ends_by_itself_and_a_stubborn_one_is_killed(environ: dict[str, str]) -> None:
    polite = await start(environ, *PYTHON, "import sys; sys.stdin.read(); sys.exit(5)")
    stubborn = await start(environ, *PYTHON, "import time; time.sleep(300)")
    with anyio.fail_after(PATIENCE):
        assert Ending("exit", 5) == await polite.end(PATIENCE)
        assert Ending("signal", signal.SIGKILL) == await stubborn.end(0.05)


async def test_ending_may_be_given_up_and_still_kills(environ: dict[str, str]) -> None:
    process = await start(environ, *PYTHON, "import time; time.sleep(300)")
    with anyio.move_on_after(0.05):
        await process.end(300)
    assert Ending("signal", signal.SIGKILL) == await ending_of(process)


async def test_a_stopped_process_and_a_stopped_tree_are_killed(environ: dict[str, str]) -> None:
    process = await start(environ, *PYTHON, TREE + "time.sleep(300)")
    with anyio.fail_after(PATIENCE):
        await process.stdout.readline()
    for pid in marked(environ):
        if pid != process._spawned.guard.pid:
            os.kill(pid, signal.SIGSTOP)
    process.kill()
    assert "signal SIGKILL" == (await ending_of(process)).text


async def test_writing_to_a_process_that_reads_nothing_fails_and_does_not_hang(environ: dict[str, str]) -> None:
    process = await start(
        environ, *PYTHON, "import os, time; os.close(0); print('closed', flush=True); time.sleep(300)"
    )
    with anyio.fail_after(PATIENCE):
        await process.stdout.readline()
        with pytest.raises(ConnectionError):
            while True:
                process.stdin.write(b"x" * 100_000)
                await process.stdin.drain()
    process.kill()
    await ending_of(process)


async def test_too_many_processes_end_it(environ: dict[str, str]) -> None:
    code = "import os, time\nfor _ in range(5): os.fork()\ntime.sleep(20)"
    ending = await ending_of(await start(environ, *PYTHON, code, processes=6))
    assert ("limit", "more than 6 processes") == (ending.kind, ending.text)


async def test_a_process_that_takes_more_memory_than_allowed_ends(environ: dict[str, str]) -> None:
    ending = await ending_of(await start(environ, *PYTHON, "bytearray(1 << 30)", memory_mb=256))
    assert 1 == ending.number
    assert "MemoryError" in ending.stderr


@pytest.mark.parametrize(
    ("argv", "cwd", "kind"),
    [
        (("/no/such/program",), "/", FileNotFoundError),
        (("/etc/passwd",), "/", PermissionError),
        (("true",), "/no/such/directory", FileNotFoundError),
    ],
)
async def test_what_cannot_be_started_is_told_by_type(argv: tuple[str, ...], cwd: str, kind: type[OSError]) -> None:
    environ = fresh_environ()
    async with nothing_left_open():
        with pytest.raises(kind) as failure, anyio.fail_after(PATIENCE):
            await GuardedProcess.start(argv, env=environ, cwd=Path(cwd))
        assert "/" in str(failure.value)
    assert [] == marked(environ)


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE])
async def test_no_descriptor_is_lost_when_the_system_refuses(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    async with nothing_left_open():
        monkeypatch.setattr(subprocess, "Popen", refuse)
        with pytest.raises(OSError, match=os.strerror(number)) as failure:
            await start(environ, "true")
    assert number == failure.value.errno


async def test_no_descriptor_is_lost_however_few_are_left(environ: dict[str, str]) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    failures = 0
    async with nothing_left_open():
        unused = sorted(set(range(1000)) - open_descriptors())
        for allowed in unused[:30]:
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, before[1]))
            try:
                await ending_of(await start(environ, "true"))
                break
            except OSError as error:
                assert errno.EMFILE == error.errno
                failures += 1
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert 10 <= failures < 30


async def test_a_start_that_is_cancelled_leaves_nothing(environ: dict[str, str]) -> None:
    async with nothing_left_open():
        for turn in range(20):
            task = asyncio.create_task(start(environ, *PYTHON, TREE + "time.sleep(300)"))
            await asyncio.wait((task,), timeout=turn * 0.002)
            task.cancel()
            with suppress(asyncio.CancelledError):
                (await task).kill()
    assert are_gone_in_time(environ)


async def test_many_that_end_at_once_leave_no_zombie(environ: dict[str, str]) -> None:
    async with nothing_left_open():
        for _ in range(4):
            processes = await asyncio.gather(*(start(environ, "sh", "-c", "exit 3") for _ in range(10)))
            assert {3} == {(await ending_of(process)).number for process in processes}


async def test_a_guard_that_exits_late_is_still_reaped(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with nothing_left_open():
        monkeypatch.setattr(guarded_process, "GRACE_SECONDS", 0.001)
        processes = [await start(environ, "true") for _ in range(5)]
        assert [0] * 5 == [(await ending_of(process)).number for process in processes]


async def test_a_guard_that_someone_kills_takes_its_process_along(environ: dict[str, str]) -> None:
    process = await start(environ, *PYTHON, "import os, time\nos.fork()\nprint('forked', flush=True)\ntime.sleep(300)")
    with anyio.fail_after(PATIENCE):
        await process.stdout.readline()
    process._spawned.guard.kill()
    assert "signal SIGKILL" == (await ending_of(process)).text


def test_the_end_of_a_pipe_that_was_closed_elsewhere_closes_nothing_else() -> None:
    reader, writer = os.pipe()
    end, other = PipeEnd(reader), PipeEnd(writer)
    os.close(reader)
    with Path("/dev/null").open("rb") as file:
        assert reader == file.fileno()
        end.close()
        assert os.fstat(file.fileno())
    other.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(writer)


def test_a_loop_that_closes_leaves_nothing(environ: dict[str, str]) -> None:
    async def forget(run: Callable[..., Any] = start) -> None:
        process = await run(environ, *PYTHON, TREE + "time.sleep(300)")
        assert b"ready\n" == await process.stdout.readline()

    before, children_before = open_descriptors(), {*children_of(os.getpid())}
    asyncio.run(forget())
    assert before == open_descriptors()
    assert [] == marked(environ)
    assert set[int]() == {*zombies_of(os.getpid())} - children_before


@pytest.mark.parametrize(("when", "times", "before"), [("started", 30, TREE_SIZE + 1), ("starting", 30, 0)])
def test_a_server_that_is_killed_at_any_moment_leaves_nothing(when: str, times: int, before: int) -> None:
    play = [sys.executable, str(HERE / "dying_server.py"), when, str(times)]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    played = subprocess.run(play, env=environ, capture_output=True, timeout=100, check=True)
    deaths = json.loads(played.stdout)
    assert times == len(deaths)
    assert {0} == {death["left"] for death in deaths}
    assert all(death["before"] >= before for death in deaths)
    assert max(death["seconds"] for death in deaths) < 1 + busy_seconds()

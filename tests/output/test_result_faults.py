"""Every fault of the result store: full disks, planted links, strangers' directories."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ot.errors import ResultError, ResultNotFound, StorageFull
from output.store_desk import ME, TTL, Desk, file_store, files_of
from output.store_faults import fault, store_faults

HERE = Path(__file__).parent
ENVIRONMENT = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ.get("PATH", "")}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "tmp")


def child(script: str, *arguments: object) -> list[str]:
    return [sys.executable, str(HERE / script), *map(str, arguments)]


# ---------------------------------------------------------------- crashes


@fault("S01")
def test_a_result_is_whole_or_absent_wherever_the_server_was_killed(tmp_path: Path) -> None:
    done = subprocess.run(
        child("store_crashes.py", tmp_path / "tmp", 8), env=ENVIRONMENT, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 60


@fault("S01")
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_result_is_whole_or_absent_at_a_thousand_points(tmp_path: Path) -> None:
    done = subprocess.run(
        child("store_crashes.py", tmp_path / "tmp", 340), env=ENVIRONMENT, capture_output=True, text=True, timeout=1700
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 1000


@fault("S14")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.soak)])
def test_two_servers_that_share_a_directory_lose_nothing(tmp_path: Path, count: int) -> None:
    desk = Desk(tmp_path / "tmp")
    desk.clock.forward(-TTL)
    for _ in range(100):
        desk.put("expired already")
    servers = [
        subprocess.Popen(
            child("store_server.py", desk.path, count),
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        for expected in ("stored\n", f"{count} 0\n"):
            for server in servers:
                assert server.stdin
                server.stdin.write("go\n")
                server.stdin.flush()
            for server in servers:
                assert server.stdout
                assert expected == server.stdout.readline()
    finally:
        for server in servers:
            server.kill()
            server.communicate(timeout=30)
    assert len(desk.names()) == 3 * 2 * count


# ---------------------------------------------------------------- disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "disk"
    directory.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", str(directory)], capture_output=True
    )
    if mount.returncode != 0:
        pytest.skip("a file system can be mounted only with more rights; a limit on file sizes is tested without")
    yield directory
    subprocess.run(["umount", str(directory)], check=True)


@fault("S02")
def test_a_full_disk_is_said_to_be_full_and_nothing_stays_on_it(small_disk: Path) -> None:
    desk = Desk(small_disk / "tmp")
    kept = desk.put("x\n" * 1000)
    with pytest.raises(StorageFull, match=r"^storage full: the result could not be stored \(No space left on device\)"):
        desk.put("x" * 1_000_000)
    assert files_of(kept) == desk.names()
    assert desk.page(kept.handle).total_lines == 1000


def test_a_limit_on_file_sizes_is_a_full_disk_too(desk: Desk) -> None:
    kept = desk.put("x")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(StorageFull, match="storage full"):
            desk.put("x" * 1_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert files_of(kept) == desk.names()


def failing(real: Callable[..., Any], at: int, code: int, calls: list[str]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        calls.append(real.__name__)
        if len(calls) == at:
            if real is os.close:
                real(*arguments)
            raise OSError(code, os.strerror(code))
        return real(*arguments, **options)

    return call


@fault("S03")
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.EACCES])
@pytest.mark.parametrize("function", ["open", "write", "fsync", "fchmod", "close", "replace", "mkdir", "fstat"])
def test_every_refusal_of_the_system_is_an_error_of_ours_and_leaves_nothing(
    tmp_path: Path, function: str, code: int
) -> None:
    real = getattr(os, function)
    failures = 0
    for at in range(1, 50):
        desk = Desk(tmp_path / f"tmp{at}")
        calls: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, function, failing(real, at, code, calls))
            try:
                desk.put("x\n" * 1_000_000)
            except ResultError as error:
                failures += 1
                assert (code in (errno.ENOSPC, errno.EDQUOT)) == isinstance(error, StorageFull)
                assert os.strerror(code) in str(error)
                assert desk.names() == set()
        if len(calls) < at:
            break
    assert failures >= 1
    assert len(calls) < at  # pyright: ignore[reportPossiblyUnboundVariable] - the loop runs


@fault("S03")
@pytest.mark.parametrize("function", ["open", "fstat"])
def test_a_disk_that_cannot_be_read_is_an_error_of_ours(
    desk: Desk, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = desk.put("x")
    calls: list[str] = []
    real = getattr(os, function)
    for at in range(1, 5):
        with monkeypatch.context() as patch:
            calls.clear()
            patch.setattr(os, function, failing(real, at, errno.EIO, calls))
            with pytest.raises(ResultError, match=r"could not be read \(Input/output error\)") as caught:
                desk.page(stored.handle)
            assert not isinstance(caught.value, ResultNotFound)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_descriptor_is_left_open_whatever_fails(desk: Desk) -> None:
    stored = desk.put("x")
    before = open_descriptors()
    for at in range(1, 30):
        for function in ("open", "write", "fsync", "fchmod", "fstat", "replace"):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(os, function, failing(getattr(os, function), at, errno.EIO, []))
                for act in (lambda: desk.put("x\n" * 100), lambda: desk.page(stored.handle)):
                    try:
                        act()
                    except ResultError:
                        continue
    assert before == open_descriptors()


# ---------------------------------------------------------------- rights


def modes(desk: Desk) -> set[int]:
    return {stat.S_IMODE((desk.path / name).stat().st_mode) for name in desk.names()}


@fault("S16")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o277])
def test_only_the_user_may_read_results_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    desk = Desk(tmp_path / "deep" / "tmp")
    before = os.umask(mask)
    try:
        stored = desk.put("x")
    finally:
        os.umask(before)
    assert modes(desk) == {0o600}
    assert stat.S_IMODE(desk.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(desk.path.parent.stat().st_mode) & 0o077 == 0
    assert desk.page(stored.handle).lines == ("x",)


def test_an_open_directory_of_the_user_is_closed_to_others(desk: Desk) -> None:
    desk.path.mkdir()
    desk.path.chmod(0o777)
    desk.put("x")
    assert stat.S_IMODE(desk.path.stat().st_mode) == 0o700


@fault("S16")
def test_a_directory_of_another_user_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = desk.put("x")
    desk.path.chmod(0o777)
    uid = desk.path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    for act in (lambda: desk.put("y"), lambda: desk.page(stored.handle)):
        with pytest.raises(ResultError, match=r"belongs to another user; set output\.result_store_dir"):
            act()
    assert files_of(stored) == desk.names()
    assert stat.S_IMODE(desk.path.stat().st_mode) == 0o777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_that_was_given_away_is_refused(desk: Desk) -> None:
    desk.path.mkdir(mode=0o777)
    os.chown(desk.path, 65_534, 65_534)
    with pytest.raises(ResultError, match="belongs to another user"):
        desk.put("x")
    assert desk.names() == set()


def test_a_directory_that_all_users_share_is_not_taken_over(desk: Desk) -> None:
    desk.path.mkdir()
    desk.path.chmod(0o1777)
    with pytest.raises(ResultError, match="shared by all users"):
        desk.put("x")
    assert stat.S_IMODE(desk.path.stat().st_mode) == 0o1777


# ---------------------------------------------------------------- links


@fault("S12")
@pytest.mark.parametrize("suffix", [".txt", ".idx", ".meta.json"])
def test_a_link_in_the_place_of_a_file_is_not_followed(desk: Desk, tmp_path: Path, suffix: str) -> None:
    stored = desk.put("secret\n")
    real = tmp_path / "elsewhere"
    desk.file(stored.handle, suffix).rename(real)
    desk.file(stored.handle, suffix).symlink_to(real)
    with pytest.raises(ResultNotFound):
        desk.page(stored.handle)
    if suffix == ".txt":
        with pytest.raises(ResultNotFound), desk.store.open_content(stored.handle, owner=ME):
            pass


@pytest.mark.parametrize("suffix", [".txt", ".idx", ".meta.json"])
def test_a_pipe_in_the_place_of_a_file_does_not_hold_the_reader(desk: Desk, suffix: str) -> None:
    stored = desk.put("x")
    desk.file(stored.handle, suffix).unlink()
    os.mkfifo(desk.file(stored.handle, suffix))
    with pytest.raises(ResultNotFound):
        desk.page(stored.handle)


def test_a_link_planted_under_a_new_result_s_name_is_not_written_through(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    tokens = iter(["a" * 22, "b" * 22])
    monkeypatch.setattr("secrets.token_urlsafe", lambda _size: next(tokens))
    desk.path.mkdir(mode=0o700)
    desk.file("a" * 22, ".txt").symlink_to(victim)
    assert desk.put("x").handle == "b" * 22
    assert victim.read_text() == "mine"


def test_a_link_in_the_place_of_the_directory_is_refused(desk: Desk, tmp_path: Path) -> None:
    stored = desk.put("x")
    elsewhere = tmp_path / "elsewhere"
    desk.path.rename(elsewhere)
    desk.path.symlink_to(elsewhere)
    with pytest.raises(ResultNotFound):
        desk.page(stored.handle)
    with pytest.raises(ResultError, match=r"could not be stored .* check output.result_store_dir"):
        desk.put("y")
    assert files_of(stored) == {file.name for file in elsewhere.iterdir()}


@fault("S12")
def test_a_directory_swapped_for_a_link_while_a_result_is_written_changes_nothing(desk: Desk, tmp_path: Path) -> None:
    decoy, moved = tmp_path / "decoy", tmp_path / "moved"
    decoy.mkdir()

    def swapping() -> Iterator[str]:
        yield "x\n"
        desk.path.rename(moved)
        desk.path.symlink_to(decoy)
        yield "y\n"

    stored = desk.store.put(swapping(), tool="t", owner=ME)
    assert list(decoy.iterdir()) == []
    assert files_of(stored) == {file.name for file in moved.iterdir()}


# ---------------------------------------------------------------- killed by the kernel

CHANGES = ("mkdir", "write", "fchmod", "fsync", "rename,renameat,renameat2", "unlink,unlinkat", "flock", "ftruncate")
"""The system's own names for what changes a disk; ``openat`` is passed so often by an import that it is left out."""


@fault("S01")
@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("calls", CHANGES)
def test_a_result_is_whole_or_absent_whichever_system_call_was_the_last(tmp_path: Path, calls: str) -> None:
    """What is said of the store's own calls holds of the kernel's, too: none is made that the others do not know."""
    for point in range(1, 60):
        directory = tmp_path / f"{point}"
        script = f"""
import sys; sys.path[:0] = {sys.path!r}
from pathlib import Path
from output.store_desk import file_store
file_store(Path({str(directory)!r})).put([b"line\\n" * 1_000_000], tool="t", owner="me")
"""
        inject = f"inject={calls}:signal=SIGKILL:when={point}"
        command = ["strace", "-qq", "-o", "/dev/null", "-e", inject, sys.executable, "-c", script]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
        if done.returncode == 0:
            return
        assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), done.stderr
        store = file_store(directory)
        for meta in directory.glob("*.meta.json"):
            handle = meta.name.removeprefix("result-").removesuffix(".meta.json")
            assert store.describe(handle, owner="me").total_lines == 1_000_000
            assert store.page(handle, owner="me", offset=1_000_000).lines == ("line",)
        later = file_store(directory, clock=lambda: time.time() + TTL + 1)
        kept = later.put(["last"], tool="t", owner="me")
        assert files_of(kept) == {file.name for file in directory.iterdir()}
    raise AssertionError("it never came through")


def test_every_fault_of_the_store_is_proved_by_a_test() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert store_faults() == set(re.findall(r'^@fault\("(S\d\d)"\)$', sources, re.MULTILINE))

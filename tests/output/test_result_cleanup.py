"""What goes and what stays: age, size, leftovers, damage, and several cleaners at once."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ot.errors import ResultError, ResultExpired, ResultNotFound
from ot.output import result_cleanup
from ot.output.file_blobs import FileBlobs
from ot.output.result_cleanup import ResultCleanup
from ot.output.result_files import ResultDirectory
from ot.output.result_lines import LineReader
from ot.output.result_store import ResultStore
from output.store_desk import ME, TTL, Clock, Desk, files_of, read_all
from output.store_faults import fault


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "tmp")


def change_meta(desk: Desk, handle: str, /, **changes: Any) -> None:
    file = desk.file(handle, ".meta.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.scenario("000-66", "000-67")
def test_storing_a_result_removes_those_older_than_the_ttl(desk: Desk) -> None:
    old = [desk.put("x"), desk.put("y")]
    desk.clock.forward(TTL / 2)
    young = desk.put("z")
    assert files_of(*old, young) == desk.names()
    desk.clock.forward(TTL / 2 + 1)
    new = desk.put("new")
    assert files_of(young, new) == desk.names()


@fault("S07")
@pytest.mark.parametrize(("seconds", "alive"), [(TTL - 0.001, True), (TTL, True), (TTL + 0.001, False)])
def test_at_exactly_its_ttl_a_result_still_lives(desk: Desk, seconds: float, alive: bool) -> None:
    desk.clock.now = 1_800_000_000.0
    stored = desk.put("x")
    desk.clock.forward(seconds)
    if alive:
        assert desk.page(stored.handle).lines == ("x",)
    else:
        with pytest.raises(ResultExpired):
            desk.page(stored.handle)
    desk.put("y")
    assert alive == desk.file(stored.handle, ".txt").exists()


@fault("S07")
def test_a_clock_set_back_makes_nothing_expire(desk: Desk) -> None:
    stored = desk.put("x")
    desk.clock.forward(-86_400)
    desk.put("y")
    assert desk.page(stored.handle).lines == ("x",)


@fault("S07")
def test_a_ttl_of_zero_keeps_results_for_ever(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "tmp", ttl=0)
    stored = desk.put("x")
    desk.clock.forward(10 * 365 * 86_400)
    desk.put("y")
    assert desk.page(stored.handle).lines == ("x",)


@pytest.mark.parametrize("ttl", [0, TTL])
def test_what_a_crash_left_goes_after_the_ttl(tmp_path: Path, ttl: float) -> None:
    desk = Desk(tmp_path / "tmp", ttl=ttl)
    left = desk.put("x")
    desk.file(left.handle, ".meta.json").rename(desk.file(left.handle, ".meta.tmp"))
    desk.clock.forward(3500)
    young = desk.put("y")
    assert desk.file(left.handle, ".txt").exists()
    desk.clock.forward(101)
    desk.put("z")
    assert not any(left.handle in name for name in desk.names())
    assert desk.page(young.handle).lines == ("y",)


def test_a_file_system_without_locks_is_cleaned_by_age_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(_fd: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    left = desk.put("x")
    desk.file(left.handle, ".meta.json").unlink()
    desk.clock.forward(TTL + 60)
    new = desk.put("y")
    assert files_of(new) == desk.names()


def test_a_result_that_is_still_being_written_is_never_taken_for_a_leftover(desk: Desk) -> None:
    stalled, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[str]:
        yield "x" * 2_000_000
        stalled.set()
        assert go_on.wait(30)
        yield "\nlast"

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(desk.another_server().put, slow(), tool="t", owner=ME)
        assert stalled.wait(30)
        later = desk.another_server(Clock(desk.clock.now + 100 * TTL))
        later.put(["y"], tool="t", owner=ME)
        go_on.set()
        stored = writing.result(30)
    assert desk.page(stored.handle, offset=2).lines == ("last",)


def test_only_files_of_results_are_touched(desk: Desk, tmp_path: Path) -> None:
    stored = desk.put("x")
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    (desk.path / "result-short.txt").write_text("mine")
    (desk.path / f"result-{'a' * 22}.txt.bak").write_text("mine")
    (desk.path / f"result-{'b' * 22}.txt").mkdir()
    (desk.path / f"result-{'c' * 22}.txt").symlink_to(outside)
    (desk.path / f"result-{'d' * 22}.meta.json").symlink_to(outside)
    os.mkfifo(desk.path / f"result-{'e' * 22}.meta.json")
    foreign = desk.names() - files_of(stored)
    desk.clock.forward(TTL + 1)
    new = desk.put("y")
    assert foreign | files_of(new) == desk.names()
    assert outside.read_text() == "mine"


@fault("S13")
@pytest.mark.parametrize("handle", ["x/../../victim/v", "../victim/v"])
def test_the_handle_inside_a_meta_is_never_used_to_remove_anything(desk: Desk, tmp_path: Path, handle: str) -> None:
    victim = tmp_path / "victim"
    (victim / "result-x").mkdir(parents=True)
    for name in ("v", "v.txt", "v.meta.json"):
        (victim / name).write_text("mine")
    stored = desk.put("x")
    change_meta(desk, stored.handle, handle=handle, created_at="2000-01-01T00:00:00Z")
    desk.clock.forward(TTL + 1)
    new = desk.put("z")
    assert [(victim / name).read_text() for name in ("v", "v.txt", "v.meta.json")] == ["mine"] * 3
    assert files_of(new) == desk.names()


def test_a_meta_that_names_another_result_does_not_remove_that_one(desk: Desk) -> None:
    old = desk.put("old")
    desk.clock.forward(TTL)
    live = desk.put("live")
    change_meta(desk, old.handle, handle=live.handle)
    desk.clock.forward(60)
    new = desk.put("new")
    assert files_of(live, new) == desk.names()
    assert desk.page(live.handle).lines == ("live",)


DAMAGED_METAS: dict[str, bytes] = {
    "a list": b"[]",
    "an empty object": b"{}",
    "nothing": b"",
    "not JSON": b"{",
    "a zero byte": b"\0",
    "too large": b" " * 20_000 + b"{}",
    "no text": b"\xff\xfe",
    "deep": b"[" * 10_000,
}
CHANGES: dict[str, dict[str, Any]] = {
    "a date without a zone": {"created_at": "2020-01-01T00:00:00"},
    "a number for a date": {"created_at": 1},
    "too many lines": {"total_lines": 1_000_000_000},
    "too few lines": {"total_lines": 0},
    "negative lines": {"total_lines": -1},
    "a text for a number": {"total_lines": "3"},
    "another size": {"size_bytes": 4},
    "another handle": {"handle": "z" * 22},
    "another version": {"version": 2},
    "no owner": {"owner": None},
}


@fault("S11")
@pytest.mark.parametrize("damage", [*DAMAGED_METAS, *CHANGES])
def test_a_damaged_meta_is_not_found_and_goes_after_the_ttl(desk: Desk, damage: str) -> None:
    stored, sound = desk.put("x\ny\nz"), desk.put("sound")
    if damage in CHANGES:
        change_meta(desk, stored.handle, **CHANGES[damage])
    else:
        desk.file(stored.handle, ".meta.json").write_bytes(DAMAGED_METAS[damage])
    with pytest.raises(ResultNotFound):
        desk.page(stored.handle)
    desk.put("more")
    assert desk.page(sound.handle).lines == ("sound",)
    assert desk.file(stored.handle, ".meta.json").exists()
    desk.clock.forward(TTL + 60)
    new = desk.put("new")
    assert files_of(new) == desk.names()


@pytest.mark.parametrize("suffix", [".txt", ".idx"])
def test_content_or_index_of_another_length_is_not_found(desk: Desk, suffix: str) -> None:
    for change in (lambda data: data[:-1], lambda data: data + b"x", lambda data: b""):
        stored = desk.put("x\ny\nz")
        file = desk.file(stored.handle, suffix)
        file.write_bytes(change(file.read_bytes()))
        with pytest.raises(ResultNotFound):
            desk.page(stored.handle)


def test_an_index_that_is_not_that_of_the_content_is_an_error_and_no_wrong_page(desk: Desk) -> None:
    stored = desk.put("x" * 65_536, "\ny\nz")
    desk.file(stored.handle, ".idx").write_bytes((1).to_bytes(8, "little") + (2).to_bytes(8, "little"))
    for offset in (2, 3):
        with pytest.raises(ResultError, match="is damaged"):
            desk.page(stored.handle, offset=offset)


@pytest.mark.parametrize("query", [{"search": "zzz"}, {"search": "zzz", "fuzzy": True}, {"path": "[49999]"}])
def test_a_content_that_becomes_shorter_while_it_is_read_ends_in_an_error(
    desk: Desk, query: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = desk.store.put(["[" + ",\n".join(["1234567890"] * 50_000) + "]"], tool="t", owner=ME, form="json")
    real = LineReader.read

    def shorter(self: LineReader, start: int, length: int) -> bytes:
        os.truncate(desk.file(stored.handle, ".txt"), 1000)
        return real(self, start, length)

    monkeypatch.setattr(LineReader, "read", shorter)
    with pytest.raises((ResultError, ValueError), match=r"damaged|not JSON"):
        if "path" in query:
            desk.store.value(stored.handle, owner=ME, path=query["path"], max_bytes=1000)
        else:
            desk.page(stored.handle, **query)


@pytest.mark.parametrize("suffix", [".txt", ".idx"])
def test_a_file_taken_away_while_its_meta_stands_reads_as_expired(desk: Desk, suffix: str) -> None:
    stored = desk.put("x")
    desk.file(stored.handle, suffix).unlink()
    with pytest.raises(ResultExpired):
        desk.page(stored.handle)


# ---------------------------------------------------------------- size


@fault("S15")
def test_the_oldest_results_go_when_all_are_too_large(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(tmp_path / "tmp", max_total_bytes=1000)
    results = [desk.put("x" * 400)]
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            desk.clock.forward(1)
            results.append(desk.put("x" * 400))
    assert files_of(*results[-2:]) == desk.names()
    assert [record.getMessage() for record in caplog.records] == [
        "a stored result of 400 bytes was removed: output.max_total_bytes is reached"
    ] * 2


def test_the_newest_result_stays_even_when_its_clock_says_it_is_the_oldest(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "tmp", max_total_bytes=1000)
    desk.put("x" * 900)
    desk.clock.forward(-86_400)
    newest = desk.put("y" * 900)
    assert files_of(newest) == desk.names()
    assert read_all(desk, newest.handle) == b"y" * 900


def test_a_large_leftover_of_a_crash_drives_no_result_out(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "tmp", max_total_bytes=1000)
    left, kept = desk.put("x" * 900), desk.put("y" * 50)
    desk.file(left.handle, ".meta.json").unlink()
    desk.put("z" * 900)
    assert desk.page(kept.handle).lines == ("y" * 50,)


def test_what_a_crash_left_counts_and_is_the_first_to_make_room(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "tmp", max_total_bytes=1000)
    kept, left = desk.put("y" * 50), desk.put("x" * 900)
    desk.file(left.handle, ".meta.json").unlink()
    for suffix in (".txt", ".idx"):
        os.utime(desk.file(left.handle, suffix), (0, time.time() - 120))
    newest = desk.put("z" * 200)
    assert files_of(kept) | files_of(newest) == desk.names()


def test_what_takes_room_beside_the_results_counts_as_they_do(tmp_path: Path) -> None:
    spooled = [0]
    blobs = FileBlobs(tmp_path / "tmp", ttl=TTL, max_total_bytes=1000, beside=lambda: spooled[0])
    store = ResultStore(lambda _: blobs, ttl=TTL, max_total_bytes=1000, max_page_bytes=1000)
    first, second = (store.put([text * 300], tool="t", owner="o").handle for text in (b"a", b"b"))
    spooled[0] = 500
    third = store.put([b"c" * 300], tool="t", owner="o").handle
    left = {file.name for file in (tmp_path / "tmp").glob("*.txt")}
    assert left == {f"result-{third}.txt"}
    assert len({first, second, third}) == 3


# ---------------------------------------------------------------- several at once


@fault("S04")
def test_cleaners_that_come_together_never_fail(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(200):
        desk.put("x")
    later = datetime.now(UTC) + timedelta(seconds=TTL + 60)
    together = threading.Barrier(4)

    def clean(_: int) -> None:
        together.wait(30)
        with ResultDirectory(desk.path) as directory:
            ResultCleanup(timedelta(seconds=TTL), 1).sweep(directory, later)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(clean, range(4)))
    assert desk.names() == set()
    assert caplog.messages == []


def test_a_cleaner_that_finds_files_gone_goes_on(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    old = [desk.put("x") for _ in range(3)]
    desk.clock.forward(TTL + 1)
    unlink = os.unlink

    def raced(path: str, *, dir_fd: int | None = None) -> None:
        unlink(path, dir_fd=dir_fd)
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", raced)
    new = desk.put("y")
    assert files_of(new) == desk.names()
    assert len(old) == 3


@fault("S05")
@pytest.mark.parametrize("moment", range(1, 8))
def test_a_page_read_while_its_result_expires_is_whole_or_expired(
    desk: Desk, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = tuple(f"line {number}" for number in range(1, 101))
    stored = desk.put("\n".join(lines))
    real_open, calls = os.open, 0

    def interrupted(*arguments: Any, **options: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == moment:
            desk.clock.forward(TTL + 1)
            desk.put("a cleaner comes")
        return real_open(*arguments, **options)

    monkeypatch.setattr(os, "open", interrupted)
    try:
        assert lines == desk.page(stored.handle).lines
        assert moment == 7  # meta, content and index were open, each by way of the directory
    except ResultExpired:
        assert moment < 7


def test_metas_are_parsed_once_and_not_at_every_store(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        desk.put("x")
    parsed: list[str] = []
    real = ResultDirectory.read_file

    def counted(self: ResultDirectory, name: str, limit: int) -> bytes:
        parsed.append(name)
        return real(self, name, limit)

    monkeypatch.setattr(ResultDirectory, "read_file", counted)
    desk.put("y")
    assert len(parsed) == 1


def test_a_directory_that_cannot_be_listed_does_not_stop_a_store(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: object) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "scandir", broken)
    stored = desk.put("x")
    assert desk.page(stored.handle).lines == ("x",)
    assert caplog.messages == ["stored results could not be cleaned up: Input/output error"]


def test_a_crowded_directory_is_not_listed_at_every_store(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.max_total_bytes = 10
    store = desk.another_server()
    listed: list[object] = []
    scandir = os.scandir

    def counted(path: Any) -> Any:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counted)
    monkeypatch.setattr(result_cleanup, "CROWD", 1)
    results = [store.put(["xxx"], tool="t", owner=ME) for _ in range(3)]
    assert len(listed) == 2  # the second store found one, so the third did not look
    results.append(store.put(["xxx"], tool="t", owner=ME))
    assert len(listed) == 3  # but a store that no longer fits did
    assert files_of(*results[1:]) == desk.names()


def test_a_result_that_cannot_be_removed_does_not_stop_the_others(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stuck, other = desk.put("x"), desk.put("y")
    desk.clock.forward(TTL + 1)
    unlink = os.unlink

    def refusing(path: str, *, dir_fd: int | None = None) -> None:
        if stuck.handle in path:
            raise PermissionError(1, "Operation not permitted")
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refusing)
    new = desk.put("z")
    assert files_of(stuck, new) == desk.names()
    assert other.handle
    assert caplog.messages == ["a stored result could not be removed: Operation not permitted"]


def test_only_the_last_removed_results_are_remembered(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_cleanup, "REMEMBERED", 2)
    old = [desk.put("x") for _ in range(3)]
    desk.clock.forward(TTL + 1)
    desk.put("new")
    errors: list[type[Exception]] = []
    for result in old:
        with pytest.raises((ResultExpired, ResultNotFound)) as caught:
            desk.page(result.handle)
        errors.append(type(caught.value))
    assert sorted(errors, key=str) == [ResultExpired, ResultExpired, ResultNotFound]

"""Results in an object store: one object each, read a range at a time, within the time and the size of their owner."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onetool_team.results import object_cleanup
from onetool_team.results.object_blobs import PART_BYTES, ObjectBlobs
from onetool_team.results.object_layout import folder_of
from onetool_team.results.object_place import ObjectPlace
from onetool_team.results.object_reader import LEAST, MOST
from onetool_team.results.result_objects import ResultObjects
from onetool_team.state.state_keys import StateKeys
from ot.config.models import ObjectStorage, Output
from ot.errors import ResultExpired, ResultNotFound, StorageFull
from ot.output.result_store import ResultStore
from output.s3_process import S3Process
from output.store_desk import ME, PLENTY, TTL, Clock

KINDS = ("directory", "s3")


class CountedPlace(ObjectPlace):
    """Counts what is asked of the store."""

    def __init__(self, settings: ObjectStorage) -> None:
        super().__init__(settings)
        self.fetched: list[int] = []

    def end(self, key: str, length: int) -> tuple[bytes, int]:
        self.fetched.append(length)
        return super().end(key, length)

    def part(self, key: str, start: int, length: int) -> bytes:
        self.fetched.append(length)
        return super().part(key, start, length)


@pytest.fixture(params=KINDS)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStorage:
    if request.param == "directory":
        return ObjectStorage(url=f"file://{tmp_path}/objects")
    server: S3Process = request.getfixturevalue("s3")
    return server.settings(f"{secrets.token_hex(8)}/results")


def blobs_in(place: ObjectPlace, owner: str = ME, most: int = PLENTY, clock: Clock | None = None) -> ObjectBlobs:
    return ObjectBlobs(place, owner, ttl=TTL, max_total_bytes=most, clock=clock or Clock())


def store_of(*blobs: ObjectBlobs, clock: Clock | None = None, most: int = PLENTY) -> ResultStore:
    """Return a store for one owner."""
    return ResultStore(lambda _: blobs[0], ttl=TTL, max_total_bytes=most, max_page_bytes=50_000, clock=clock or Clock())


def lines(count: int, words: str = "") -> Iterator[str]:
    return (f"line {number} {words}\n" for number in range(1, count + 1))


def test_what_one_replica_stored_another_reads(settings: ObjectStorage) -> None:
    one, other = (store_of(blobs_in(ObjectPlace(settings))) for _ in range(2))
    handle = one.put(lines(50_000), tool="demo.list", owner=ME).handle
    assert other.page(handle, owner=ME, offset=40_001, limit=2).lines == ("line 40001 ", "line 40002 ")
    assert other.page(handle, owner=ME, search="line 4999[0-9]", limit=3).numbers == (49_990, 49_991, 49_992)


def test_another_principal_finds_nothing_under_the_same_handle(settings: ObjectStorage) -> None:
    place = ObjectPlace(settings)
    handle = store_of(blobs_in(place)).put(["mine"], tool="t", owner=ME).handle
    with pytest.raises(ResultNotFound):
        store_of(blobs_in(place, "another")).page(handle, owner="another")
    assert [entry["path"] for entry in place.list_objects("v1/")] == [f"{folder_of(ME)}{handle}"]


def test_a_page_costs_the_page_however_large_the_result_is(settings: ObjectStorage) -> None:
    place = CountedPlace(settings)
    store = store_of(blobs_in(place))
    handle = store.put(lines(400_000, "x" * 20), tool="t", owner=ME).handle
    assert store.describe(handle, owner=ME).size_bytes > 2 * PART_BYTES
    place.fetched.clear()
    assert store.page(handle, owner=ME, offset=300_000, limit=100).returned == 100
    assert len(place.fetched) <= 3
    assert sum(place.fetched) <= 3 * LEAST


def test_who_reads_on_gets_more_at_once_and_never_more_than_a_bound(settings: ObjectStorage) -> None:
    place = CountedPlace(settings)
    blobs = blobs_in(place)
    text = bytes(range(256)) * 4096 * 20
    handle = store_of(blobs).put([text], tool="t", owner=ME).handle
    place.fetched.clear()
    with store_of(blobs).open_content(handle, owner=ME) as content:
        assert b"".join(iter(lambda: content.read(100_000), b"")) == text
    assert place.fetched[1:4] == [LEAST, 4 * LEAST, 16 * LEAST]
    assert max(place.fetched) <= MOST
    with store_of(blobs).open_content(handle, owner=ME) as content:
        assert content.read() == text


def test_what_was_put_there_by_others_is_not_a_result(settings: ObjectStorage) -> None:
    place = ObjectPlace(settings)
    store = store_of(blobs_in(place))
    for data in (b"", b"a page of somebody's", b"x" * 100_000):
        handle = secrets.token_urlsafe(16)
        place.put(folder_of(ME) + handle, data)
        with pytest.raises(ResultNotFound):
            store.page(handle, owner=ME)


def test_a_result_whose_end_was_damaged_is_none(settings: ObjectStorage) -> None:
    place = ObjectPlace(settings)
    handle = store_of(blobs_in(place)).put(["some text"], tool="t", owner=ME).handle
    key = folder_of(ME) + handle
    whole, size = place.end(key, 1 << 20)
    for damaged in (whole[:-1] + b"?", whole[1:], whole.replace(b'"handle"', b'"handl_"')):
        place.delete(key)
        place.put(key, damaged)
        with pytest.raises(ResultNotFound):
            store_of(blobs_in(place)).page(handle, owner=ME)
    assert len(whole) == size


def test_the_oldest_results_go_when_an_owner_has_too_much(settings: ObjectStorage) -> None:
    place = ObjectPlace(settings)
    mine, others = blobs_in(place, most=10_000), blobs_in(place, "another", most=10_000)
    kept = store_of(others).put(["o" * 9_000], tool="t", owner="another").handle
    handles = [store_of(mine).put(["x" * 3_000], tool="t", owner=ME).handle for _ in range(5)]
    mine.cleanup.settle(10)
    mine.cleanup.add(10_000)  # one that was listing may have missed the last
    mine.cleanup.settle(10)
    left = {entry["path"].rpartition("/")[2] for entry in place.list_objects(folder_of(ME))}
    assert handles[-1] in left
    assert handles[0] not in left
    assert sum(entry["size"] for entry in place.list_objects(folder_of(ME))) <= 10_000
    assert store_of(others).describe(kept, owner="another").size_bytes == 9_000


def test_what_other_replicas_stored_counts_once_the_folder_is_listed(
    settings: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ObjectPlace(settings)
    here, there = blobs_in(place, most=10_000), blobs_in(place, most=10_000)
    old = store_of(there).put(["x" * 7_000], tool="t", owner=ME).handle
    there.cleanup.settle(10)
    store_of(here).put(["x" * 7_000], tool="t", owner=ME)  # the first result lists the folder
    here.cleanup.settle(10)
    with pytest.raises(ResultNotFound):
        store_of(there).describe(old, owner=ME)
    listed: list[str] = []
    monkeypatch.setattr(place, "list_objects", lambda folder: listed.append(folder) or [])
    store_of(here).put(["x"], tool="t", owner=ME)
    here.cleanup.settle(10)
    assert not listed  # not every result lists it


def test_expired_results_are_refused_at_once_and_removed_later(settings: ObjectStorage) -> None:
    clock = Clock()
    objects = ResultObjects(Output(result_ttl=TTL, store=settings), clock)
    store = ResultStore(objects.blobs_of, ttl=TTL, max_total_bytes=PLENTY, max_page_bytes=50_000, clock=clock)
    mine = store.put(["mine"], tool="t", owner=ME).handle
    others = store.put(["another's"], tool="t", owner="another").handle
    for owner in (ME, "another"):
        objects.blobs_of(owner).cleanup.settle(10)
    clock.forward(TTL + 1)
    with pytest.raises(ResultExpired):
        store.page(mine, owner=ME)
    clock.forward(object_cleanup.CLOCKS.total_seconds() + 60)
    blobs = objects.blobs_of(ME)
    blobs.cleanup.add(PLENTY)
    blobs.cleanup.settle(10)
    with pytest.raises(ResultExpired):
        store.page(mine, owner=ME)
    assert store.describe(store.put(["new"], tool="t", owner=ME).handle, owner=ME)
    objects.sweep()
    with pytest.raises(ResultNotFound):
        store.page(others, owner="another")


def test_a_result_that_is_removed_while_it_is_read_is_said_to_be_gone(settings: ObjectStorage) -> None:
    place = ObjectPlace(settings)
    blobs = blobs_in(place)
    handle = store_of(blobs).put(lines(200_000), tool="t", owner=ME).handle
    with pytest.raises(ResultNotFound), store_of(blobs).open_content(handle, owner=ME) as content:
        place.delete(folder_of(ME) + handle)
        content.read(1)


def test_what_a_killed_server_left_in_a_directory_goes_after_an_hour(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys, obstore\n"
        "from obstore.store import LocalStore\n"
        "def parts():\n"
        "    yield bytes(6 << 20)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        f"obstore.put(LocalStore(sys.argv[1]), {folder_of(ME) + 'h' * 22!r}, parts())\n"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path], timeout=60, check=False)
    (left,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    objects = ResultObjects(Output(store=ObjectStorage(url=f"file://{tmp_path}")))
    objects.sweep()
    assert left.exists()  # it may be another server's, which is still writing
    os.utime(left, (0, 0))
    objects.sweep()
    assert not left.exists()


def test_a_result_larger_than_all_may_be_leaves_nothing(settings: ObjectStorage) -> None:
    place = ObjectPlace(settings)
    with pytest.raises(StorageFull):
        store_of(blobs_in(place), most=PART_BYTES + 1).put(lines(600_000), tool="t", owner=ME)
    assert list(place.list_objects("v1/")) == []


def test_one_user_imports_nothing_of_it() -> None:
    script = (
        "import sys, ot.server.mcp_server; from ot.config.paths import Paths; from ot.workspace import Workspace;"
        "import pathlib, tempfile; home = pathlib.Path(tempfile.mkdtemp());"
        "Workspace.alone(Paths.of(home, home / '.onetool'));"
        "print([name for name in sys.modules if 'obstore' in name or 'output.object' in name])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_who_lists_the_bucket_cannot_try_out_whose_results_there_are(settings: ObjectStorage) -> None:
    objects = ResultObjects(Output(store=settings), hide=StateKeys(["k" * 32]).hide)
    store = ResultStore(objects.blobs_of, ttl=TTL, max_total_bytes=PLENTY, max_page_bytes=50_000)
    handle = store.put(["mine"], tool="t", owner=ME).handle
    with pytest.raises(ResultNotFound):
        ResultStore(
            ResultObjects(Output(store=settings)).blobs_of, ttl=TTL, max_total_bytes=PLENTY, max_page_bytes=50_000
        ).describe(handle, owner=ME)
    assert store.describe(handle, owner=ME)

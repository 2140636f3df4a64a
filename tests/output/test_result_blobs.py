"""What every place for results does alike: the contract of the seam, for files and memory; plugins have theirs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ot.errors import ResultExpired, ResultNotFound
from ot.output.file_blobs import FileBlobs
from ot.output.result_blobs import HandleTaken, ResultBlobs, ResultMeta, Sealed
from ot.output.result_store import ResultStore
from output.memory_blobs import MemoryBlobs
from output.store_desk import ME, PLENTY, TTL, Clock, lines_of

HANDLE = "h" * 22


PLACES: dict[str, Callable[[Path], ResultBlobs]] = {
    "files": lambda directory: FileBlobs(directory, ttl=TTL, max_total_bytes=PLENTY),
    "memory": lambda _directory: MemoryBlobs(),
}


@pytest.fixture(params=PLACES)
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> ResultBlobs:
    return PLACES[request.param](tmp_path / "tmp")


def sealed(handle: str = HANDLE, size: int = 6, owner: str = ME) -> Sealed:
    meta = ResultMeta(
        handle=handle, total_lines=2, size_bytes=size, created_at=datetime.now(UTC), tool="t", owner=owner
    )
    return Sealed(meta, b"\2" + bytes(7))


def test_what_was_put_is_read_from_anywhere(blobs: ResultBlobs) -> None:
    meta = blobs.put(HANDLE, [b"one\n", bytearray(b"2\n")], sealed)
    assert meta == blobs.meta(HANDLE) == sealed().meta.model_copy(update={"created_at": meta.created_at})
    assert blobs.index(meta) == sealed().index
    with blobs.open(meta) as content:
        assert (content.seek(4), content.read(1), content.seek(0), content.read()) == (4, b"2", 0, b"one\n2\n")


def test_a_result_is_sealed_when_all_of_it_has_come_and_not_seen_before(blobs: ResultBlobs) -> None:
    steps: list[str] = []

    def chunks() -> Iterator[bytes]:
        yield b"one\n"
        with pytest.raises(FileNotFoundError):
            blobs.meta(HANDLE)
        steps.append("unseen")
        yield b"2\n"
        steps.append("came")

    def seal() -> Sealed:
        steps.append("sealed")
        return sealed()

    blobs.put(HANDLE, chunks(), seal)
    assert steps == ["unseen", "came", "sealed"]


def test_a_handle_is_given_once_and_nothing_is_asked_of_the_second_source(blobs: ResultBlobs) -> None:
    def untouched() -> Iterator[bytes]:
        raise AssertionError("asked for")
        yield b""

    meta = blobs.put(HANDLE, [b"one\n2\n"], sealed)
    with pytest.raises(HandleTaken):
        blobs.put(HANDLE, untouched(), sealed)
    with blobs.open(meta) as content:
        assert content.read() == b"one\n2\n"


@pytest.mark.parametrize("error", [FileExistsError("a source's own"), KeyboardInterrupt(), ValueError()])
def test_a_source_that_fails_leaves_nothing_and_its_handle_free(blobs: ResultBlobs, error: BaseException) -> None:
    def broken() -> Iterator[bytes]:
        yield b"one\n"
        raise error

    with pytest.raises(type(error)):
        blobs.put(HANDLE, broken(), sealed)
    with pytest.raises(FileNotFoundError):
        blobs.meta(HANDLE)
    blobs.put(HANDLE, [b"one\n2\n"], sealed)


def test_what_is_not_there_is_not_found(blobs: ResultBlobs) -> None:
    blobs.put(HANDLE, [b"one\n2\n"], sealed)
    unknown = sealed("u" * 22).meta
    for read in (lambda: blobs.meta(unknown.handle), lambda: blobs.index(unknown), lambda: blobs.open(unknown)):
        with pytest.raises(FileNotFoundError):
            read()
    assert not blobs.has_expired(unknown.handle, ME)


def test_many_may_put_and_read_at_the_same_time(blobs: ResultBlobs) -> None:
    wrong: list[str] = []

    def work(number: int) -> None:
        handle = f"{number:022}"
        blobs.put(handle, [b"%022d" % number], lambda: sealed(handle, 22))
        with blobs.open(sealed(handle, 22).meta) as content:
            if content.read() != handle.encode():
                wrong.append(handle)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong


def test_the_store_is_the_same_over_every_place(blobs: ResultBlobs) -> None:
    clock = Clock()
    store = ResultStore(lambda _: blobs, ttl=TTL, max_total_bytes=PLENTY, max_page_bytes=2000, clock=clock)
    text = "".join(f"line {number}\n" for number in range(1, 501))
    handle = store.put([text], tool="t", owner=ME).handle
    assert tuple(lines_of(text)[100:150]) == store.page(handle, owner=ME, offset=101, limit=50).lines
    assert store.page(handle, owner=ME, search="9[0-9]$", limit=3).numbers == (90, 91, 92)
    with pytest.raises(ResultNotFound):
        store.page(handle, owner="another")
    clock.forward(TTL + 1)
    with pytest.raises(ResultExpired):
        store.page(handle, owner=ME)


def test_a_source_s_own_error_is_not_taken_for_a_taken_handle(blobs: ResultBlobs) -> None:
    def broken() -> Iterator[bytes]:
        yield b"one\n"
        raise FileExistsError("a source's own")

    store = ResultStore(lambda _: blobs, ttl=TTL, max_total_bytes=PLENTY, max_page_bytes=2000)
    with pytest.raises(FileExistsError, match="a source's own"):
        store.put(broken(), tool="t", owner=ME)

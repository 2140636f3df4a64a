"""What the object store does to replies: down, frozen, slow, refusing or full, a reply comes in time and says so."""

from __future__ import annotations

import resource
import secrets
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from onetool_team.results.object_blobs import PART_BYTES
from onetool_team.results.result_objects import ResultObjects
from ot.config.models import ObjectStorage, Output
from ot.errors import ResultError, StorageFull
from ot.output.finish import Asked, Finish
from ot.output.result_store import ResultStore
from ot.values.parts import Unread
from ot_sdk import tagged
from output.s3_process import S3Process, running_s3
from output.slow_link import slow_link
from output.store_desk import ME, PLENTY
from pace import busy_seconds

pytestmark = pytest.mark.anyio

BOUND = 2.5
"""Seconds more than a reply takes whose result is kept."""
INLINE = 500
TEXT = "é" * 5_000


class Replies:
    """Makes replies whose large results are kept where *settings* say."""

    def __init__(self, settings: ObjectStorage) -> None:
        output = Output(max_inline_size=INLINE, store=settings)
        objects = ResultObjects(output)
        self.store = ResultStore(objects.blobs_of, ttl=3600, max_total_bytes=PLENTY, max_page_bytes=50_000)
        self._finish = Finish(output, self.store)

    async def reply(self, value: Any = TEXT) -> tuple[str, float]:
        """Return the text of a reply, and how long it took."""
        begun = time.monotonic()
        self.asked = Asked(owner=ME)
        return await self._finish.value(value, self.asked), time.monotonic() - begun

    async def kept(self, value: Any = TEXT) -> tuple[str, float]:
        """Return the handle of a result that is kept, and how long the reply took."""
        text, took = await self.reply(value)
        assert self.asked.handles, text
        return self.asked.handles[0], took

    async def not_kept(self, value: Any = TEXT) -> tuple[str, float]:
        """Return the text of a reply whose result is not kept, and how long it took."""
        text, took = await self.reply(value)
        assert not self.asked.handles, text
        return text, took

    def read(self, handle: str) -> str:
        """Return a result's content."""
        with self.store.open_content(handle, owner=ME) as content:
            return content.read().decode()


@pytest.fixture(scope="module")
def server() -> Iterator[S3Process]:
    with running_s3() as process:
        yield process


def said(text: str, why: str) -> None:
    assert text == f"{TEXT[: INLINE // 2]}\n[truncated: the result has 5,000 characters and it was not kept: {why}]"


def is_in_time(seconds: float) -> bool:
    """Return whether that is within the bound, or within what the machine adds to it at present."""
    return seconds < BOUND or seconds < BOUND + busy_seconds()


async def test_a_store_that_was_killed_costs_no_reply_and_its_results_are_there_when_it_is_back(
    server: S3Process,
) -> None:
    here, there = (Replies(server.settings("killed")) for _ in range(2))
    handle, control = await here.kept()
    server.kill()
    text, took = await here.not_kept()
    said(text, "the object store does not answer")
    assert is_in_time(took - control)
    with pytest.raises(ResultError, match="the object store does not answer"):
        there.read(handle)
    server.start()
    assert there.read(handle) == TEXT
    assert there.read((await here.kept())[0]) == TEXT


async def test_a_store_that_is_frozen_costs_no_reply(server: S3Process) -> None:
    replies = Replies(server.settings("frozen"))
    _, control = await replies.kept()
    server.freeze()
    try:
        text, took = await replies.not_kept()
    finally:
        server.thaw()
    said(text, "the object store does not answer")
    assert is_in_time(took - control)
    assert replies.read((await replies.kept())[0]) == TEXT


@pytest.mark.parametrize("seconds", [0.2, 5.0], ids=["slow", "too slow"])
async def test_a_slow_store_is_waited_for_within_the_bound(server: S3Process, seconds: float) -> None:
    with slow_link(server.ports["s3"]) as link:
        replies = Replies(server.settings("slow", endpoint=f"http://127.0.0.1:{link.port}"))
        _, control = await replies.kept()
        link.seconds = seconds
        if seconds < 0.5:
            assert (await replies.kept())[1] > 2 * seconds
        else:
            text, took = await replies.not_kept()
            said(text, "the object store does not answer")
            assert is_in_time(took - control)
        link.seconds = 0.0
        assert replies.read((await replies.kept())[0]) == TEXT


async def test_a_store_that_freezes_while_a_large_result_goes_there_costs_no_reply(server: S3Process) -> None:
    replies = Replies(server.settings("large"))
    frozen: list[float] = []

    def chunks() -> Iterator[bytes]:
        yield b"x" * 2 * PART_BYTES
        server.freeze()
        frozen.append(time.monotonic())
        yield b"x" * 2 * PART_BYTES

    try:
        with pytest.raises(ResultError, match="does not answer"):
            replies.store.put(chunks(), tool="t", owner=ME)
        took = time.monotonic() - frozen[0]
    finally:
        server.thaw()
    assert is_in_time(took)  # the part, and the attempt to take the upload back
    assert replies.read((await replies.kept())[0]) == TEXT


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"secret_access_key": "wrong"}, "the object store refuses the credentials"),
        ({"access_key_id": "nobody"}, "the object store refuses the credentials"),
        ({"url": "s3://another-bucket"}, "the object store refuses the credentials"),
    ],
    ids=["wrong secret", "unknown key", "another bucket"],
)
async def test_a_store_that_refuses_costs_no_reply(server: S3Process, changes: dict[str, str], why: str) -> None:
    _, control = await Replies(server.settings("refused")).kept()
    text, took = await Replies(server.settings("refused", **changes)).not_kept()
    said(text, why)
    assert is_in_time(took - control)


async def test_a_bucket_that_does_not_exist_is_named_as_the_cause(server: S3Process) -> None:
    missing = server.settings(url="s3://not-there", access_key_id="admin", secret_access_key="admin-secret")
    replies = Replies(missing)
    with pytest.raises(ResultError, match="the bucket of the object store does not exist"):
        replies.read(secrets.token_urlsafe(16))


async def test_a_store_without_room_costs_no_reply() -> None:
    with running_s3("-volume.max=1", "-master.volumeSizeLimitMB=1") as small:
        replies = Replies(small.settings())
        handle, control = await replies.kept()
        text = ""
        for _ in range(2):  # the first finds room
            text, took = await replies.reply(secrets.token_hex(1 << 19))
            assert is_in_time(took - control)
        assert "it was not kept: the object store answered HTTP 500" in text
        assert replies.read(handle) == TEXT


def files_below(directory: Path) -> list[str]:
    return [path.name for path in directory.rglob("*") if path.is_file()]


async def test_a_full_disk_below_a_directory_of_objects_is_a_full_store(tmp_path: Path) -> None:
    replies = Replies(ObjectStorage(url=f"file://{tmp_path}/objects"))
    handle, _ = await replies.kept()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, before[1]))
    try:
        text, _ = await replies.not_kept()
        with pytest.raises(StorageFull):
            replies.store.put([b"x" * 2 * PART_BYTES], tool="t", owner=ME)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    said(text, "the object store is full")
    assert files_below(tmp_path) == [handle]


async def test_a_value_too_large_to_be_read_shows_its_beginning_where_it_is_not_kept() -> None:
    keys = {"region": "x", "access_key_id": "a", "secret_access_key": "b"}
    replies = Replies(ObjectStorage(url="s3://results", endpoint="http://127.0.0.1:9", seconds=0.3, **keys))
    value = Unread(orjson.dumps(tagged.encode([{"number": number} for number in range(100)])))
    text, _ = await replies.not_kept(value)
    assert text.startswith('[{"number":0},')
    assert text.endswith("and it was not kept: the object store does not answer]")

"""What tools give beside their values is bounded, and shows no secret."""

from __future__ import annotations

from typing import Any

from ot.runtime.reply import MOST_BLOCKS, MOST_BYTES, MOST_WAITING_BYTES, ReplyBlocks
from ot_sdk.redaction import redact_block


def image(size: int) -> dict[str, Any]:
    return {"type": "image", "data": "A" * size, "mimeType": "image/png"}


def test_blocks_are_bounded_by_number() -> None:
    blocks = ReplyBlocks()
    for _ in range(MOST_BLOCKS + 1):
        blocks.add(image(10))
    assert len(blocks.blocks) == MOST_BLOCKS
    assert blocks.note.startswith("note: 1 part of")


def test_blocks_are_bounded_by_size_and_a_small_one_still_fits_after_a_large_one_did_not() -> None:
    blocks = ReplyBlocks()
    for size in (MOST_BYTES - 1000, 2000, 10):
        blocks.add(image(size))
    assert [len(block["data"]) for block in blocks.blocks] == [MOST_BYTES - 1000, 10]


def test_a_block_waits_until_a_value_names_it() -> None:
    blocks = ReplyBlocks()
    blocks.keep(image(10), "a")
    blocks.keep(image(20), "b")
    assert blocks.blocks == []
    assert blocks.show({"rows": [{"block": "b"}, {"block": 1}]})
    assert blocks.blocks == [image(20)]
    assert not blocks.show([{"block": "b"}, "a"])


def test_of_very_many_blocks_that_wait_the_oldest_make_room() -> None:
    blocks = ReplyBlocks()
    for number in range(5):
        blocks.keep(image(MOST_WAITING_BYTES // 4), str(number))
    assert [blocks.show({"block": str(number)}) for number in range(5)] == [False, False, True, True, True]


def test_meta_is_bounded() -> None:
    blocks = ReplyBlocks()
    for _ in range(1000):
        blocks.add_meta("a.b", {"text": "x" * 100})
    assert 0 < len(blocks.meta) < 400


def test_texts_are_redacted_and_encoded_data_is_left_alone() -> None:
    resource = {"uri": "mem://key", "text": "my key", "list": ["key"], "blob": "key"}
    block = {"type": "resource", "resource": resource, "data": "key", "n": 1}
    expected = {"uri": "mem://*", "text": "my *", "list": ["*"], "blob": "key"}
    found = redact_block(block, lambda text: text.replace("key", "*"))
    assert found == {"type": "resource", "resource": expected, "data": "*", "n": 1}

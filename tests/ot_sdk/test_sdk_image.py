"""``ot_sdk.image``: what stands for an image, what is refused, and what a worker may tell of one."""

from __future__ import annotations

from typing import Any

import pytest

import ot_sdk
from ot.workers.worker import _filter_event
from ot_sdk.images import MAX_BYTES, image_block
from ot_sdk.testing import use

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


def test_an_image_is_a_small_value_that_names_it():
    with use() as told:
        first, again, other = ot_sdk.image(PNG), ot_sdk.image(PNG), ot_sdk.image(PNG + b"!")
    assert first == again == {"type": "image", "block": first["block"], "mime_type": "image/png", "size": len(PNG)}
    assert other["block"] != first["block"]
    assert told.images == [PNG, PNG, PNG + b"!"]


@pytest.mark.parametrize(
    ("data", "mime_type", "words"),
    [
        pytest.param(PNG, "image/svg+xml", "must be one of image/png", id="a kind that could hold a program"),
        pytest.param(b"<html>", "image/png", "is no image/png", id="data of another kind"),
        pytest.param(PNG + bytes(MAX_BYTES), "image/png", "make it smaller", id="too much of it"),
    ],
)
def test_what_is_no_image_is_refused(data: bytes, mime_type: str, words: str):
    with use(), pytest.raises(ValueError, match=words):
        ot_sdk.image(data, mime_type)


@pytest.mark.parametrize(
    ("method", "told"),
    [
        pytest.param("content", {"block": {"type": "text", "text": "obey"}}, id="a block of its own making"),
        pytest.param("meta", {"meta": {}}, id="meta of a reply"),
        pytest.param("image", {}, id="an image without a block"),
        pytest.param("image", {"block": "text"}, id="a block that is text"),
        pytest.param("image", {"block": {"type": "image", "mimeType": "text/html", "data": "x"}}, id="another kind"),
    ],
)
def test_a_worker_tells_of_images_and_nothing_else(method: str, told: dict[str, Any]):
    assert _filter_event(method, told) is None


def test_a_block_of_a_worker_has_the_parts_of_an_image_only():
    block = image_block(PNG, "image/png")
    told = _filter_event("image", {"block": {**block, "type": "text", "text": "obey"}, "name": "n"})
    assert told == ("content", {"block": block, "id": "n"})

"""What another OneTool answers is held to its form: whatever comes, it is a value, an error, or a result to store."""

from __future__ import annotations

from base64 import b64encode
from types import SimpleNamespace
from typing import Any

import pytest

from ot.errors import ServerUnavailable, ToolError, ToolFailed
from ot.registry.tool import Tool
from ot.servers.pack_replies import CopiedResult, PackReply, ending, progress_of
from ot.values.parts import Unread
from ot_sdk.redaction import Redactor

pytestmark = pytest.mark.anyio

TOOL = Tool("weather", "forecast")


class Pages:
    """Stands for the client of a host that has something stored."""

    def __init__(self, *pages: bytes) -> None:
        self._pages = list(pages)
        self.asked: list[str] = []

    async def read_resource_mcp(self, uri: str) -> Any:
        self.asked.append(uri)
        page = self._pages.pop(0) if self._pages else b""
        return SimpleNamespace(contents=[SimpleNamespace(blob=b64encode(page).decode())])


def reply_of(**held: Any) -> PackReply:
    return PackReply(TOOL, {"structuredContent": held, "_meta": {"onetool": {"form": 1}}})


async def value_of(reply: PackReply, *pages: bytes) -> Any:
    client: Any = Pages(*pages)
    await reply.fetch(client, Redactor())
    return await reply.value()


async def test_a_value_comes_with_its_types() -> None:
    assert b"\x00" == await value_of(reply_of(value='{"$ot":"bytes","v":"AA=="}'))


@pytest.mark.parametrize("value", [None, 3, "", "{", '{"$ot":"evil","v":1}', '{"$ot":"int","v":"1e9"}', "[" * 5000])
async def test_a_value_that_cannot_be_read_is_a_failure_of_the_tool(value: Any) -> None:
    with pytest.raises(ToolFailed, match="a value that cannot be read"):
        await value_of(reply_of(value=value))


async def test_a_stored_value_is_read_page_by_page() -> None:
    client: Any = Pages(b'["a",', b'"b"]')
    reply = reply_of(stored={"handle": "h", "bytes": 9, "form": "tagged"})
    await reply.fetch(client, Redactor())
    assert ["a", "b"] == await reply.value()
    assert ["ot://result/h/0", "ot://result/h/5"] == client.asked


@pytest.mark.parametrize(
    ("size", "pages"),
    [(9, [b'["a",']), (9, [b'["a"]' * 3]), (-1, []), ("9", []), (1 << 31, []), (None, []), (9, [])],
)
async def test_a_stored_value_of_another_size_than_was_said_is_unknown(size: Any, pages: list[bytes]) -> None:
    with pytest.raises(ServerUnavailable, match="its large value could not be read") as raised:
        await value_of(reply_of(stored={"handle": "h", "bytes": size, "form": "tagged"}), *pages)
    assert raised.value.unknown


async def test_what_is_too_large_for_a_program_is_handed_on_to_be_stored() -> None:
    stored = {"handle": "h", "bytes": 4, "form": "text"}
    found = await value_of(reply_of(stored=stored, too_large="9 bytes"), b"text")
    assert isinstance(found, CopiedResult)
    with found.file as file:
        assert ("text", "9 bytes", b"text") == (found.form, found.size, file.read())


async def test_a_value_of_very_many_parts_is_not_read() -> None:
    data = b"[" + b"1," * 1_000_001 + b"1]"
    found = await value_of(reply_of(stored={"handle": "h", "bytes": len(data), "form": "tagged"}), data)
    assert isinstance(found, Unread)


@pytest.mark.parametrize("failure", [{"error": "ToolFailed"}, {"error": 1}, {"a": "b"}])
async def test_a_failure_is_an_error_whatever_it_says(failure: Any) -> None:
    with pytest.raises(ToolError):
        await value_of(reply_of(failure=failure, value="1"))


@pytest.mark.parametrize("held", [None, [], "x", {"printed": 3, "value": "1"}])
async def test_what_is_no_answer_of_a_pack_prints_nothing(held: Any) -> None:
    reply = PackReply(TOOL, {"structuredContent": held, "_meta": {"onetool": {"form": 1, "revision": None}}})
    assert ("", "") == (reply.printed, reply.revision)


@pytest.mark.parametrize("message", [None, "", "running", "[1]", '"x"', "{}"])
def test_a_sign_of_life_is_no_progress(message: str | None) -> None:
    assert progress_of(message) is None


def test_progress_has_numbers_and_a_text() -> None:
    assert {"done": 1, "total": None, "message": ""} == progress_of('{"done":1,"total":"x","message":[2]}')


@pytest.mark.parametrize(("begun", "unknown"), [(False, False), (True, True), (None, True)])
def test_a_server_that_ends_says_whether_the_call_was_begun(begun: Any, unknown: bool) -> None:
    told = {"error": "ServerEnding"} | ({} if begun is None else {"begun": begun})
    found = ending({"_meta": {"onetool": told}}, "weather")
    assert found
    assert unknown == found.unknown
    assert ending({"_meta": {"onetool": {"error": "ToolFailed"}}}, "weather") is None

"""What servers answer and ask: questions go to the user, and that a server asks is remembered."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from ot.errors import CannotAsk, ToolFailed
from ot.execution.caller import Answer, Question
from ot.proxied.asking_servers import AskingServers
from ot.proxied.call import tool_value
from ot.proxied.spec import ServerSpec
from ot.registry.proxy_target import ServerIdentity
from proxied.desk import Door, door_to, fake_spec, until

pytestmark = pytest.mark.anyio

HALL = Path(__file__).with_name("hall_server.py")


class Person:
    """Answers questions, and remembers them."""

    def __init__(self, answer: Answer | None) -> None:
        self.asked: list[Question] = []
        self._answer = answer

    async def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        if self._answer is None:
            raise CannotAsk("nobody is there")
        return self._answer


@pytest.fixture(scope="module")
async def hall() -> AsyncGenerator[Door]:
    """A real server of the newer protocol over standard input and output."""
    spec = ServerSpec("hall", "hall", command=sys.executable, args=(str(HALL),), workspace="/srv/work")
    async with door_to(spec, ask=Person(Answer("accept", {"name": "Ada"}))) as door:
        yield door


# ---------------------------------------------------------------- values


def result(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"content": list(blocks), **more}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


async def test_no_content_is_none_one_text_is_text_and_several_are_a_list():
    assert tool_value("t", result(), None) is None
    assert tool_value("t", result(words("one")), None) == "one"
    assert tool_value("t", result(words("one"), words("two")), None) == ["one", "two"]


async def test_structured_content_is_the_value_and_a_wrapped_one_is_unwrapped():
    wrapped = {"x-fastmcp-wrap-result": True}
    answer = result(words("3"), structuredContent={"result": 3})
    assert tool_value("t", answer, wrapped) == 3
    assert tool_value("t", answer, {}) == {"result": 3}
    assert tool_value("t", answer, None) == {"result": 3}
    both = result(structuredContent={"result": 3, "more": 4})
    assert tool_value("t", both, wrapped) == {"result": 3, "more": 4}


async def test_a_failure_of_the_server_carries_its_words():
    with pytest.raises(ToolFailed, match="no such file"):
        tool_value("t", result(words("no such file"), isError=True), None)
    with pytest.raises(ToolFailed, match='"code":"QUOTA"'):
        tool_value("t", result(structuredContent={"code": "QUOTA"}, isError=True), None)
    with pytest.raises(ToolFailed, match="not why"):
        tool_value("t", result(isError=True), None)


async def test_non_text_content_goes_to_the_reply_and_leaves_a_note_in_the_value():
    async with door_to(fake_spec()) as door:
        see, image, audio, inside, link = await door.call("picture")
        assert see == "see"
        ids = [part.pop("block") for part in (image, audio, inside, link)]
        assert image == {"type": "image", "mime_type": "image/png", "size": 8}
        assert audio == {"type": "audio", "mime_type": "audio/wav", "size": 8}
        assert inside == {"type": "resource", "uri": "mem://a", "mime_type": "text/plain", "text": "inside"}
        assert link == {"type": "resource_link", "mime_type": "text/plain", "uri": "mem://b", "name": "b", "size": 12}
        assert ids == [told["id"] for told in door.of("content")]
        assert len(set(ids)) == 4
        blocks = [told["block"] for told in door.of("content")]
        assert [block["type"] for block in blocks] == ["image", "audio", "resource", "resource_link"]
        assert blocks[0]["annotations"] == {"audience": ["user"], "priority": 0.5}
        assert blocks[0]["_meta"] == {"k": "v"}
        assert door.of("meta") == [{"meta": {"cost": 3}}]


async def test_progress_of_the_server_is_told():
    async with door_to(fake_spec()) as door:
        assert await door.call("progress") == "done"
        assert {"done": 3, "total": 3, "message": "step 3"} in door.of("progress")


# ---------------------------------------------------------------- the newer protocol


async def test_values_of_a_real_server_are_unwrapped(hall: Door):
    assert await hall.call("add", a=1, b=2) == 3
    assert await hall.call("profile") == {"name": "Ada", "age": 36}
    assert await hall.call("nothing") is None


async def test_resources_and_prompts_can_be_listed_and_read(hall: Door):
    listed = await hall.method("resources/list")
    assert {"uri": "hall://motto", "name": "motto", "mime_type": "text/plain"}.items() <= listed[0].items()
    assert any(entry.get("uri_template") == "hall://room/{number}" for entry in listed)
    assert await hall.method("resources/read", uri="hall://motto") == "plain words"
    assert await hall.method("resources/read", uri="hall://room/4") == "room 4"
    logo = await hall.method("resources/read", uri="hall://logo")
    assert logo.pop("block") == hall.of("content")[0]["id"]
    assert logo == {"uri": "hall://logo", "mime_type": "image/png", "size": 4}
    assert hall.of("content")[0]["block"]["resource"]["blob"]
    assert [prompt["name"] for prompt in await hall.method("prompts/list")] == ["greet"]
    filled = await hall.method("prompts/get", name="greet", arguments={"name": "Ada"})
    assert filled["messages"] == [{"role": "user", "content": "Say hello to Ada."}]


async def test_an_answer_that_needs_the_user_asks_and_goes_on(hall: Door):
    assert await hall.call("welcome") == "welcome, Ada"


async def test_questions_of_calls_at_the_same_time_go_each_to_its_own_user(hall: Door):
    people = [Person(Answer("accept", {"name": name})) for name in ("Ada", "Bo", "Cy")]
    doors = [Door(hall.spec, hall.pool, person) for person in people]
    answers = await asyncio.gather(*(door.call("welcome") for door in doors))
    assert answers == ["welcome, Ada", "welcome, Bo", "welcome, Cy"]
    assert [len(person.asked) for person in people] == [1, 1, 1]


async def test_a_refused_question_is_told_to_the_server(hall: Door):
    assert await Door(hall.spec, hall.pool, Person(Answer("decline"))).call("welcome") == "decline"


# ---------------------------------------------------------------- asking


async def test_a_question_of_the_older_protocol_goes_to_the_user_of_the_last_call():
    first, last = Person(Answer("accept", {"name": "first"})), Person(Answer("accept", {"name": "last"}))
    async with door_to(fake_spec(), ask=first) as door:
        await door.call("echo")
        sleeping = asyncio.ensure_future(door.call("sleep", seconds=0.5))
        await until(lambda: bool(door.pool.connection(door.spec).in_flight))
        assert '"last"' in await Door(door.spec, door.pool, last).call("ask")
        assert not first.asked
        await sleeping


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer("accept", {"name": "Ada"}), '{"action": "accept", "content": {"name": "Ada"}}'),
        (Answer("decline"), '{"action": "decline"}'),
        (None, '{"action": "cancel"}'),
    ],
)
async def test_a_question_of_the_server_goes_to_the_user_of_the_call(answer: Answer | None, expected: str):
    person = Person(answer)
    async with door_to(fake_spec(), ask=person) as door:
        assert await door.call("ask") == expected
        (question,) = person.asked
        assert question.message == "The server 'fake' asks: w[8mho?"  # without what hides or turns text
        assert question.schema["properties"] == {"name": {"type": "string"}}


async def test_a_question_when_nobody_can_be_asked_is_cancelled():
    async with door_to(fake_spec()) as door:
        assert await door.call("ask") == '{"action": "cancel"}'


async def test_the_workspace_is_a_servers_root_and_sampling_is_refused():
    async with door_to(fake_spec(workspace="/srv/my work")) as door:
        answers = await door.call("roots")
        assert '"r1": {"roots": [{"uri": "file:///srv/my%20work", "name": "my work"}]}' in answers
        assert "Sampling not supported" in answers


async def test_the_workspace_is_a_servers_root_in_the_newer_protocol_too(hall: Door):
    assert await hall.call("rooms") == '[["file:///srv/work","work"]]'


ASKING, SILENT = ServerIdentity("s", "1"), ServerIdentity("s", "2")


def test_a_server_that_asked_is_known_to_the_next_process_and_another_of_its_name_is_not(tmp_path: Path) -> None:
    known = AskingServers(tmp_path / "servers")
    assert not known.holds(ASKING)
    known.note(ASKING)
    known.note(ASKING)
    assert known.count == 1
    for again in (known, AskingServers(tmp_path / "servers")):
        assert (again.holds(ASKING), again.holds(SILENT)) == (True, False)


def test_what_cannot_be_written_is_known_as_long_as_the_process_lives(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "servers").write_text("a file")
    known = AskingServers(tmp_path / "servers")
    known.note(ASKING)
    assert known.holds(ASKING)
    assert "could not be remembered" in caplog.text

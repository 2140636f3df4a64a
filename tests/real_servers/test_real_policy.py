"""A loop that would destroy much at a real server asks once, with a count, and does what was allowed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cli.command import OneTool
from cli.terminal.test_terminal_question import ON_A_PTY, at_terminal
from faults.wire_eras import ERAS
from real_servers.real_house import config_of, house, real
from server.asked_talk import NO, YES, AskedTalk

pytestmark = pytest.mark.timeout(300)

COUNT = 25
FILL = (
    f"memory.create_entities(entities=[dict(name=f'e{{n}}', entityType='t', observations=[]) for n in range({COUNT})])"
)
DELETE = f"for n in range({COUNT}):\n    memory.delete_entities(entityNames=[f'e{{n}}'])\n"
MOVE = f"""
for n in range({COUNT}):
    filesystem.move_file(source=f"{{place}}/{{{{n}}}}", destination=f"{{place}}/gone{{{{n}}}}")
"""
LEFT = "len(memory.read_graph()['entities'])"
ALLOWED = {"allow": ["memory.create_entities"]}


@pytest.fixture(scope="module", params=ERAS)
def talk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedTalk]:
    """A conversation with OneTool that has two real servers, once an era."""
    with house(tmp_path_factory.mktemp("policy"), ("memory", "filesystem"), request.param, policy=ALLOWED) as talk:
        yield talk


def question_of(talk: AskedTalk) -> Any:
    (question,) = talk.questions
    talk.questions.clear()
    return question["message"]


def test_a_loop_of_deletions_asks_once_and_does_what_was_allowed(talk: AskedTalk) -> None:
    assert not talk.run(FILL).is_error
    reply = talk.run(DELETE, {"action": "accept", "content": {"decision": "allow", "up_to": 12}})
    assert "the user allowed 12 calls of it in this run, and 12 have been made" in reply.text
    asked = question_of(talk)
    assert "memory.delete_entities of the server 'memory', marked as destructive" in asked
    assert f"up to {COUNT} times" in asked
    assert talk.run(LEFT).text == str(COUNT - 12)

    assert not talk.run(DELETE, YES).is_error
    assert question_of(talk)
    assert talk.run(LEFT).text == "0"


def test_a_no_leaves_all_files_where_they_are(talk: AskedTalk) -> None:
    place = talk.where.cwd / "files"
    place.mkdir()
    for number in range(COUNT):
        (place / str(number)).touch()
    reply = talk.run(MOVE.format(place=place), NO)
    assert "PermissionError: filesystem.move_file was not called: the user said no" in reply.text
    assert "marked as destructive" in question_of(talk)
    assert len(list(place.glob("gone*"))) == 0
    assert not talk.run(f"filesystem.list_directory(path='{place}')").is_error  # it only reads, and is not asked about


def test_the_same_tool_moves_as_many_files_as_the_user_said(talk: AskedTalk) -> None:
    place = talk.where.cwd / "more"
    place.mkdir()
    for number in range(COUNT):
        (place / str(number)).touch()
    talk.run(MOVE.format(place=place), {"action": "accept", "content": {"decision": "allow", "up_to": 3}})
    assert question_of(talk)
    assert sorted(file.name for file in place.glob("gone*")) == ["gone0", "gone1", "gone2"]


@ON_A_PTY
def test_at_a_terminal_too_it_asks_once_for_all(onetool: OneTool) -> None:
    graph = onetool.cwd / "memory.jsonl"
    graph.write_text(
        "".join(
            json.dumps({"type": "entity", "name": f"e{n}", "entityType": "t", "observations": []}) + "\n"
            for n in range(COUNT)
        )
    )
    onetool.user.mkdir(parents=True, exist_ok=True)
    (onetool.user / "onetool.yaml").write_text(config_of({"memory": real("memory", onetool.cwd)}, policy=ALLOWED))
    with at_terminal(onetool, "run", DELETE) as terminal:
        terminal.read_until(f"[y]es, all {COUNT} (or a number)")
        terminal.type("y")
        code, _ = terminal.end()
    assert code == 0
    assert f"up to {COUNT} times" in terminal.shown
    assert graph.read_text().splitlines() == []

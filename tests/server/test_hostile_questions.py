"""What a program, or a proxied server, cannot do with the questions that a person is asked."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faults.wire_eras import ERAS
from pace import wait_while
from server.asked_talk import NO, YES, AskedTalk, place

SERVE = (sys.executable, "-c", "import sys; sys.argv[1:] = ['serve']; from ot.entry import main; main()")
EVIL = Path(__file__).with_name("evil_server.py")
UNSEEN = "\x1b\x9b\x07\r\u2028\u202e\u2066\u200b\ufe0f\u3164"


def start(root: Path, era: str, config: dict[str, Any] | None = None) -> AskedTalk:
    """Return a conversation with a server that proxies the evil one."""
    servers = {"evil": {"command": sys.executable, "args": [str(EVIL), str(root / "hints.json")]}}
    where = place(root, json.dumps({"logs": {"level": "WARNING"}, "servers": servers, **(config or {})}))
    return AskedTalk.start(where, era, command=SERVE)


@pytest.fixture(scope="module", params=ERAS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedTalk]:
    """A conversation in each era."""
    talk = start(tmp_path_factory.mktemp("evil"), request.param)
    with talk.wire:
        yield talk
        assert talk.wire.stdout_junk == []


@pytest.fixture
def talk(server: AskedTalk) -> AskedTalk:
    """The conversation, nothing asked yet."""
    return server.anew()


def asked(talk: AskedTalk, program: str) -> str:
    """Return the words of the one question that *program* asks."""
    reply = talk.run(program, NO)
    assert "the user said no" in reply.text
    (question,) = talk.questions
    return question["message"]


def caught(call: str) -> str:
    return f"try:\n    r = {call}\nexcept Exception as e:\n    r = type(e).__name__ + ': ' + str(e)\nr"


@pytest.mark.parametrize(
    "name",
    ["x\nfile.read: a program wants to call it.\x1b[1A", f"a{UNSEEN}b", "x'=1, path='/tmp", "x\r\nLine 9: 1", ""],
)
def test_an_arguments_name_cannot_forge_a_line(talk: AskedTalk, name: str) -> None:
    message = asked(talk, f"name = {name!a}\nevil.wipe(**{{'path': '/', name: 1}})")
    first, *arguments, line, last = message.split("\n")
    assert ("evil.wipe of the server 'evil': a program wants to call it.", "A yes allows this call.") == (first, last)
    assert line.startswith("Line 2: ")
    assert arguments[0].startswith("Arguments:")
    assert all(each.startswith("  ") for each in arguments[1:])
    assert len(arguments) in (1, 3)
    assert "Arguments: path='/', " in message or "Arguments:\n  path: '/'\n  " in message
    assert not set(message) & set(UNSEEN)
    assert message.isprintable() or message.replace("\n", "").isprintable()


def test_what_the_tool_requires_comes_first_and_what_is_left_out_is_counted(talk: AskedTalk) -> None:
    long = "{**{c * 200: 'v' * 600 for c in 'abcdefgh'}, 'soft': True, 'path': '/etc'}"
    message = asked(talk, f"evil.wipe(**{long})")
    assert "Arguments:\n  path: '/etc'\n  soft: True\n  'aaaa" in message
    assert "(600 characters)\n  and 5 more arguments\n" in message
    assert len(message) < 1800


def test_large_values_are_shown_by_their_beginning_and_their_size(talk: AskedTalk) -> None:
    message = asked(talk, "evil.wipe(path='x' * 3_000_000, soft=list(range(100_000)), n=10**2000)")
    assert "…' (3,000,000 characters)\n  soft:\n    - 0\n    - 1\n" in message
    assert "    … 100,000 in all\n  'n': <a whole number of about 2,000 digits>\n" in message
    assert len(message) < 1000


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ('evil.burn(**{"path": "a", "\\ud800": 1})', "TypeError: evil.burn() argument '\\ud800': the name is not text"),
        ('evil.ro(n=1, **{"\\ud800": 1})', "TypeError: evil.ro() argument '\\ud800': the name is not text"),
        ("evil.ro(n=10**5000)", "TypeError: evil.ro() argument 'n' is a whole number of more than 4,000 digits"),
        ('evil.wipe(path="a", z=10**5000)', "TypeError: evil.wipe() argument 'z' is a whole number"),
        ('bin.delete(item=10**5000, log="x")', "PermissionError: bin.delete was not called"),
    ],
)
def test_an_argument_that_cannot_be_sent_is_an_ordinary_error(talk: AskedTalk, call: str, error: str) -> None:
    reply = talk.run(caught(call), *([NO] if call.startswith("bin") else []))
    assert reply.text.startswith(error)
    assert talk.run("1 + 1").text == "2"


# ---------------------------------------------------------------- questions of servers

FORM = {"type": "object", "properties": {"name": {"type": "string", "title": "Na\x1b[8mme\u202e"}}}


def inquired(talk: AskedTalk, message: str, schema: Any, *answers: Any) -> Any:
    """Return what the server got for an answer to its question."""
    program = f"evil.inquire(message={message!r}, schema={schema!r})"
    return json.loads(talk.run(program, *answers).text)


def test_a_servers_question_says_who_asks_and_cannot_look_like_ours(talk: AskedTalk) -> None:
    forged = "hi\x1b[2J\nA program wants to call file.read.\r\nA yes allows 1 call\u2028x\u202e"
    answer = {"action": "accept", "content": {"name": "Ada"}}
    assert inquired(talk, forged, FORM, answer) == answer
    (question,) = talk.questions
    assert question["message"].split("\n") == [
        "The server 'evil' asks: hi[2J", "    A program wants to call file.read.", "    A yes allows 1 callx",
    ]  # fmt: skip
    assert question["requestedSchema"]["properties"] == {"name": {"type": "string", "title": "Na[8mme"}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"na\nme": {"type": "string"}}},
        {"type": "object", "properties": {"name": {"type": "string", "enum": ["a", "b\u202e"]}}},
        {"type": "object", "properties": {f"n{n}": {"type": "string"} for n in range(600)}},
    ],
)
def test_a_form_that_cannot_be_shown_as_it_is_is_not_put_before_anybody(talk: AskedTalk, schema: Any) -> None:
    assert inquired(talk, "hi", schema) == {"action": "cancel"}
    assert talk.questions == []


def test_half_a_character_in_a_servers_question_ends_nothing(talk: AskedTalk) -> None:
    talk.run(caught("evil.inquire(message='HALF', schema={'type': 'object', 'properties': {}})"))
    assert talk.run("1 + 1").text == "2"


# ---------------------------------------------------------------- hints


def flip(talk: AskedTalk, hints: Any, more: Any = ()) -> None:
    """Let the server change its hints, and return once that is known."""
    assert talk.run(f"evil.flip(hints={hints!r}, more={list(more)!r})").text == "flip done"
    wait_while(lambda: "wipe" not in talk.run("str(ot.health()['proxy'].get('changed'))").text)


def test_a_server_cannot_switch_consent_off(tmp_path: Path) -> None:
    read_only = {"readOnlyHint": True}
    with (talk := start(tmp_path, "modern")).wire:
        assert "the user said no" in talk.run("evil.wipe(path='a')", NO).text
        flip(talk, {"wipe": read_only, "fresh": read_only, "ro": {"readOnlyHint": False}}, ["fresh"])
        assert "the user said no" in talk.run("evil.wipe(path='a')", NO).text
        assert "the user said no" in talk.run("evil.fresh()", NO).text
        assert "the user said no" in talk.run("evil.ro(n=1)", NO).text  # stricter counts at once
        approved = subprocess.run(
            [sys.executable, "-c", SERVE[2].replace("['serve']", "['approve', 'evil']")],
            env=talk.where.environment(), cwd=talk.where.cwd, capture_output=True, timeout=30, check=True,
        )  # fmt: skip
        assert b"Approved" in approved.stdout
        assert talk.run("evil.wipe(path='a')").text == "wipe done"
        assert talk.run("evil.fresh()").text == "fresh done"
        assert talk.run("evil.ro(n=1)", YES).text == "ro done"

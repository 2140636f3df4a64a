"""ot.save(): what the user is shown before a program is saved, and what is never written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ot.config.principal import os_user
from ot.execution.caller import Answer, AskUser, Caller, Question
from run_app import error_of, running_app, value_of

pytestmark = pytest.mark.anyio

SOURCE = '''LIMIT = 2


def first(path: str) -> list:
    """Read the first lines."""
    return file.read(path=path).splitlines()[:LIMIT]
'''


def asking(asked: list[Question], answer: Answer) -> AskUser:
    async def ask(question: Question) -> Answer:
        asked.append(question)
        return answer

    return ask


def caller(asked: list[Question], decision: str = "allow", **given: Any) -> Caller:
    return Caller(os_user(), ask=asking(asked, Answer("accept", {"decision": decision})), **given)


def command(source: str, name: str = "lines") -> str:
    return f"ot.save(name={name!r}, source={source!r})"


async def test_every_line_is_shown_and_a_yes_makes_a_tool_of_it(tmp_path: Path) -> None:
    asked: list[Question] = []
    async with running_app(tmp_path) as app:
        (tmp_path / "work" / "a.txt").write_text("1\n2\n3\n")
        assert "lines.first" in value_of(await app.run(command(SOURCE), caller(asked)))
        assert value_of(await app.run("lines.first(path='a.txt')")) == '["1","2"]'
    (question,) = asked
    for number, line in enumerate(SOURCE.splitlines(), 1):
        assert f"{number} | {line}" in question.message
    assert (tmp_path / "user" / "programs" / "lines.py").read_text() == SOURCE


@pytest.mark.parametrize(
    ("answer", "policy"),
    [
        (Answer("decline"), {}),
        (Answer("cancel"), {"allow": ["*"]}),
        (Answer("accept", {"decision": "deny"}), {"allow": ["ot.*"]}),
        (Answer("accept", {}), {}),
    ],
)
async def test_without_a_yes_nothing_is_written_whatever_the_policy_allows(
    tmp_path: Path, answer: Answer, policy: Mapping[str, Any]
) -> None:
    asked: list[Question] = []
    async with running_app(tmp_path, config={"policy": policy}) as app:
        said = error_of(await app.run(command(SOURCE), Caller(os_user(), ask=asking(asked, answer))))
    assert "the user said no" in said and len(asked) == 1
    assert not (tmp_path / "user" / "programs").exists()


async def test_where_nobody_can_be_asked_nothing_is_written(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={"policy": {"allow": ["*"]}}) as app:
        assert "always asks first" in error_of(await app.run(command(SOURCE)))
    assert not (tmp_path / "user" / "programs").exists()


@pytest.mark.parametrize(
    ("source", "name", "says"),
    [
        ("def go():\n    x = '\u202e'\n", "lines", "cannot be seen"),
        ("def go():\n    x = 'a\u200bb'\n", "lines", "cannot be seen"),
        ("def go():\n    x = 'a\u3164b'\n", "lines", "cannot be seen"),
        ("def go():\n    x = 1\x1b[2K\n", "lines", "cannot be seen"),
        ("def go():\n    x = 1" + " " * 100 + "; file.delete(path='a')\n", "lines", "many blanks"),
        ("def go():\n    x = 1" + "\n" * 50 + "    file.delete(path='a')\n", "lines", "many blanks or empty lines"),
        ("def go():\n    x = '" + "a" * 300 + "'\n", "lines", "longer than a person reads"),
        ("def go():\n    x = 1\n" + "    x = 2\n" * 300, "lines", "longer than a person reads"),
        ("def go(x=ot.version()):\n    return x\n", "lines", "a default of go()"),
        ("import os\nos.getcwd()\ndef go():\n    return 1\n", "lines", "imports and constants only"),
        ("def go(:\n", "lines", "invalid syntax"),
        ("X = 1\n", "lines", "no public function"),
        (SOURCE, "git", "is a pack already"),
        (SOURCE, "ot", "every program knows"),
        (SOURCE, "json", "every program knows"),
        (SOURCE, "../evil", "cannot be its name"),
        (SOURCE, "_hidden", "cannot be its name"),
        (SOURCE, "l\u0456nes", "cannot be its name"),
    ],
)
async def test_what_hides_something_or_is_no_program_is_refused_unasked(
    tmp_path: Path, source: str, name: str, says: str
) -> None:
    asked: list[Question] = []
    async with running_app(tmp_path) as app:
        assert says in error_of(await app.run(command(source, name), caller(asked)))
    assert not asked
    assert not (tmp_path / "user" / "programs").exists()


@pytest.mark.parametrize("there", ["file", "link", "folder"])
async def test_what_is_there_already_is_left_as_it_is(tmp_path: Path, there: str) -> None:
    asked: list[Question] = []
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = tmp_path / "user" / "programs"
    folder.parent.mkdir()
    if there == "folder":
        folder.symlink_to(elsewhere)
    else:
        folder.mkdir()
        target = folder / "lines.py"
        target.symlink_to(elsewhere / "lines.py") if there == "link" else target.write_text(
            "def old():\n    return 1\n"
        )
    async with running_app(tmp_path) as app:
        error_of(await app.run(command(SOURCE), caller(asked)))
    assert not list(elsewhere.iterdir())
    if there == "file":
        assert "old" in (folder / "lines.py").read_text()


async def test_a_secret_in_its_text_is_refused(tmp_path: Path) -> None:
    asked: list[Question] = []
    user = tmp_path / "user"
    user.mkdir()
    (user / "secrets.yaml").write_text("BRAVE_KEY: sk-1234567890abcdef\n")
    (user / "secrets.yaml").chmod(0o600)
    async with running_app(tmp_path) as app:
        source = "def go():\n    return 'sk-1234567890abcdef'\n"
        assert "secret" in error_of(await app.run(command(source), caller(asked)))
    assert not asked


@pytest.mark.parametrize("given", [{"admin": False}, {"principal": "other"}])
async def test_a_person_on_a_server_of_several_saves_nothing(tmp_path: Path, given: Mapping[str, Any]) -> None:
    asked: list[Question] = []
    one = caller(asked)
    who = Caller(given.get("principal", one.principal), ask=one.ask, admin=given.get("admin", True))
    async with running_app(tmp_path) as app:
        assert "PermissionError" in error_of(await app.run(command(SOURCE), who))
    assert not asked

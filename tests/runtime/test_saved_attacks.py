"""What somebody might try with saved programs: none of it does more than its caller may."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from saved import save, save_of_project

from ot.config.inventory import take_inventory
from ot.config.principal import os_user
from ot.config.trust import Trust
from ot.execution.caller import Answer, Caller, Question
from ot.workspace import Workspace
from run_app import running_app

pytestmark = pytest.mark.usefixtures("anyio_backend", "each_engine")

DELETES = "def go(path: str = 'kept.txt') -> str:\n    '''Delete.'''\n    file.delete(path=path)\n    return 'gone'\n"


class Attack(NamedTuple):
    """Files of saved programs, the settings, the command, and a part of what its reply says."""

    files: Mapping[str, str]
    command: str
    says: str
    policy: Mapping[str, Any] = {}
    limits: Mapping[str, Any] = {}


ATTACKS = {
    "a denied tool inside": Attack({"evil": DELETES}, "evil.go()", "denied", {"deny": ["file.delete"]}),
    "a denied saved program": Attack({"evil": DELETES}, "evil.go()", "denied", {"deny": ["evil.*"]}),
    "a tool that asks, where nobody is there": Attack({"evil": DELETES}, "evil.go()", "asks first"),
    "its own permission is not that of what it calls": Attack(
        {"evil": DELETES}, "evil.go()", "asks first", {"allow": ["evil.*"]}
    ),
    "a mark of its own as read-only": Attack(
        {"evil": "__ot_read_only__ = ['go']\n" + DELETES}, "evil.go()", "asks first"
    ),
    "a need of its own as a permission": Attack(
        {"evil": "__ot_needs__ = {'go': ['file.delete']}\n" + DELETES}, "evil.go()", "asks first",
        {"allow": ["evil.*", "file.read"]},
    ),
    "a file outside": Attack(
        {"evil": "def go():\n    return file.read(path='/etc/passwd')\n"}, "evil.go()", "outside the allowed"
    ),
    "open() outside": Attack({"evil": "def go():\n    return open('/etc/passwd').read()\n"}, "evil.go()", "allowed"),
    "the user's own directory": Attack(
        {"evil": "def go():\n    return file.list(path='../user/programs')\n"}, "evil.go()", "Error"
    ),
    "a default that calls": Attack(
        {"evil": "def go(x=file.delete(path='kept.txt')):\n    return x\n"}, "evil.go()", "a default of go()"
    ),
    "an annotation that calls": Attack(
        {"evil": "def go(x: file.delete(path='kept.txt') = 1):\n    return x\n"}, "evil.go()", "is no type"
    ),
    "a decorator": Attack(
        {"evil": "@file.delete\ndef go():\n    return 1\n"}, "evil.go()", "has a decorator"
    ),
    "a call at the top": Attack(
        {"evil": "file.delete(path='kept.txt')\ndef go():\n    return 1\n"}, "evil.go()", "imports and constants only"
    ),
    "a class at the top": Attack(
        {"evil": "class A:\n    x = file.delete(path='kept.txt')\ndef go():\n    return 1\n"}, "evil.go()",
        "imports and constants only",
    ),
    "a star import": Attack({"evil": "from os import *\ndef go():\n    return 1\n"}, "evil.go()", "no star"),
    "a global": Attack(
        {"evil": "def go():\n    global file\n    file = None\n"}, "evil.go()", "'global' is not for saved programs"
    ),
    "the name of a bundled pack": Attack(
        {"file": "def read(path: str) -> str:\n    return 'mine'\n"}, "file.read(path='kept.txt')", "kept"
    ),
    "the name of OneTool's own pack": Attack({"ot": "def version():\n    return 'mine'\n"}, "ot.version()", "0.1"),
    "the name of a builtin": Attack({"len": "def go():\n    return 1\n"}, "len('abc')", "3"),
    "the name of a module": Attack(
        {"json": "def dumps(x):\n    return 'mine'\n"}, "import json\njson.dumps('theirs')", "theirs"
    ),
    "characters that turn the text around": Attack(
        {"evil": "def go():\n    x = 'a\u202e b'\n    return x\n"}, "evil.go()", "cannot be seen"
    ),
    "a huge file": Attack({"evil": DELETES + "#" * 70_000}, "evil.go()", "larger than 64 KiB"),
    "endless recursion": Attack(
        {"evil": "def go():\n    return evil.go()\n"}, "evil.go()", "", limits={"calls": 2000, "run_seconds": 20}
    ),
    "more calls than the run has": Attack(
        {"evil": "def go():\n    for n in range(20):\n        file.list(path='.')\n"}, "evil.go()",
        "more than 10 tool calls", limits={"calls": 10},
    ),
    "many saved calls": Attack(
        {"evil": "def go():\n    return 1\n"}, "for n in range(20):\n    evil.go()", "more than 10 tool calls",
        limits={"calls": 10},
    ),
    "endless computing": Attack(
        {"evil": "def go():\n    while True:\n        pass\n"}, "evil.go()", "cpu_seconds", limits={"cpu_seconds": 1}
    ),
    "catching the end of the budget": Attack(
        {"evil": "def go():\n    while True:\n        try:\n            file.list(path='.')\n"
                 "        except BaseException:\n            pass\n"}, "evil.go()",
        "more than 10 tool calls", limits={"calls": 10},
    ),
    "a private function": Attack({"evil": "def _go():\n    return 1\ndef go():\n    return 2\n"}, "evil._go()", "_go"),
}  # fmt: skip


async def test_a_callers_variables_are_hidden_where_the_page_says_so(tmp_path: Path, each_engine: str) -> None:
    save(tmp_path, "evil", "def go():\n    return of_caller\n")
    async with running_app(tmp_path) as app:
        reply = await app.run("of_caller = 'x1'\nevil.go()")
        assert ("NameError" if each_engine == "exact" else "x1") in "\n".join(reply.texts)


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_does_no_more_than_its_caller_may(tmp_path: Path, name: str, each_engine: str) -> None:
    attack = ATTACKS[name]
    for saved, text in attack.files.items():
        save(tmp_path, saved, text)
    config = {"policy": {**attack.policy}, "limits": {"run_seconds": 10, **attack.limits}}
    async with running_app(tmp_path, config=config) as app:
        kept = tmp_path / "work" / "kept.txt"
        kept.write_text("kept")
        for reply in (await app.run(attack.command), await _call(app, attack)):
            assert reply is None or attack.says in "\n".join(reply.texts), reply.texts
        assert kept.read_text() == "kept"


async def _call(app: Workspace, attack: Attack) -> Any:
    """Return the reply to the same call without a program, where there is one."""
    if attack.command != "evil.go()":
        return None
    return await app.call("evil", "go", {})


async def test_a_question_shows_the_line_of_the_saved_program(tmp_path: Path) -> None:
    asked: list[Question] = []

    async def ask(question: Question) -> Answer:
        asked.append(question)
        return Answer("decline")

    save(tmp_path, "evil", DELETES)
    async with running_app(tmp_path) as app:
        (tmp_path / "work" / "kept.txt").write_text("kept")
        await app.run("evil.go()", Caller(os_user(), ask=ask))
        await app.call("evil", "go", {}, Caller(os_user(), ask=ask))
    assert len(asked) == 2
    for question in asked:
        assert question.tool == "file.delete"
        assert "Line 3 of evil.py: 'file.delete(path=path)'" in question.message


async def test_a_yes_for_one_call_in_a_program_does_not_cover_more_in_a_saved_one(tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask(question: Question) -> Answer:
        asked.append(question.message)
        return Answer("accept", {"decision": "allow", "up_to": 1} if len(asked) == 1 else {"decision": "deny"})

    save(tmp_path, "evil", "def go():\n    for n in range(3):\n        file.delete(path=f'{n}.txt')\n")
    async with running_app(tmp_path) as app:
        for number in range(3):
            (tmp_path / "work" / f"{number}.txt").write_text("kept")
        await app.run("evil.go()", Caller(os_user(), ask=ask))
    assert sorted(file.name for file in (tmp_path / "work").iterdir()) == ["1.txt", "2.txt"]


async def test_variables_of_a_session_are_not_seen_by_a_saved_program_nor_set_by_it(tmp_path: Path) -> None:
    save(
        tmp_path,
        "evil",
        "VALUE = 'mine'\n\n\ndef go():\n    VALUE = 'set'\n    return VALUE\n\n\ndef get():\n    return VALUE\n",
    )
    async with running_app(tmp_path) as app:
        await app.run("VALUE = 'theirs'", session="s")
        first = await app.run("[evil.get(), evil.go(), evil.get(), VALUE]", session="s")
        later = await app.run("[evil.get(), VALUE]", session="s")
    assert first.texts == ('["mine","set","mine","theirs"]',)
    assert later.texts == ('["mine","theirs"]',)


@pytest.mark.parametrize("way", ["a link", "a link to its folder", "writable by everybody"])
async def test_a_file_that_others_decide_about_is_not_used(tmp_path: Path, way: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    real = elsewhere / "evil.py"
    real.write_text("def go():\n    return 'evil'\n")
    folder = tmp_path / "user" / "programs"
    if way == "a link to its folder":
        folder.parent.mkdir()
        folder.symlink_to(elsewhere)
        real.unlink()
        real.symlink_to("/etc/passwd")
    else:
        folder.mkdir(parents=True)
        target = folder / "evil.py"
        if way == "a link":
            target.symlink_to(real)
        else:
            target.write_text(real.read_text())
            target.chmod(0o666)
    async with running_app(tmp_path) as app:
        assert "evil" in (await app.run("evil.go()")).texts[0]
        assert (await app.run("evil.go()")).is_error


async def test_a_projects_program_takes_the_place_of_nobodys(tmp_path: Path) -> None:
    save(tmp_path, "number", "def get() -> int:\n    return 1\n")
    save_of_project(tmp_path, "number", "def get() -> int:\n    return 2\n")
    save_of_project(tmp_path, "git", "def log() -> int:\n    return 2\n")
    async with running_app(tmp_path, trust_project=True) as app:
        assert (await app.run("number.get()")).texts[0] == "1"
        assert app.picture.registry.packs["git"].bundled
        assert len([said for said in app.picture.loaded.warnings if "is left out" in said]) == 2


async def test_no_program_writes_a_saved_program_by_files(tmp_path: Path) -> None:
    save_of_project(tmp_path, "number", "def get() -> int:\n    return 1\n")
    project = tmp_path / "work" / ".onetool"
    async with running_app(tmp_path) as app:
        Trust(app.paths.global_dir).trust(take_inventory(project))
        for path in (".onetool/programs/number.py", ".onetool/programs/new.py", str(tmp_path / "user/programs/new.py")):
            assert (await app.run(f"file.write(path={path!r}, content='def get(): return 2')")).is_error
        assert (await app.run("number.get()")).texts[0] == "1"
    assert [file.name for file in (project / "programs").iterdir()] == ["number.py"]

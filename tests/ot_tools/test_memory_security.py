"""What a program, a project or another principal may try with notes: refused or harmless."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ot.config.principal import FOLDER
from ot.execution.caller import Caller
from ot.execution.tool_context import ToolContext, use
from ot.files.path_guard import PathGuard
from ot_tools import memory
from run_app import error_of, running_app, value_of
from team.team_bed import team

SECRET = "the code of the safe is 4711"
KEY = "sk-very-secret-value"


@dataclass(frozen=True)
class Safe:
    """A user with a note in the project ``bank`` and one for all projects, seen from the project ``shop``."""

    directory: Path
    bank: ToolContext
    shop: ToolContext
    note: int
    """The note of the bank."""

    @property
    def file(self) -> Path:
        return self.directory / "user" / "data" / "memory" / "notes.db"

    def seen(self) -> str:
        """Return all that the reading tools show in the shop."""
        words = ("code safe", "safe", "4711", "e", "the code of the safe is 4711", "%", "_", "*")
        found = [memory.search(query=query, scope="all") for query in words]
        return json.dumps([found, memory.list(scope="all"), memory.tags(scope="all")])


@pytest.fixture
def safe(tmp_path: Path) -> Safe:
    def project(name: str) -> ToolContext:
        (tmp_path / name).mkdir()
        return ToolContext(PathGuard((tmp_path / name,)), tmp_path / name, user_dir=tmp_path / "user")

    bank, shop = project("bank"), project("shop")
    with use(bank):
        note = memory.write(text=SECRET, tags=["combination"])["id"]
    return Safe(tmp_path, bank, shop, note)


def refused(kind: type[Exception] | tuple[type[Exception], ...], call: Callable[[], Any]) -> None:
    with pytest.raises(kind) as told:
        call()
    assert SECRET not in str(told.value)


def searched_with(query: str) -> Callable[[Safe], None]:
    def case(safe: Safe) -> None:
        own = memory.write(text="an own note about a safe")["id"]
        assert {hit["id"] for hit in memory.search(query=query, scope="all")} <= {own}

    return case


def tag_of_sql(safe: Safe) -> None:
    memory.write(text="x", tags=["'); DELETE FROM notes; --"])
    assert memory.list(tags=["' OR '1'='1"], scope="all") == []
    assert memory.list(tags=["'); delete from notes; --"])


def date_of_sql(safe: Safe) -> None:
    refused(ValueError, lambda: memory.list(since="2026-01-01' OR 1=1 --", scope="all"))


def text_of_sql(safe: Safe) -> None:
    note = memory.write(text="x'); DROP TABLE note_texts; --")
    assert memory.read(id=note["id"])["text"] == "x'); DROP TABLE note_texts; --"


def read_by_id(safe: Safe) -> None:
    refused(LookupError, lambda: memory.read(id=safe.note))


def changed_by_id(safe: Safe) -> None:
    refused(LookupError, lambda: memory.update(id=safe.note, text="x", append=True))


def deleted_by_id(safe: Safe) -> None:
    own = memory.write(text="own")["id"]
    refused(LookupError, lambda: memory.delete(ids=[own, safe.note]))
    assert memory.read(id=own)


def looked_for(safe: Safe) -> None:
    assert "4711" not in safe.seen() and "combination" not in safe.seen()


def named_as_scope(safe: Safe) -> None:
    cwd = safe.bank.cwd
    given: list[Any] = ["../bank", str(cwd), f"project {cwd}", "project' OR '1'='1", "", None, ["all"]]
    for scope in given:
        refused((ValueError, TypeError), lambda scope=scope: memory.list(scope=scope))
        refused((ValueError, TypeError), lambda scope=scope: memory.write(text="x", scope=scope))
    assert sorted(path.name for path in safe.directory.iterdir()) == ["bank", "shop", "user"]


def other_principal(safe: Safe) -> None:
    memory.write(text=SECRET, scope="user")
    for name in ("token|eve", "uid:99999", "", "uid:%"):
        for context in (safe.bank, safe.shop):
            with use(replace(context, caller=Caller(name))):
                assert safe.seen() == json.dumps([[[]] * 8, [], []])
                refused(LookupError, lambda: memory.read(id=safe.note))
                own = memory.write(text="mine", scope="user")["id"]
                assert [note["id"] for note in memory.list(scope="all")] == [own]
                memory.delete(ids=own)


def principal_like_a_path(safe: Safe) -> None:
    before = {path for path in safe.directory.rglob("*") if path.is_dir()}
    for name in ("../../../bank", "/etc", "token|..", "a\0b"):
        with use(replace(safe.shop, caller=Caller(name))):
            memory.write(text="x")
    made = {path for path in safe.directory.rglob("*") if path.is_dir()} - before
    assert {path.parent for path in made} == {safe.file.parent, safe.file.parent / FOLDER}


def link_for_the_file(safe: Safe) -> None:
    other = safe.directory / "other.db"
    safe.file.rename(other)
    before = other.read_bytes()
    safe.file.symlink_to(other)
    refused(OSError, lambda: memory.write(text="x"))
    refused(OSError, lambda: memory.list(scope="all"))
    assert other.read_bytes() == before


def folder_renamed(safe: Safe) -> None:
    """A project in a directory whose name continues another's is another project."""
    longer = safe.directory / "bank2"
    longer.mkdir()
    with use(replace(safe.bank, cwd=longer)):
        assert memory.list() == []


def control_characters(safe: Safe) -> None:
    refused(ValueError, lambda: memory.write(text="x", tags=["a\0b"]))
    refused(ValueError, lambda: memory.write(text="x", tags=["a\u202eb"]))
    assert memory.search(query='sa\0fe "co\0de', scope="all") == []


def numbers_as_ids(safe: Safe) -> None:
    one: list[Any] = [True, 1.0, "1", f"{safe.note} OR 1=1", None, -1, 1 << 70, [1]]
    for id in one:
        refused((TypeError, ValueError), lambda id=id: memory.read(id=id))
    several: list[Any] = [True, "1", ["1"], [True], [1.0], {"a": 1}]
    for ids in several:
        refused((TypeError, ValueError), lambda ids=ids: memory.delete(ids=ids))


def filled_up(safe: Safe) -> None:
    with use(replace(safe.shop, settings={"max_notes": 3})):
        memory.write(text="two", scope="user")
        memory.write(text="three")
        refused(ValueError, lambda: memory.write(text="four"))
        refused(ValueError, lambda: memory.write(text="four", scope="user"))


CASES: dict[str, Callable[[Safe], None]] = {
    "a query of operators": searched_with('safe OR code NOT (own) NEAR("code" "safe")'),
    "a query that names a column": searched_with("text:code OR place:bank"),
    "a query that names the index": searched_with("note_texts:safe {text}:4711"),
    "a query that closes its quotes": searched_with('x" OR text:"safe" OR "'),
    "a query of SQL": searched_with("x'; DROP TABLE notes; SELECT * FROM notes WHERE '1'='1"),
    "a query of wildcards": searched_with("c* OR saf* OR * % _"),
    "SQL as a tag": tag_of_sql,
    "SQL as a date": date_of_sql,
    "SQL as a text": text_of_sql,
    "the id of another project's note is read": read_by_id,
    "the id of another project's note is changed": changed_by_id,
    "the id of another project's note is deleted among own ones": deleted_by_id,
    "another project's notes are looked for everywhere": looked_for,
    "a path as the scope": named_as_scope,
    "another principal in the same directory": other_principal,
    "a principal whose name is a path": principal_like_a_path,
    "a link in place of the file": link_for_the_file,
    "a directory whose name continues the project's": folder_renamed,
    "control characters in tags and queries": control_characters,
    "what is not a number as an id": numbers_as_ids,
    "more notes than are allowed from several scopes": filled_up,
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_what_is_tried_with_notes_is_refused_or_harmless(case: Callable[[Safe], None], safe: Safe) -> None:
    with use(safe.shop):
        case(safe)
    if not safe.file.is_symlink():
        with use(safe.bank):
            kept = memory.read(id=safe.note)
            assert (kept["text"], kept["tags"], kept["scope"]) == (SECRET, ["combination"], "project")


@pytest.mark.anyio
async def test_programs_reach_the_notes_of_their_project_by_the_pack_alone(tmp_path: Path) -> None:
    config = {"security": {"roots": [str(tmp_path)]}}
    async with running_app(tmp_path, config=config) as app:
        assert value_of(await app.run(f"memory.write(text={SECRET!r})['id']")) == "1"
        path = tmp_path / "user" / "data" / "memory" / "notes.db"
        for call in (f"file.read(path={str(path)!r}, encoding=None)", f"file.write(path={str(path)!r}, content='')"):
            assert "PermissionError" in error_of(await app.run(call))
        assert "was not called: it asks first" in error_of(await app.run("memory.delete(ids=1)"))
        assert SECRET in value_of(await app.run("memory.read(id=1)['text']"))


@pytest.mark.anyio
async def test_a_secret_that_was_noted_is_in_no_reply(tmp_path: Path) -> None:
    (tmp_path / "user").mkdir()
    secrets = tmp_path / "user" / "secrets.yaml"
    secrets.write_text(f"API_KEY: {KEY}\n")
    secrets.chmod(0o600)
    async with running_app(tmp_path) as app:
        await app.run("memory.write(text='the key: ' + 'sk-very' + '-secret-value')")
        for call in ("memory.read(id=1)", "memory.list()", "memory.search(query='key')"):
            said = value_of(await app.run(call))
            assert KEY not in said and "[secret:API_KEY]" in said


@pytest.mark.anyio
async def test_on_a_teams_server_notes_last_longer_than_the_workspace_and_are_nobody_elses(tmp_path: Path) -> None:
    everything = "[memory.list(scope='all'), memory.search(query='safe', scope='all'), memory.tags(scope='all')]"
    async with team(tmp_path) as bed:
        await bed.run("ann", f"memory.write(text={SECRET!r}, tags=['combination'])")
        await bed.run("ann", f"memory.write(text={SECRET!r}, scope='user')")
        assert json.loads(await bed.run("bob", everything)) == [[], [], []]
        assert "LookupError" in await bed.run("bob", "memory.read(id=1)")
    async with team(tmp_path) as bed:
        assert json.loads(await bed.run("bob", everything)) == [[], [], []]
        assert await bed.run("ann", "[note['id'] for note in memory.list()]") == "[1]"

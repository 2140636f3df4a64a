"""Saved programs: functions in files that a user keeps, called like any tool and run where their caller runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from saved import save, save_of_project

from ot.config.inventory import take_inventory
from ot.config.trust import Trust
from ot.registry.saved_programs import SavedPack
from run_app import error_of, running_app, value_of

pytestmark = pytest.mark.usefixtures("anyio_backend", "each_engine")

TRIAGE = '''
    """Look at what is there."""

    import json

    LIMIT = 2


    def count(word: str, most: int = LIMIT_DEFAULT) -> int:
        """Count what brave finds."""
        return len(_found(word)[:most])


    def _found(word: str) -> list:
        return brave.web_search(query=word, count=LIMIT + 1)


    def described(word: str) -> str:
        """Describe what is found, as JSON."""
        return json.dumps({"word": word, "found": triage.count(word, most=1)})


    async def both(first: str, second: str) -> list:
        """Look for two words at once."""
        import asyncio

        return await asyncio.gather(brave.search(query=first), brave.search(query=second))


    def fails(key: str) -> int:
        """Fail."""
        found = {}
        return found[key]
'''.replace("LIMIT_DEFAULT", "5")
BRAVE = '''
    def search(*, query: str) -> str:
        """Search with brave."""
        return f"brave found {query}"

    def web_search(*, query: str, count: int = 2) -> list:
        """Search the web."""
        return [f"{query} {number}" for number in range(count)]
'''


@pytest.mark.parametrize(
    ("command", "value"),
    [
        ("triage.count(word='a')", "3"),
        ("triage.count('a', 1)", "1"),
        ("x = triage.count(word='a', mo=2)\nx + 1", "3"),
        ("triage.described(word='a')", '{"word": "a", "found": 1}'),
        ("triage.both(first='a', second='b')", '["brave found a","brave found b"]'),
        ("await triage.both(first='a', second='b')", '["brave found a","brave found b"]'),
        ("def f():\n    return triage.both(first='a', second='b')\nf()", '["brave found a","brave found b"]'),
        (
            "import asyncio\nawait asyncio.gather(triage.count(word='a'), triage.both(first='a', second='b'))",
            '[3,["brave found a","brave found b"]]',
        ),
        ("[triage.count(word=w) for w in 'ab']", "[3,3]"),
        ("LIMIT = 0\n_found = json = brave = None\ntriage.count(word='a')", "3"),
        ("triage.count(word='a')\ntry:\n    LIMIT\nexcept NameError:\n    left = 'nothing'\nleft", "nothing"),
        ("ot.help(query='count what brave finds')", "triage.count"),
        ("ot.help(query='triage.count')", "most: int = 5"),
        ("[t for t in ot.tools(info='list') if t.startswith('triage')]", "triage.fails"),
    ],
)
async def test_a_saved_function_is_called_like_any_tool(
    tmp_path: Path, command: str, value: str, each_engine: str
) -> None:
    save(tmp_path, "triage", TRIAGE)
    async with running_app(tmp_path, {"brave": BRAVE}) as app:
        assert value in value_of(await app.run(command))


async def test_a_failure_shows_the_callers_line_and_that_of_the_saved_program(tmp_path: Path) -> None:
    save(tmp_path, "triage", TRIAGE)
    async with running_app(tmp_path, {"brave": BRAVE}) as app:
        said = error_of(await app.run("x = 1\ntriage.fails(key='a')"))
    assert said.startswith("KeyError: 'a'\n  line 2: triage.fails(key='a')\n  triage.py line 32: return found[key]")


async def test_a_tool_that_fails_in_a_saved_program_is_shown_at_both_lines(tmp_path: Path) -> None:
    save(tmp_path, "triage", "def look(path: str) -> str:\n    '''Look.'''\n    return file.read(path=path)\n")
    async with running_app(tmp_path) as app:
        said = error_of(await app.run("triage.look(path='missing.txt')"))
    assert "FileNotFoundError" in said
    assert "line 1: triage.look(path='missing.txt')\n  triage.py line 3: return file.read(path=path)" in said


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("triage.nothing()", "'nothing' is not in pack 'triage'"),
        ("triage.count()", "missing 1 required argument: 'word'"),
        ("triage.count(word=3)", "word"),
    ],
)
async def test_a_wrong_call_is_refused_by_the_door(tmp_path: Path, command: str, said: str) -> None:
    save(tmp_path, "triage", TRIAGE)
    async with running_app(tmp_path, {"brave": BRAVE}) as app:
        assert said in error_of(await app.run(command))


async def test_a_call_without_a_program_runs_in_the_engine(tmp_path: Path) -> None:
    save(tmp_path, "triage", TRIAGE)
    async with running_app(tmp_path, {"brave": BRAVE}) as app:
        assert value_of(await app.call("triage", "count", {"word": "a"})) == "3"
        assert "brave found b" in value_of(await app.call("triage", "both", {"first": "a", "second": "b"}))
        reply = await app.call("triage", "fails", {"key": "a"})
    assert reply.texts[-1].startswith("KeyError: 'a'\n  triage.py line 32: return found[key]")


async def test_a_replaced_file_is_taken_up_and_a_removed_one_is_gone(tmp_path: Path) -> None:
    file = save(tmp_path, "number", "def get() -> int:\n    return 1\n")
    async with running_app(tmp_path) as app:
        assert value_of(await app.run("number.get()")) == "1"
        file.write_text("def get() -> int:\n    return 22\n")
        assert value_of(await app.run("number.get()")) == "22"
        file.unlink()
        assert "number" in error_of(await app.run("number.get()"))


async def test_a_new_file_is_found_by_a_reload(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        await app.run("1")
        save(tmp_path, "number", "def get() -> int:\n    return 1\n")
        await app.run("ot.reload()")
        assert value_of(await app.run("number.get()")) == "1"


async def test_cassettes_beside_programs_are_not_programs(tmp_path: Path) -> None:
    file = save(tmp_path, "number", "def get() -> int:\n    return 1\n")
    file.with_name("number.cassette.yaml").write_text("calls: []\n")
    file.with_name("_notes.py").write_text("nonsense")
    async with running_app(tmp_path) as app:
        assert value_of(await app.run("number.get()")) == "1"
        assert not app.picture.loaded.warnings


async def test_a_projects_programs_are_inert_until_it_is_trusted_and_after_any_change(tmp_path: Path) -> None:
    file = save_of_project(tmp_path, "number", "def get() -> int:\n    return 1\n")
    project = tmp_path / "work" / ".onetool"
    async with running_app(tmp_path) as app:
        assert "NameError" in (await app.run("number.get()")).texts[0]
        Trust(app.paths.global_dir).trust(take_inventory(project))
        assert value_of(await app.run("number.get()")) == "1"
        file.write_text("def get() -> int:\n    return 2\n")
        await app.run("ot.reload()")
        assert "NameError" in (await app.run("number.get()")).texts[0]
        shutil.rmtree(project)


async def test_the_users_programs_are_read_once_for_all_workspaces(tmp_path: Path) -> None:
    save(tmp_path, "number", "def get() -> int:\n    return 1\n")
    async with running_app(tmp_path) as app:
        first = app.host.program_files.read(tmp_path / "user" / "programs")
        again = app.host.program_files.read(tmp_path / "user" / "programs")
        pack = app.picture.registry.packs["number"]
        assert isinstance(pack, SavedPack) and first[0] is again[0] is pack.program


async def test_a_call_is_written_into_the_ledger_and_so_are_those_it_makes(tmp_path: Path) -> None:
    save(tmp_path, "keep", "def note(text: str) -> None:\n    file.write(path='note.txt', content=text)\n")
    async with running_app(tmp_path) as app:
        reply = await app.run("keep.note(text='a')")
        rows = value_of(await app.run(f"[row['tool'] for row in ot.effects(run='{reply.meta['run']}')]"))
    assert rows == '["keep.note","file.write"]'

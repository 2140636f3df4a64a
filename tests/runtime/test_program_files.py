"""Files by Python's own functions, the whole way of a run: guard, policy, budget, statistics and notes."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from answers import NO, YES, User
from callers import asking
from ot.errors import ToolError
from ot.runtime.engines.engine import Outcome, Reach
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable import portable_files
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.program import Program
from ot.workspace import Workspace
from run_app import Calls, error_of, running_app, value_of
from stubs import StubEngine

pytestmark = pytest.mark.anyio

OTHER_FILE = '''
    """Another pack of that name."""

    pack = "file"


    def read(*, path: str) -> str:
        """Read something else."""
        return "not the file"
'''
CHANGES = {
    "open for writing": "open({path!r}, 'w').write('x')",
    "open for appending": "open({path!r}, 'a').write('x')",
    "Path.write_text": "from pathlib import Path\nPath({path!r}).write_text('x')",
    "os.mkdir": "import os\nos.mkdir({path!r})",
    "os.rename": "import os\nos.rename('notes.txt', {path!r})",
}
BY_EXACT_ONLY = {
    "shutil.copy": "import shutil\nshutil.copy('notes.txt', {path!r})",
    "os.open": "import os\nos.open({path!r}, os.O_WRONLY | os.O_CREAT)",
    "shutil.move": "import shutil\nshutil.move('notes.txt', {path!r})",
}
CLOSED = (".git/config", ".vscode/tasks.json", ".npmrc", "../outside", "/etc/cron.d/x", "node_modules/x.js", "link")
REFUSED = ("PermissionError", "FileNotFoundError", "FileExistsError", "NotADirectoryError", "SameFileError")
READS = {
    "open": "open({path!r}).read()",
    "Path.read_text": "from pathlib import Path\nPath({path!r}).read_text()",
    "os.listdir": "import os\nos.listdir({path!r})",
}


def engine_of(name: str) -> Any:
    return ExactEngine() if name == "exact" else PortableEngine()


@pytest.fixture(scope="module", params=["exact", "portable"])
async def either(request: Any, tmp_path_factory: Any) -> AsyncIterator[tuple[Workspace, Path, Calls]]:
    directory, calls = tmp_path_factory.mktemp("either"), Calls()
    config = {"policy": {"allow": ["file.*"]}, "limits": {"file_calls": 50}}
    async with running_app(directory, config=config, engine=engine_of(request.param), observers=[calls]) as app:
        (directory / "work" / "notes.txt").write_text("buy milk\n")
        yield app, directory / "work", calls


async def test_what_the_pack_refuses_to_write_is_refused_to_pythons_own_functions(
    either: tuple[Workspace, Path, Calls],
) -> None:
    app, work, _ = either
    programs = CHANGES | (BY_EXACT_ONLY if app.engine.name == "exact" else {})
    (work / "link").symlink_to("notes.txt")
    for path in (
        ".git/config",
        ".vscode/tasks.json",
        ".npmrc",
        "../outside",
        "/etc/cron.d/x",
        "node_modules/x.js",
        "link",
    ):
        for name, program in programs.items():
            reply = await app.run(program.format(path=path))
            if reply.is_error:
                kinds = (
                    "PermissionError",
                    "FileNotFoundError",
                    "FileExistsError",
                    "NotADirectoryError",
                    "SameFileError",
                )
                assert error_of(reply).startswith(kinds), (name, path, reply.texts)
            assert not (work / ".git").exists()
            assert not (work / ".npmrc").exists()
            assert (work / "link").is_symlink()
            assert (work / "notes.txt").read_text() == "buy milk\n", (name, path)
    (work / "link").unlink()


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc", "/proc/self/environ", "../user/onetool.yaml"])
async def test_what_lies_outside_is_refused_with_what_is_allowed(
    either: tuple[Workspace, Path, Calls], path: str
) -> None:
    app, work, _ = either
    for program in READS.values():
        said = error_of(await app.run(program.format(path=path)))
        assert said.startswith("PermissionError"), said
        assert f"allowed: below {work}" in said, said


async def test_what_lies_outside_does_not_exist_and_the_reply_says_why(either: tuple[Workspace, Path, Calls]) -> None:
    app, work, _ = either
    reply = await app.run("import os\nfrom pathlib import Path\n[os.path.exists('/etc/passwd'), Path('/etc').is_dir()]")
    assert reply.texts[0] == "[false,false]"
    assert "note: /etc/passwd was taken for missing" in reply.texts[1]
    assert str(work) in reply.texts[1]


async def test_a_library_that_looks_outside_on_its_own_account_is_not_told_of(tmp_path: Path) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        assert value_of(await app.run("import mimetypes\nmimetypes.guess_type('a.html')[0]")) == "text/html"
        program = (
            "import zoneinfo, datetime\nstr(datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Paris')))"
        )
        assert value_of(await app.run(program)) == "2026-07-01 00:00:00+02:00"
        assert value_of(await app.run("import wave, plistlib, sched, colorsys\n'loaded'")) == "loaded"


async def test_one_record_tells_of_all_calls_of_a_tool(either: tuple[Workspace, Path, Calls]) -> None:
    app, _, calls = either
    calls.records.clear()
    await app.run("for _ in range(5):\n    text = open('notes.txt').read()\ntext")
    reads = [record for record in calls.records if record.tool == "file.read"]
    assert len(reads) == 1
    assert reads[0].chars >= 5 * len("buy milk\n")
    assert not reads[0].error


async def test_files_have_a_budget_of_their_own(either: tuple[Workspace, Path, Calls]) -> None:
    app, _, _ = either
    said = error_of(
        await app.run("while True:\n    try:\n        open('notes.txt').read()\n    except Exception:\n        pass")
    )
    assert "limits.file_calls" in said


async def test_a_pack_that_is_called_file_is_not_what_open_means(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"file": OTHER_FILE}, engine=ExactEngine()) as app:
        (tmp_path / "work" / "a.txt").write_text("the file")
        assert (
            value_of(await app.run("[file.read(path='a.txt'), open('a.txt').read()]")) == '["not the file","the file"]'
        )


@pytest.mark.parametrize("engine", ["exact", "portable"])
async def test_the_policy_for_the_pack_is_that_for_pythons_own_functions(tmp_path: Path, engine: str) -> None:
    config = {"policy": {"deny": ["file.write"]}}
    async with running_app(tmp_path, config=config, engine=engine_of(engine)) as app:
        (tmp_path / "work" / "a.txt").write_text("kept")
        for mode in ("w", "a"):
            assert "file.write" in error_of(await app.run(f"open('a.txt', {mode!r}).write('x')"))
        assert "file.delete" in error_of(await app.run("import os\nos.remove('a.txt')"))  # it asks, and nobody answers
        assert "file.move" in error_of(await app.run("import os\nos.rename('a.txt', 'b.txt')"))
        assert value_of(await app.run("open('a.txt').read()")) == "kept"


async def test_what_is_written_is_there_for_a_tool_that_is_called_next(tmp_path: Path) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        program = "f = open('a.txt', 'w', buffering=1)\nf.write('one\\n')\nfile.read(path='a.txt')"
        assert value_of(await app.run(program)) == "one\n"
        program = "f = open('a.txt')\nf.read()\nfile.write(path='a.txt', content='two', append=True)\nf.read()"
        assert value_of(await app.run(program)) == "two"


async def test_what_is_buffered_is_not_seen_before_it_is_flushed(tmp_path: Path) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        look = "before = os.path.getsize('a')\nf.flush()\n[before, os.path.getsize('a')]"
        assert value_of(await app.run(f"import os\nf = open('a', 'w')\nf.write('x')\n{look}")) == "[0,1]"


async def test_large_files_come_in_ranges(tmp_path: Path) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        data = bytes(range(256)) * 40_000
        (tmp_path / "work" / "large").write_bytes(data)
        program = "import hashlib\nf = open('large', 'rb')\nf.seek(-3, 2)\nlast = f.read()\nf.seek(5_000_000)\n"
        program += "middle = f.read(4)\nf.seek(0)\n[last.hex(), middle.hex(), len(f.read())]"
        assert value_of(await app.run(program)) == f'["fdfeff","{data[5_000_000:5_000_004].hex()}",{len(data)}]'
        program = "with open('copy', 'wb') as f:\n    for _ in range(300):\n        f.write(bytes(10_000))\n"
        await app.run(program)
        assert (tmp_path / "work" / "copy").stat().st_size == 3_000_000


async def test_temporary_files_are_in_memory_and_the_reply_says_so(tmp_path: Path) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        path = "/var/tmp/report-of-a-test.txt"
        reply = await app.run(f"open({path!r}, 'w').write('x')\nopen({path!r}).read()")
        assert reply.texts[0] == "x"
        assert f"{path}: what a program writes there is in its own memory" in reply.texts[1]
    assert not os.path.exists(path)  # noqa: PTH110, ASYNC240 - one look, at the end


@pytest.mark.parametrize(
    ("program", "fix"),
    [
        ("import sqlite3\nsqlite3.connect('a.db').execute('create table t(x)')", "deserialize"),
        ("import mmap\nmmap.mmap(open('a.txt', 'rb').fileno(), 0)", "io.BytesIO"),
    ],
)
async def test_what_opens_files_past_python_is_told_what_to_do(tmp_path: Path, program: str, fix: str) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        (tmp_path / "work" / "a.txt").write_text("x")
        assert fix in error_of(await app.run(program))


CONNECTS = """import sqlite3
with sqlite3.connect({database}) as connection:
    connection.row_factory = sqlite3.Row
    found = [dict(row) for row in connection.execute("SELECT * FROM t")]
found"""


@pytest.mark.parametrize(
    "database", ["'a.db'", "'file:a.db?mode=ro', uri=True", "__import__('pathlib').Path('a.db')", "'wal.db', timeout=5"]
)
async def test_a_database_of_the_workspace_is_queried_with_the_standard_library(tmp_path: Path, database: str) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        write_database(app.paths.cwd / "a.db")
        write_database(app.paths.cwd / "wal.db", "PRAGMA journal_mode = WAL")
        assert value_of(await app.run(CONNECTS.format(database=database))) == '[{"x":1},{"x":2}]'


async def test_a_database_is_not_changed_unnoticed_nor_read_without_its_last_changes(tmp_path: Path) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        write_database(app.paths.cwd / "a.db")
        before = (app.paths.cwd / "a.db").read_bytes()
        insert = "import sqlite3\nsqlite3.connect('a.db').execute('insert into t values (3)')"
        assert "attempt to write a readonly database" in error_of(await app.run(insert))
        assert (app.paths.cwd / "a.db").read_bytes() == before
        (app.paths.cwd / "a.db-wal").write_bytes(b"frames")
        assert "a.db-wal holds changes" in error_of(await app.run(CONNECTS.format(database="'a.db'")))


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside.db"])
async def test_a_database_elsewhere_is_as_far_away_as_any_file(tmp_path: Path, path: str) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        write_database(app.paths.cwd.parent / "outside.db")
        error = error_of(await app.run(CONNECTS.format(database=repr(path))))
        assert "outside the allowed directories" in error


def write_database(path: Path, pragma: str = "") -> None:
    connection = sqlite3.connect(path)
    for statement in (pragma, "CREATE TABLE t(x)", "INSERT INTO t VALUES (1), (2)"):
        connection.execute(statement)
    connection.commit()
    connection.close()


async def test_a_program_makes_no_file_executable_and_is_told_how_to_copy_one(tmp_path: Path) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        (tmp_path / "work" / "a.sh").write_text("x")
        (tmp_path / "work" / "a.sh").chmod(0o755)
        error = error_of(await app.run("import shutil\nshutil.copy('a.sh', 'b.sh')"))
        assert "cannot give a file more permissions than it has; shutil.copyfile copies without them" in error
        assert value_of(await app.run("import shutil\nshutil.copyfile('a.sh', 'c.sh')")) == "c.sh"
        assert not (tmp_path / "work" / "c.sh").stat().st_mode & 0o111


async def test_a_session_keeps_its_working_directory_and_its_open_files(tmp_path: Path) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        (tmp_path / "work" / "sub").mkdir()
        await app.run("import os\nos.chdir('sub')\nf = open('a.txt', 'w')\nf.write('one')", session="s")
        assert (tmp_path / "work" / "sub" / "a.txt").read_text() == "one"
        await app.run("f.write('two')\nf.close()", session="s")
        assert (tmp_path / "work" / "sub" / "a.txt").read_text() == "onetwo"


async def test_what_a_program_wrote_before_it_failed_is_written(tmp_path: Path) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        assert "ValueError" in error_of(
            await app.run("f = open('a.txt', 'w')\nf.write('so far')\nraise ValueError('x')")
        )
        assert (tmp_path / "work" / "a.txt").read_text() == "so far"


async def test_descriptors_are_ours_to_the_end(tmp_path: Path) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        program = "import os\nfd = os.open('a.txt', os.O_RDWR | os.O_CREAT)\nos.write(fd, b'abc')\nos.lseek(fd, 1, 0)\n"
        program += "found = [os.read(fd, 9).decode(), os.fstat(fd).st_size]\nos.close(fd)\n"
        program += "try:\n    os.read(fd, 1)\nexcept OSError as error:\n    found.append(error.errno)\nfound"
        assert value_of(await app.run(program)) == '["bc",3,9]'


async def test_a_small_border_only_makes_more_steps(tmp_path: Path) -> None:
    config = {"limits": {"value_bytes": 4096}}
    async with running_app(tmp_path, config=config, engine=ExactEngine()) as app:
        program = "open('a.txt', 'w').write('0123456789' * 2000)\ntext = open('a.txt').read()\n[len(text), text[-3:]]"
        assert value_of(await app.run(program)) == '[20000,"789"]'


async def test_what_is_larger_than_a_message_is_written_in_parts(tmp_path: Path) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        await app.run("with open('a.bin', 'wb') as f:\n    f.write(bytes(3_000_000) + b'end')")
        assert (tmp_path / "work" / "a.bin").read_bytes() == bytes(3_000_000) + b"end"


async def test_temporary_files_need_no_leave(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={"policy": {"deny": ["file.*"]}}, engine=ExactEngine()) as app:
        program = (
            "import os, tempfile\nwith tempfile.TemporaryDirectory() as top:\n    found = os.path.isdir(top)\nfound"
        )
        assert value_of(await app.run(program)) == "true"
        reply = await app.run("import os\nos.path.exists('a.txt')")
        assert reply.texts[0] == "false"
        assert "file.info" in reply.texts[1]


# ---------------------------------------------------------------- names on no list

ASKING = {
    "file.write": "file.write(path='.mytool/x', content='x')",
    "file.write appending": "file.write(path='.mytool/x', content='x', append=True)",
    "file.make_directory": "file.make_directory(path='a/.mytool/x')",
    "file.patch": "file.patch(diff='--- a/notes.txt\\n+++ b/notes.txt\\n@@ -1 +1 @@\\n-buy milk\\n+changed\\n"
    "--- /dev/null\\n+++ b/.mytool\\n@@ -0,0 +1 @@\\n+x\\n--- /dev/null\\n+++ b/.other\\n@@ -0,0 +1 @@\\n+x\\n')",
    "file.edit": "file.edit(path='.old/x', old='old', new='new')",
    "file.copy of a file": "file.copy(source='notes.txt', target='.mytool')",
    "file.copy of a tree": "file.copy(source='tree', target='copy')",
    "file.move of a tree": "file.move(source='tree', target='moved')",
    "a loop": "for i in range(5):\n    file.write(path=f'.mytool/{i}', content='x')",
    "a gather": "import asyncio\n"
    "await asyncio.gather(*[file.write(path=f'.mytool/{i}', content='x') for i in range(5)])",
    **{name: program.format(path=".mytool") for name, program in CHANGES.items()},
    "open and makedirs": "import os\nos.makedirs('.mytool/a/b')\nfor i in range(3):\n    "
    "with open(f'.mytool/a/b/{i}', 'w') as f:\n        f.write('x')\n        f.write('y')",
}
ASKING_EXACT = {name: program.format(path=".mytool") for name, program in BY_EXACT_ONLY.items()}


def fill(work: Path) -> dict[str, str]:
    """Put the same files into an empty workspace, and return what it holds."""
    shutil.rmtree(work)
    files = {"notes.txt": "buy milk\n", ".old/x": "old\n", "tree/a": "a", "tree/sub/.one/x": "1", "tree/z/.two": "2"}
    for name, text in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    return held(work)


def held(work: Path) -> dict[str, str]:
    paths = sorted(work.rglob("*"))
    return {str(path.relative_to(work)): path.read_text() if path.is_file() else "" for path in paths}


@pytest.mark.parametrize("engine", ["exact", "portable"])
async def test_every_way_to_write_an_unknown_dot_name_asks_once_and_before_its_first_write(
    tmp_path: Path, engine: str
) -> None:
    work = tmp_path / "work"
    programs = ASKING | (ASKING_EXACT if engine == "exact" else {})
    async with running_app(tmp_path, config={"policy": {"allow": ["file.*"]}}, engine=engine_of(engine)) as app:
        for name, program in programs.items():
            before = fill(work)
            refusing, agreeing = User(NO), User(YES)
            said = error_of(await app.run(program, asking(refusing)))
            assert "PermissionError" in said, (name, said)
            assert "the user said no" in said, (name, said)
            assert held(work) == before, name
            reply = await app.run(program, asking(agreeing))
            assert not reply.is_error, (name, reply.texts)
            assert held(work) != before, name
            assert (len(refusing.questions), len(agreeing.questions)) == (1, 1), name
            assert "Mind that it writes '" in agreeing.questions[0].message, name


async def test_the_question_names_every_place_and_its_answer_holds_for_the_run_alone(tmp_path: Path) -> None:
    user = User(YES)
    async with running_app(tmp_path) as app:
        fill(tmp_path / "work")
        program = (
            "file.copy(source='tree', target='copy', overwrite=True)\nfile.write(path='copy/z/.two', content='again')"
        )
        await app.run(program, asking(user))
        (question,) = user.questions
        assert "it writes 'copy/sub/.one', 'copy/z/.two': other programs execute" in question.message
        assert "a yes also holds for what else this run writes there" in question.message
        await app.run(f"{program}\nfile.write(path='.three', content='')", asking(user))
        assert len(user.questions) == 3


async def test_what_is_refused_anyway_is_not_asked_about_and_no_part_of_it_is_written(tmp_path: Path) -> None:
    user, work = User(YES), tmp_path / "work"
    diff = "--- /dev/null\n+++ b/plain\n@@ -0,0 +1 @@\n+x\n--- /dev/null\n+++ b/.hg/hgrc\n@@ -0,0 +1 @@\n+x\n"
    async with running_app(tmp_path) as app:
        fill(work)
        (work / "tree" / ".hg").mkdir()
        (work / "tree" / ".hg" / "hgrc").write_text("[hooks]")
        before = held(work)
        programs = [f"file.patch(diff={diff!r})", *(f"file.copy(source='tree', target={at!r})" for at in ("t", ".t"))]
        for program in [*programs, "file.copy(source='notes.txt', target='../.x')", "open('/etc/.x', 'w')"]:
            assert "PermissionError" in error_of(await app.run(program, asking(user))), program
        assert held(work) == before
    assert user.questions == []


async def test_a_no_holds_for_the_whole_run(tmp_path: Path) -> None:
    user = User(NO, YES)
    program = "\n".join(
        ["told = []", *["try: open('.mytool', 'w')\nexcept PermissionError as e: told.append(str(e))"] * 3]
    )
    async with running_app(tmp_path) as app:
        assert value_of(await app.run(f"{program}\nlen(told)", asking(user))) == "3"
        assert len(user.questions) == 1
        assert not (tmp_path / "work" / ".mytool").exists()


async def test_where_nobody_can_be_asked_the_refusal_names_the_setting_which_then_allows_it(tmp_path: Path) -> None:
    for at, program in enumerate(["open('.mytool', 'w').write('x')", "file.write(path='.mytool', content='x')"]):
        refusing, allowing = tmp_path / f"{at}", tmp_path / f"{at} allowed"
        refusing.mkdir()
        allowing.mkdir()
        async with running_app(refusing) as app:
            said = error_of(await app.run(program))
            assert 'whoever configures OneTool writes security: {dot_names: [".mytool"]}' in said, said
        config = {"security": {"dot_names": [".mytool"]}}
        async with running_app(allowing, config=config) as app:
            assert not (await app.run(program)).is_error


async def test_what_a_call_did_that_its_user_refused_is_known(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        reply = await app.run("file.write(path='.mytool', content='x')", asking(User(NO)))
        assert reply.is_error
        assert value_of(await app.run("ot.effects()")) == "[]"


# ---------------------------------------------------------------- how much is written

LARGE = {
    "os.truncate": "import os\nopen('x', 'w').close()\nos.truncate('x', 2**43)",
    "a place beyond the end": "f = open('x', 'wb')\nf.seek(2**42)\nf.write(b'x')\nf.close()",
    "a size beyond 64 bits": "import os\nopen('x', 'w').close()\nos.truncate('x', 2**70)",
    "many writes": "f = open('x', 'wb')\nfor _ in range(20):\n    f.write(b'x' * 100_000)\nf.close()",
    "many files": "for i in range(20):\n    file.write(path=f'x{i}', content='x' * 100_000)",
    "many edits": "file.write(path='x', content='a' * 400_000)\n"
    "for i in range(4):\n    file.edit(path='x', old='a' * 400_000, new='a' * 400_000 + 'b')",
    "copies": "file.write(path='x', content='a' * 400_000)\n"
    "for i in range(4):\n    file.copy(source='x', target=f'y{i}')",
    "both ways": "open('x', 'w').write('x' * 600_000)\nfile.write(path='y', content='x' * 600_000)",
}
ONLY_EXACT = ("os.truncate", "a place beyond the end", "a size beyond 64 bits")


@pytest.mark.parametrize("engine", ["exact", "portable"])
async def test_the_bytes_that_a_run_writes_are_bounded_by_whatever_function(tmp_path: Path, engine: str) -> None:
    config = {"limits": {"file_bytes": 1_000_000}}
    async with running_app(tmp_path, config=config, engine=engine_of(engine)) as app:
        for name, program in LARGE.items():
            if engine == "portable" and name in ONLY_EXACT:
                continue
            fill(tmp_path / "work")
            said = error_of(await app.run(program))
            assert "a run may write 1,000,000 bytes in all (limits.file_bytes)" in said, (name, said)
            sizes = [path.stat().st_size for path in (tmp_path / "work").rglob("*") if path.is_file()]
            assert sum(sizes) < 1_100_000, name
        assert not (await app.run("file.write(path='z', content='x' * 900_000)")).is_error


async def test_a_time_beyond_64_bits_is_out_of_range_as_everywhere(tmp_path: Path) -> None:
    async with running_app(tmp_path, engine=ExactEngine()) as app:
        fill(tmp_path / "work")
        for when in ("ns=(2**70, 0)", "times=(1e30, 0)", "ns=(0, -2**64)"):
            said = error_of(await app.run(f"import os\nos.utime('notes.txt', {when})"))
            assert "OverflowError: timestamp out of range" in said, said


async def test_the_portable_engine_lists_no_directory_that_would_hold_up_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portable_files, "MOST_ENTRIES", 2)
    async with running_app(tmp_path, engine=PortableEngine()) as app:
        for name in ("a", "b"):
            (tmp_path / "work" / name).touch()
        assert value_of(await app.run("import os\nlen(os.listdir('.'))")) == "2"
        (tmp_path / "work" / "c").touch()
        said = error_of(await app.run("import os\nos.listdir('.')"))
    assert "holds more than 2 entries, and the portable engine lists no more: use file.glob" in said


async def test_steps_that_no_engine_sends_reach_nothing_and_read_no_more_than_a_value_may_have(tmp_path: Path) -> None:
    odd = (None, 5, [], {}, b"notes.txt", "a\0b", "../outside", "/etc/passwd", "/proc/self/environ", "a" * 9000)
    steps: list[tuple[str, dict[str, Any]]] = [
        *(("read", {"path": "huge", "size": size}) for size in (-1, None, True, 1e12, "all", 10**12, [1])),
        *(("read", {"path": "huge", "offset": offset}) for offset in (-1, None, "x", 2**70)),
        *((step, {"path": path}) for step in ("read", "stat", "scan", "link", "make", "remove") for path in odd),
        *(("begin", {"path": "../outside", "mode": mode}) for mode in ("w", "r", "", None, ["w"])),
        *(("write", {"path": "notes.txt", **more}) for more in ({"data": b"x", "at": -1}, {}, {"data": 5})),
        *(("touch", {"path": "notes.txt", **more}) for more in ({"times": [1]}, {"times": "ab"}, {"mode": "x"})),
        *(("truncate", {"path": "notes.txt", "size": size}) for size in (-1, None, "x")),
        *((step, {"path": "notes.txt"}) for step in ("", "_guard", "os", "where", "read.__call__")),
        ("rename", {"source": "notes.txt", "target": "../outside"}),
        ("rename", {"source": "/etc/passwd", "target": "here"}),
        ("stat", {"path": "notes.txt", "follow": True, "guard": None}),
    ]  # fmt: skip
    data: list[bytes] = []
    failed: list[BaseException] = []

    async def hostile(program: Program, reach: Reach) -> Outcome:
        for step, arguments in steps:
            try:
                found = await reach.file(step, arguments)
            except Exception as error:  # noqa: BLE001 - what it is, is judged below
                failed.append(error)
            else:
                data.extend([found["data"]] if isinstance(found, dict) and "data" in found else [])
        return Outcome(1)

    config = {"policy": {"allow": ["file.*"]}, "limits": {"value_bytes": 1_000_000}}
    async with running_app(tmp_path, config=config, engine=StubEngine(hostile)) as app:
        work = tmp_path / "work"
        (work / "notes.txt").write_text("kept\n")
        with (work / "huge").open("wb") as file:
            file.truncate(8 << 20)
        (tmp_path / "outside").write_text("outside\n")
        await app.run("1")
    assert {type(error) for error in failed if not isinstance(error, ToolError)} == set()
    assert [len(part) for part in data[:7]] == [500_000] * 7, "what is read is bounded before it is in memory"
    assert max(map(len, data)) <= 1 << 20
    assert (work / "notes.txt").read_text() == "kept\n"
    assert (tmp_path / "outside").read_text() == "outside\n"
    assert sorted(path.name for path in work.iterdir()) == ["huge", "notes.txt"]

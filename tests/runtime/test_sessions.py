"""Runs that name the same session share their variables, on either engine; others begin with none."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from ot.config.models import Limits
from ot.config.models import SessionSettings as Settings
from ot.execution.caller import Caller
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import Engine, Outcome, Reach
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.engines.portable.ready_sessions import AHEAD
from ot.runtime.program import Program, parse_program
from ot.runtime.sessions import Nothing, Sessions
from ot.workspace import Workspace
from pace import PATIENCE
from run_app import error_of, running_app, value_of
from server_process import process_stat
from stubs import StubEngine

pytestmark = pytest.mark.anyio

ENGINES: dict[str, Callable[[], Engine]] = {
    "portable": lambda: PortableEngine(processes=4),
    "exact": lambda: ExactEngine(processes=4, ready=1),
}
PACK = '''
    """A pack."""

    def double(*, n: int) -> int:
        """Double a number."""
        return 2 * n
'''


@pytest.fixture(params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "exact" and ExactEngine.missing_here():
        pytest.skip(ExactEngine.missing_here())
    return request.param


@pytest.fixture
async def app(tmp_path: Path, engine: str) -> AsyncGenerator[Workspace]:
    async with _app(tmp_path, engine) as app:
        yield app


def _app(directory: Path, engine: str, **config: Any) -> Any:
    return running_app(directory, {"t": PACK}, config, engine=ENGINES[engine]())


async def ask(app: Workspace, command: str, session: str = "s") -> str:
    return value_of(await app.run(command, session=session))


async def fails(app: Workspace, command: str, session: str = "s") -> str:
    return error_of(await app.run(command, session=session))


def listed(app: Workspace) -> dict[str, Any]:
    return app.sessions.listing(app.own_caller.seat)


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not reached():  # noqa: ASYNC110 - another process, or a timer, brings it about
            await asyncio.sleep(0.01)


async def test_variables_functions_classes_and_imports_stay(app: Workspace) -> None:
    await ask(
        app, "import json\nx = 41\ndef add(n):\n    return n + x\nclass P:\n    def __init__(self): self.k = 7\np = P()"
    )
    assert await ask(app, "add(1)") == "42"
    assert await ask(app, "p.k") == "7"
    assert await ask(app, "json.dumps([x])") == "[41]"
    await ask(app, "x = 1")
    assert await ask(app, "add(1)") == "2"


async def test_a_run_without_a_session_begins_with_no_variables(app: Workspace) -> None:
    await ask(app, "x = 41")
    assert "NameError" in error_of(await app.run("x"))
    assert "NameError" in await fails(app, "x", session="other")
    assert await ask(app, "x") == "41"


async def test_functions_of_an_earlier_run_call_tools_plainly_and_gathered(app: Workspace) -> None:
    await ask(
        app,
        "import asyncio\ndef one(i):\n    return t.double(n=i)\n"
        "async def all_of(m):\n    return await asyncio.gather(*[t.double(n=i) for i in range(m)])",
    )
    assert await ask(app, "one(4)") == "8"
    assert await ask(app, "await all_of(3)") == "[0,2,4]"
    assert await ask(app, "t.double(n=5)") == "10"
    assert await ask(app, "import asyncio\nawait asyncio.gather(t.double(n=1), t.double(n=2))") == "[2,4]"


async def test_a_variable_hides_a_pack_of_its_name_in_later_runs(app: Workspace) -> None:
    await ask(app, "t = [1, 2]")
    assert await ask(app, "len(t)") == "2"
    await ask(app, "def f():\n    file = 3\n    return file")
    assert await ask(app, "file.read.__name__ if False else f()") == "3"


async def test_a_program_that_fails_leaves_what_it_had_assigned_and_its_line_is_its_own(app: Workspace) -> None:
    await ask(app, "def f(d):\n    # a line\n    # a line\n    return d['k']")
    text = await fails(app, "x = 5\n\nf({})")
    assert "KeyError" in text
    assert "line 3" in text
    assert await ask(app, "x") == "5"


async def test_what_one_run_asks_of_its_reply_is_not_asked_by_the_next(app: Workspace) -> None:
    assert await ask(app, "__format__ = 'raw'\n'a'") == "a"
    assert await ask(app, "'a'") == value_of(await app.run("'a'"))


async def test_runs_of_one_session_take_turns_and_those_of_others_do_not_wait(app: Workspace) -> None:
    await ask(app, "n = 0")
    program = "m = n\nt.double(n=1)\nn = m + 1"
    await asyncio.gather(*(app.run(program, session="s") for _ in range(10)))
    assert await ask(app, "n") == "10"


async def test_a_run_that_is_ended_ends_its_session_and_the_next_one_is_told(tmp_path: Path, engine: str) -> None:
    async with _app(tmp_path, engine, limits={"cpu_seconds": 0.5}) as app:
        await ask(app, "x = 1")
        assert "cpu_seconds" in await fails(app, "while True:\n    pass")
        text = await fails(app, "x")
        assert "session 's' has ended" in text
        assert "computed for more than 0.5 s" in text
        assert "NameError" in await fails(app, "x")
        assert await ask(app, "x = 2\nx") == "2"


async def test_a_session_that_runs_out_of_memory_ends(tmp_path: Path, engine: str) -> None:
    async with _app(tmp_path, engine, limits={"memory_mb": 32}) as app:
        await ask(app, "x = [0] * 100")
        assert "memory" in (await fails(app, "y = 'a' * 500_000_000")).lower()
        assert "session 's' has ended" in await fails(app, "x")


async def test_computing_time_is_counted_anew_for_every_run(tmp_path: Path, engine: str) -> None:
    for name in ("control", "limited"):
        (tmp_path / name).mkdir()
    program = "s = 0\nfor i in range(300_000):\n    s += i\nNone"
    async with _app(tmp_path / "control", engine, limits={"cpu_seconds": 60}) as app:
        await ask(app, "None")
        began = time.monotonic()
        await ask(app, program)
        one = time.monotonic() - began
    async with _app(tmp_path / "limited", engine, limits={"cpu_seconds": 10 * one}) as app:
        for _ in range(25):
            await ask(app, program)


async def test_a_cancelled_run_ends_its_session(app: Workspace) -> None:
    await ask(app, "x = 1")
    task = asyncio.ensure_future(app.run("import time\nwhile True:\n    t.double(n=1)", session="s"))
    await until(lambda: listed(app)["s"]["runs"] == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "its last run was cancelled" in await fails(app, "x")


async def test_an_idle_session_ends_and_the_next_run_is_told(tmp_path: Path, engine: str) -> None:
    async with _app(tmp_path, engine, sessions={"idle_seconds": 0.05}) as app:
        await ask(app, "x = 1")
        await until(lambda: not listed(app))
        assert "it was idle for more than 0.05 s" in await fails(app, "x")


async def test_a_session_is_not_idle_while_a_run_is_under_way_however_long_it_takes() -> None:
    go_on = asyncio.Event()
    go_on.set()

    async def answer(program: Program, reach: Reach) -> Outcome:
        await go_on.wait()
        return Outcome(1)

    sessions = Sessions(Settings(idle_seconds=0.1), StubEngine(answer))

    async def run() -> Outcome:
        return await sessions.run("me", "s", parse_program("1"), Nothing(), Limits(), Deadline.after(20))

    await run()
    go_on.clear()
    second = asyncio.ensure_future(run())
    await asyncio.sleep(0.3)  # three times as long as it may be idle
    assert list(sessions.listing("me")) == ["s"]
    go_on.set()
    await second
    assert sessions.listing("me")["s"]["runs"] == 2
    await until(lambda: not sessions.listing("me"))
    await sessions.aclose()


async def test_the_variables_of_a_session_whose_process_has_ended_are_said_to_be_lost_and_not_saved(
    tmp_path: Path,
) -> None:
    if ExactEngine.missing_here():
        pytest.skip(ExactEngine.missing_here())
    async with running_app(tmp_path, engine=ExactEngine(ready=0)) as app:
        await ask(app, "x = 1", session="other")
        before = {child.pid for child in psutil.Process().children(recursive=True)}
        await ask(app, "x = 1\ny = 2")
        (killed,) = {child.pid for child in psutil.Process().children(recursive=True)} - before
        os.kill(killed, signal.SIGKILL)
        await until(lambda: process_stat(killed) is None)
        text = error_of(await app.run("ot.session(name='s', action='save')"))
        assert "session 's' has ended" in text


async def test_there_are_only_so_many_sessions(tmp_path: Path, engine: str) -> None:
    async with _app(tmp_path, engine, sessions={"most": 2}) as app:
        await ask(app, "x = 1", session="a")
        await ask(app, "x = 2", session="b")
        text = await fails(app, "x = 3", session="c")
        assert 'ot.session(name="a", action="clear")' in text
        assert value_of(await app.run('ot.session(name="a", action="clear")')) == "[a]"
        await ask(app, "x = 3", session="c")
        assert "NameError" in await fails(app, "y", session="b")


async def test_sessions_are_listed_cleared_and_saved(app: Workspace) -> None:
    await ask(app, "import json\nrows = [{'a': 1}, {'a': 2}]\ndef f(): ...\nwhen = None")
    listed = json.loads(value_of(await app.run("__format__ = 'json'\not.session()")))
    assert sorted(listed["s"]["variables"]) == ["f", "json", "rows", "when"]
    assert listed["s"]["runs"] == 1
    saved = json.loads(value_of(await app.run("__format__ = 'json'\not.session(name='s', action='save')")))
    assert (saved["saved"], saved["left_out"]) == (["rows", "when"], ["f", "json"])
    stored = app.stored_text(saved["handle"], app.own_caller.principal)
    assert json.loads(stored) == {"rows": [{"a": 1}, {"a": 2}], "when": None}
    await app.run("ot.session(name='s', action='clear')")
    assert "NameError" in await fails(app, "rows")


async def test_what_is_saved_is_a_value_to_read_by_path_and_holds_no_secret(tmp_path: Path) -> None:
    secrets = tmp_path / "user" / "secrets.yaml"
    secrets.parent.mkdir()
    secrets.touch(0o600)
    secrets.write_text("TOKEN: abcdef123456\n")
    async with _app(tmp_path, "portable") as app:
        await ask(app, "a = 'abcdef' + '123456'\nb = {'c': [1, 2]}")
        saved = json.loads(value_of(await app.run("__format__ = 'json'\not.session(name='s', action='save')")))
        assert value_of(await app.run(f"ot.result(handle='{saved['handle']}', path='b.c[1]')")) == "2"
        file = app.picture.loaded.state_dir / "tmp" / f"result-{saved['handle']}.txt"
        assert file.read_text() == '{"a":"[secret:TOKEN]",\n"b":{"c":[1,2]}}'
        assert json.loads(file.with_suffix(".meta.json").read_text())["form"] == "json"


async def test_a_session_is_not_cleared_or_saved_from_inside_one_of_its_own_runs(app: Workspace) -> None:
    await ask(app, "x = 1")
    for action in ("clear", "save"):
        assert "a run is in progress in session 's'" in await fails(app, f"ot.session(name='s', action='{action}')")
    assert await ask(app, "x") == "1"


async def test_no_caller_reaches_the_session_of_another(app: Workspace) -> None:
    ann = Caller("ann")
    await app.run("x = 1", ann, session="s")
    assert "NameError" in error_of(await app.run("x", Caller("bob"), session="s"))
    assert app.sessions.listing("bob")["s"]["runs"] == 1
    elsewhere = replace(ann, connection="another")
    assert "NameError" in error_of(await app.run("x", elsewhere, session="s"))
    assert value_of(await app.run("x", ann, session="s")) == "1"


async def test_a_malformed_session_name_is_refused(app: Workspace) -> None:
    assert "a session name has" in await fails(app, "1", session="../x")


async def test_a_process_of_a_session_that_is_killed_is_told_of(tmp_path: Path) -> None:
    if ExactEngine.missing_here():
        pytest.skip(ExactEngine.missing_here())
    async with running_app(tmp_path, engine=ExactEngine(ready=0)) as app:
        await ask(app, "x = 1")
        before = {child.pid for child in psutil.Process().children(recursive=True)}
        await ask(app, "y = 1", session="killed")
        (killed,) = {child.pid for child in psutil.Process().children(recursive=True)} - before
        os.kill(killed, signal.SIGKILL)
        await until(lambda: not psutil.pid_exists(killed))
        assert "session 'killed' has ended" in await fails(app, "y", session="killed")
        assert await ask(app, "x") == "1"


async def test_a_thread_that_a_program_left_does_not_compute_between_runs(tmp_path: Path) -> None:
    if ExactEngine.missing_here():
        pytest.skip(ExactEngine.missing_here())
    async with running_app(tmp_path, engine=ExactEngine(ready=0)) as app:
        await ask(app, "x = 1")
        before = {child.pid for child in psutil.Process().children(recursive=True)}
        await ask(
            app,
            "import threading\ndef spin():\n    while True:\n        pass\n"
            "threading.Thread(target=spin, daemon=True).start()\ny = 2",
            session="spins",
        )
        (spins,) = {child.pid for child in psutil.Process().children(recursive=True)} - before
        await until(lambda: psutil.Process(spins).status() == psutil.STATUS_STOPPED)
        assert await ask(app, "y", session="spins") == "2"


async def test_a_pack_and_a_tool_that_are_held_in_variables_stay_usable(app: Workspace) -> None:
    await ask(app, "p = t\ng = t.double")
    assert await ask(app, "[p.double(n=2), g(n=3)]") == "[4,6]"


async def test_many_runs_in_one_session_grow_nothing(app: Workspace) -> None:
    await ask(app, "n = 0")
    await ask(app, "import asyncio\nawait asyncio.gather(t.double(n=1))")
    me = psutil.Process()
    # Statistics are written a while after the first run, to three files that stay open.
    await until(lambda: any("stats.db" in file.path for file in me.open_files()))
    processes, files = len(me.children(recursive=True)), me.num_fds()
    for _ in range(100):
        await ask(app, "import asyncio\nn = n + 1\nawait asyncio.gather(t.double(n=n), t.double(n=1))")
    assert await ask(app, "n") == "100"

    def more() -> int:
        return max(len(me.children(recursive=True)) - processes, 0)

    # Those replaced may still be ending; the portable engine's pool keeps as many as were once busy together.
    pool = AHEAD if app.engine.name == "portable" else 0
    await until(lambda: more() <= 2 + pool)
    await until(lambda: me.num_fds() <= files + 8 + 3 * more())


@pytest.mark.soak
async def test_ten_thousand_runs_in_one_session_grow_nothing(app: Workspace) -> None:
    me = psutil.Process()
    await ask(app, "n = 0")
    for _ in range(500):
        await ask(app, "n = n + 1")
    files, memory = me.num_fds(), me.memory_info().rss
    for _ in range(9_500):
        await ask(app, "n = n + 1")
    assert await ask(app, "n") == "10000"
    assert me.num_fds() <= files + 8
    assert me.memory_info().rss < memory + (32 << 20)

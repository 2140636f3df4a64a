"""One host, two workspaces and three callers: nothing of one ever reaches another."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent

import psutil
import pytest

from ot.build import stats_place
from ot.config.load import load_config
from ot.config.paths import Paths
from ot.config.principal import os_user
from ot.config.trust import Trust
from ot.execution.caller import Answer, Caller, Question
from ot.host import Host
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.reply import Reply
from ot.workspace import Workspace
from pace import TURNS
from proxied.desk import fake
from run_app import error_of, value_of

pytestmark = pytest.mark.anyio

PACK = '''
    import os, time

    CANARY = "{canary}"


    def canary() -> str:
        """Return the canary of the directory that this pack lies in."""
        return CANARY


    def pid() -> int:
        """Return the process that it runs in."""
        return os.getpid()


    def path() -> str:
        """Return where its process finds programs."""
        return os.environ["PATH"]


    def meet(*, file: str) -> str:
        """Return once there is such a file."""
        while not os.path.exists(file):
            time.sleep(0.01)
        return CANARY
'''


@dataclass
class Many:
    """Two workspaces on one host, which a test looks at from both sides."""

    host: Host
    one: Workspace
    other: Workspace

    @staticmethod
    def canary(workspace: Workspace) -> str:
        return f"canary-of-{workspace.paths.cwd.name}"


@asynccontextmanager
async def many(directory: Path) -> AsyncGenerator[Many]:
    """Yield two workspaces of one user, in directories, environments and configurations of their own."""
    user = directory / "user"
    user.mkdir()
    servers = {"fake": fake(env={"TOKEN": "${TOKEN}"})}
    config = {"servers": servers, "output": {"max_inline_size": 500}, "policy": {"ask": ["fake.effect"]}}
    (user / "onetool.yaml").write_text(json.dumps(config), encoding="utf-8")
    places = [place(directory, user, name) for name in ("one", "other")]
    host = Host(places[0], engine=PortableEngine())
    made = [Workspace(host, paths, trust_project=True) for paths in places]
    try:
        yield Many(host, *made)
    finally:
        for workspace in made:
            await workspace.aclose()
        await host.aclose()


def place(directory: Path, user: Path, name: str) -> Paths:
    """Return a directory with a project, and the environment of whoever works there."""
    canary, cwd = f"canary-of-{name}", directory / name
    tools = cwd / ".onetool" / "tools" / "near"
    tools.mkdir(parents=True)
    (tools / "near_tools.py").write_text(dedent(PACK).format(canary=canary), encoding="utf-8")
    project = {"aliases": {"mine": "near.canary"}, "snippets": {"who": {"body": f"'{canary}'"}}}
    (cwd / ".onetool" / "onetool.yaml").write_text(json.dumps(project), encoding="utf-8")
    (cwd / "note.txt").write_text(canary, encoding="utf-8")
    environ = {**os.environ, "TOKEN": f"token-of-{name}", "PATH": f"{os.environ['PATH']}:/{name}"}
    return replace(Paths.of(cwd, user), environ=environ)


CALLERS = (Caller("ann", "1"), Caller("ann", "2"), Caller("bob", "3"))
COMMANDS = (
    "near.canary()",
    "mine()",
    "$who",
    "file.read(path='note.txt')",
    "fake.environ()",
    "near.path()",
    "ot.config()",
    "ot.session(name='s')",
)


async def ask(workspace: Workspace, command: str, caller: Caller | None = None, session: str = "") -> str:
    return "\n".join((await workspace.run(command, caller, session=session)).texts)


async def mixed_runs(found: Many, count: int, seed: int) -> None:
    """Run whatever comes, for whoever comes; each reply holds the canaries of its own place and caller alone."""
    chance = random.Random(seed)
    seats = [(workspace, caller) for workspace in (found.one, found.other) for caller in CALLERS]
    handles: dict[tuple[str, str], str] = {}
    for workspace, caller in seats:
        await workspace.run(f"mark = 'mark-{caller.seat}-{found.canary(workspace)}'", caller, session="s")
        stored = await ask(workspace, f"['kept-{caller.principal}-{found.canary(workspace)}'] * 100", caller)
        handles[caller.principal, found.canary(workspace)] = json.loads(stored)["handle"]

    async def one() -> None:
        workspace, caller = chance.choice(seats)
        own = found.canary(workspace)
        foreign = "other" if own.endswith("one") else "one"
        kind = chance.randrange(4)
        if kind == 0:
            assert await ask(workspace, "mark", caller, session="s") == f"mark-{caller.seat}-{own}"
        elif kind == 1:
            text = await ask(workspace, f"ot.result(handle='{handles[caller.principal, own]}', limit=1)", caller)
            assert f"kept-{caller.principal}-{own}" in text
        elif kind == 2:
            whose = chance.choice([key for key in handles if key != (caller.principal, own)])
            reply = await workspace.run(f"ot.result(handle='{handles[whose]}')", caller)
            assert reply.is_error and "kept-" not in "\n".join(reply.texts)
        else:
            text = await ask(workspace, chance.choice(COMMANDS), caller)
            assert f"canary-of-{foreign}" not in text
            assert f"token-of-{foreign}" not in text

    for _ in range(0, count, 20):
        await asyncio.gather(*(one() for _ in range(20)))


async def test_a_thousand_mixed_runs_of_three_callers_cross_nowhere(tmp_path: Path) -> None:
    async with many(tmp_path) as found:
        await mixed_runs(found, 1000, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(1200)
async def test_ten_thousand_mixed_runs_of_three_callers_cross_nowhere(tmp_path: Path) -> None:
    async with many(tmp_path) as found:
        await mixed_runs(found, 10_000, seed=2)


async def test_sessions_of_one_name_are_apart_by_workspace_principal_and_connection(tmp_path: Path) -> None:
    async with many(tmp_path) as found:
        await found.one.run("x = 1", CALLERS[0], session="s")
        for workspace, caller in ((found.other, CALLERS[0]), (found.one, CALLERS[1]), (found.one, CALLERS[2])):
            assert "NameError" in error_of(await workspace.run("x", caller, session="s"))
        assert value_of(await found.one.run("x", CALLERS[0], session="s")) == "1"


async def test_a_reload_of_one_workspace_leaves_the_workers_and_servers_of_another(tmp_path: Path) -> None:
    async with many(tmp_path) as found:
        before = [await ask(found.other, command) for command in ("near.pid()", "fake.pid()")]
        await found.one.run("near.pid()")
        (found.one.paths.cwd / ".onetool" / "tools" / "near" / "near_tools.py").unlink()
        await found.one.reload()
        assert [await ask(found.other, command) for command in ("near.pid()", "fake.pid()")] == before


async def test_workers_and_servers_of_one_name_have_the_environment_of_their_own_workspace(tmp_path: Path) -> None:
    async with many(tmp_path) as found:
        for workspace, name in ((found.one, "one"), (found.other, "other")):
            assert (await ask(workspace, "near.path()")).endswith(f":/{name}")
            server = psutil.Process(json.loads(await ask(workspace, "fake.pid()"))["pid"])
            assert server.environ()["TOKEN"] == f"token-of-{name}"
        assert await ask(found.one, "near.pid()") != await ask(found.other, "near.pid()")
        assert await ask(found.one, "fake.pid()") != await ask(found.other, "fake.pid()")


async def test_a_workspace_that_closes_leaves_what_another_holds(tmp_path: Path) -> None:
    async with many(tmp_path) as found:
        twin = Workspace(found.host, found.one.paths, trust_project=True)
        pid = await ask(found.one, "near.pid()")
        assert await ask(twin, "near.pid()") == pid  # of the same files, settings and environment: the same worker
        await twin.aclose()
        assert await ask(found.one, "near.pid()") == pid


async def test_a_question_goes_to_whoever_asked(tmp_path: Path) -> None:
    asked: list[str] = []

    def caller(name: str) -> Caller:
        async def answer(_: Question) -> Answer:
            asked.append(name)
            return Answer("decline")

        return Caller(name, ask=answer)

    async with many(tmp_path) as found:
        replies: list[Reply] = []
        for name, workspace in (("ann", found.one), ("bob", found.other)):
            replies.append(await workspace.run("fake.effect(file='f', word='w')", caller(name)))
        assert asked == ["ann", "bob"]
        assert all(reply.is_error for reply in replies)


async def test_only_the_user_of_the_process_can_allow_for_good(tmp_path: Path) -> None:
    offered: dict[str, bool] = {}

    def caller(name: str) -> Caller:
        async def answer(question: Question) -> Answer:
            offered[name] = "always" in str(question.schema)
            return Answer("decline")

        return Caller(name, ask=answer)

    async with many(tmp_path) as found:
        for name in ("ann", os_user()):
            await found.one.run("fake.effect(file='f', word='w')", caller(name))
    assert offered == {"ann": False, os_user(): True}


async def test_fifty_runs_of_one_workspace_do_not_hold_up_another(tmp_path: Path) -> None:
    async with many(tmp_path) as found:
        gate = tmp_path / "gate"
        waiting = [asyncio.ensure_future(found.one.run(f"near.meet(file='{gate}')")) for _ in range(50)]
        assert value_of(await found.other.run("near.canary()")) == "canary-of-other"
        assert not any(run.done() for run in waiting)
        gate.touch()
        assert {value_of(await run) for run in waiting} == {"canary-of-one"}


async def test_statistics_are_told_to_their_own_principal_alone(tmp_path: Path) -> None:
    async with many(tmp_path) as found:
        await found.one.run("near.canary()", CALLERS[0])
        seen = [await ask(found.one, "[t['tool'] for t in ot.stats()['tools']]", c) for c in (CALLERS[0], CALLERS[2])]
        assert "near.canary" in seen[0]
        assert "near.canary" not in seen[1]


async def test_to_close_ten_times_as_many_workspaces_takes_ten_times_as_long(tmp_path: Path) -> None:
    paths = place(tmp_path, tmp_path / "user", "one")
    loaded = load_config(paths, Trust(paths.global_dir))

    async def close(number: int) -> float:
        host, holders = Host(paths, engine=PortableEngine()), [object() for _ in range(number)]
        for holder in holders:
            host.engine(holder, loaded)
            host.recorder(holder, stats_place(loaded))
            host.ledger(holder, loaded.config.ledger)
            host.hold(holder, ("near", "far"), ("fake",))
        before = time.process_time()
        for holder in holders:
            await host.release(holder)
        assert not host.engines()
        return time.process_time() - before

    ratios = [await close(2000) / await close(200) for _ in range(TURNS)]
    assert min(ratios) < 25, ratios  # 100, if each looks at all others

"""An engine whose processes are killed while it starts: tried again, and never silently another engine."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from exact_attacks import NoPacks

from ot.config.models import Engines, Limits
from ot.errors import EngineCrashed, EngineUnavailable
from ot.execution.deadline import Deadline
from ot.runtime.engines.choice import EngineChoice
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.forked.jail_command import ZygoteCommand, jail_commands
from ot.runtime.engines.forked.zygote_process import ZygoteProcess
from ot.runtime.program import parse_program
from ot.workspace import Workspace
from run_app import paths_in

pytestmark = pytest.mark.anyio

START = "sys.path.remove"
PROBE_DIES = "import os, ot.runtime.engines.forked.jail.zygote as z; z.lockdown.probe = lambda: os._exit(9)\n"

Spoil = Callable[[], ZygoteProcess]


def killed_at_once() -> ZygoteProcess:
    """Return a zygote that was killed before it could say anything."""
    zygote = ZygoteProcess(partial(jail_commands), {}, jailed=True)
    os.kill(zygote._process.pid, signal.SIGKILL)
    return zygote


def with_dying_self_test() -> ZygoteProcess:
    """Return a zygote in whose jail the process of the self-test ends early."""

    def spoiled(command: ZygoteCommand) -> ZygoteCommand:
        argv = tuple(part.replace(START, PROBE_DIES + START) for part in command.argv)
        return ZygoteCommand(argv, command.namespaces, command.read_paths)

    return ZygoteProcess(lambda fd: [spoiled(command) for command in jail_commands(fd)], {}, jailed=True)


class Exact(ExactEngine):
    """An exact engine whose first zygotes are spoiled."""

    def __init__(self, spoil: Spoil, times: int) -> None:
        super().__init__(ready=0, cgroup=False)
        self.starts = 0
        good = self._children._start

        def start() -> ZygoteProcess:
            self.starts += 1
            return spoil() if self.starts <= times else good()

        self._children._start = start


WAYS = pytest.mark.parametrize("spoil", [killed_at_once, with_dying_self_test])
CAUSES = {
    killed_at_once: "killed by SIGKILL while it started",
    with_dying_self_test: "the process of the self-test died",
}


@WAYS
@pytest.mark.parametrize("times", [1, 2])
async def test_a_start_that_was_killed_is_tried_again_in_the_same_strong_way(spoil: Spoil, times: int) -> None:
    engine = Exact(spoil, times)
    choice = EngineChoice(Engines(), lambda: engine)
    try:
        assert (await choice.choose()).name == "exact"
        assert engine.starts == times + 1
        assert engine.locked is not None
        assert engine.locked.notes == ()
        health = await choice.health()
        assert (health.status, choice.news.since(0)) == ("ok", "")
    finally:
        await choice.aclose()


@WAYS
async def test_after_three_failures_the_engine_is_degraded_with_the_true_cause_and_tried_again(spoil: Spoil) -> None:
    engines = [Exact(spoil, 3), Exact(spoil, 3), Exact(spoil, 0)]
    choice = EngineChoice(Engines(), lambda: engines.pop(0))
    try:
        assert (await choice.choose()).name == "portable"
        health = await choice.health()
        assert health.status == "degraded"
        assert CAUSES[spoil] in health.details["exact_engine"]
        assert "CONFIG_SECCOMP" not in health.details["exact_engine"]
        assert CAUSES[spoil] in choice.news.since(0)
        assert choice.news.since(1) == ""
        await choice.try_again()
        assert (choice.name, CAUSES[spoil] in choice.news.since(1)) == ("portable", True)
        await choice.try_again()
        assert (choice.name, (await choice.health()).status) == ("exact", "ok")
        assert "exact engine again" in choice.news.since(2)
        assert choice.news.since(0) == ""  # who comes now never knew of the other
        outcome = await choice.run(parse_program("1 + 1"), NoPacks(), Limits(), Deadline.after(60))
        assert outcome.value == 2
    finally:
        await choice.aclose()


@WAYS
async def test_where_the_exact_engine_is_demanded_three_failures_are_a_refusal(spoil: Spoil) -> None:
    choice = EngineChoice(Engines(use="exact"), lambda: Exact(spoil, 3))
    try:
        with pytest.raises(EngineUnavailable, match=CAUSES[spoil]):
            await choice.choose()
    finally:
        await choice.aclose()


async def test_a_run_for_which_no_zygote_could_be_started_says_that_nothing_ran_and_what_to_do() -> None:
    engine = Exact(killed_at_once, 100)
    try:
        with pytest.raises(EngineCrashed, match="nothing of the program has run, run it again") as caught:
            await engine.run(parse_program("1"), NoPacks(), Limits(), Deadline.after(60))
        assert "killed by SIGKILL" in str(caught.value)
    finally:
        await engine.aclose()


async def test_the_first_reply_says_that_the_engine_fell_back_and_a_reload_tries_it_again(tmp_path: Path) -> None:
    engines = [Exact(killed_at_once, 3), Exact(killed_at_once, 0)]
    app = Workspace.alone(paths_in(tmp_path), engine=EngineChoice(Engines(), lambda: engines.pop(0)))
    try:
        told = [(await app.run("1")).texts for _ in range(2)]
        assert CAUSES[killed_at_once] in told[0][-1]
        assert told[1] == ("1",)
        await app.reload()
        reply = await app.run("(n for n in [2]).__next__()")
        assert (reply.texts[0], app.engine.name) == ("2", "exact")
    finally:
        await app.aclose()

"""The exact engine: its choice at the start, its children and its end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Collection
from functools import partial
from typing import Any

import anyio
import exact_attacks
import psutil
import pytest
from exact_ways import SOURCE

from ot.config.models import Engines, Limits
from ot.errors import EngineCrashed, EngineUnavailable
from ot.execution.deadline import Deadline
from ot.runtime.engines.choice import EngineChoice
from ot.runtime.engines.forked.exact import ALWAYS, ExactEngine
from ot.runtime.engines.forked.jail.channel import Room
from ot.runtime.engines.forked.zygote_process import JailReport, ZygoteProcess
from ot.runtime.program import parse_program
from pace import PATIENCE

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------- the choice at start


def zygote_that_reports(layers: dict[str, list[str]]) -> ExactEngine:
    """Return an exact engine whose zygote tells that layers do not hold."""

    class Pretending(ExactEngine):
        async def open(self) -> JailReport:
            found = await super().open()
            told = JailReport({**found.layers, **layers}, found.user, found.landlock, found.namespaces)
            try:
                self._children._check(told)
            except EngineCrashed:
                await self.aclose()
                raise
            return told

    return Pretending()


async def test_the_exact_engine_is_chosen_where_its_self_test_passes() -> None:
    choice = EngineChoice(Engines())
    try:
        assert (await choice.choose()).name == choice.name == "exact"
        health = await choice.health()
        assert all(str(health.details["layers"][layer]).startswith("on") for layer in ALWAYS)
    finally:
        await choice.aclose()


async def test_the_portable_engine_is_chosen_where_a_layer_does_not_hold() -> None:
    choice = EngineChoice(Engines(), lambda: zygote_that_reports({"landlock": ["read the host's files"]}))
    try:
        choice.spawn()
        assert (await choice.choose()).name == choice.name == "portable"
        health = await choice.health()
        assert "layer 'landlock' does not hold" in health.details["exact_engine"]
        assert "read the host's files" in health.details["exact_engine"]
    finally:
        await choice.aclose()


@pytest.mark.parametrize(
    "settings",
    [{"use": "exact"}, {"exact": {"require_layers": ["namespaces"]}}, {"use": "exact", "exact": {"ready": 1}}],
)
async def test_an_engine_or_layer_that_is_demanded_and_missing_is_a_refusal(settings: dict[str, Any]) -> None:
    layers = {"namespaces": ["see the host's files"]} if "require_layers" in str(settings) else {"seccomp": ["fork"]}

    def demanded() -> ExactEngine:
        engine = zygote_that_reports(layers)
        engine._children._check = partial(check_of, ("seccomp", *layers))
        return engine

    choice = EngineChoice(Engines.model_validate(settings), demanded)
    try:
        with pytest.raises(EngineUnavailable) as caught:
            await choice.choose()
        assert f"layer '{next(iter(layers))}' does not hold" in str(caught.value)
        assert "it needs" in str(caught.value)
    finally:
        await choice.aclose()


def check_of(layers: Collection[str], found: JailReport) -> None:
    from ot.runtime.engines.forked.exact import require

    require(layers, found)


async def test_the_trusted_engine_is_used_only_where_it_is_asked_for_and_warns(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SBX_CANARY", "canary")
    choice = EngineChoice(Engines(use="trusted"), environ=os.environ)
    try:
        program = parse_program("import os\nos.environ['SBX_CANARY']")
        outcome = await choice.run(program, exact_attacks.NoPacks(), Limits(), Deadline.after(20))
        assert (outcome.value, choice.name) == ("canary", "trusted")
        assert "without a sandbox" in caplog.text
    finally:
        await choice.aclose()


async def test_a_child_that_cannot_lock_itself_up_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ExactEngine(namespaces=False, ready=0)
    try:
        await engine.open()
        # A limit that cannot be set: setting it fails in the child.
        monkeypatch.setattr("ot.runtime.engines.forked.forked_engine._room", lambda limits: Room(1 << 27, float("nan")))
        with anyio.fail_after(PATIENCE), pytest.raises(EngineCrashed):
            await engine.run(parse_program("1"), exact_attacks.NoPacks(), Limits(), Deadline.after(10))
    finally:
        await engine.aclose()


async def test_a_crowd_that_the_zygotes_socket_cannot_hold_is_served() -> None:
    engine = ExactEngine(processes=300, ready=0, queue_seconds=60)
    program, limits = parse_program("1"), Limits()
    try:
        await engine.open()
        runs = [engine.run(program, exact_attacks.NoPacks(), limits, Deadline.after(60)) for _ in range(300)]
        assert [outcome.value for outcome in await asyncio.gather(*runs)] == [1] * 300
    finally:
        await engine.aclose()


async def test_a_zygote_that_cannot_be_started_says_why() -> None:
    from ot.runtime.engines.forked.jail_command import ZygoteCommand

    zygote = ZygoteProcess(lambda fd: [ZygoteCommand((sys.executable, "-c", "1/0"), False)], {}, jailed=True)
    with pytest.raises(EngineCrashed, match="ZeroDivisionError"):
        await zygote.await_report()


def test_children_die_with_their_server_whatever_they_do() -> None:
    with subprocess.Popen(
        [sys.executable, exact_attacks.__file__, "--linger"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)}, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        assert server.stdout.readline() == "running\n"
        below = psutil.Process(server.pid).children(recursive=True)
        assert len(below) >= 2
        server.kill()
    _, alive = psutil.wait_procs(below, timeout=PATIENCE)
    assert alive == []

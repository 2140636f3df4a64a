"""What holds for a pack whatever carries its calls out: this process, a worker, or a server on another host."""

from __future__ import annotations

import asyncio
import math
import sqlite3
from collections.abc import AsyncGenerator, Generator
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from callers import ME
from execution.backends.contract_desk import APART, BACKENDS, MIB, PACK, SOURCE, Desk, desk_of, start_host
from http_server import HttpServer
from ot.errors import InvalidArguments, ResultTooLarge, ToolFailed, ToolTimeout
from pace import PATIENCE
from proxied.desk import until
from run_app import error_of

pytestmark = pytest.mark.anyio

VALUES: list[Any] = [
    None,
    "text with ünïcode\n",
    3.5,
    math.inf,
    1 << 80,
    b"\x00\xff",
    datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    date(2026, 1, 2),
    time(3, 4),
    timedelta(days=1, microseconds=1),
    Decimal("1.10"),
    (1, (2, [3])),
    {1, 2},
    frozenset({"a"}),
    {1: "one", (1, 2): [b"x"]},
    {"$ot": "bytes", "v": "not a tag"},
    {"value": {"failure": {"error": "ToolFailed"}}, "result": 1},
]

FAILURES = {"value": "ValueError", "key": "KeyError", "file": "FileNotFoundError", "probe": "ProbeError"}
CATCH = f"""
try:
    {PACK}.fail('file')
except FileNotFoundError as error:
    found = f'caught {{error}}'
found
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Generator[HttpServer]:
    with start_host(tmp_path_factory.mktemp("host")) as started:
        yield started


@pytest.fixture(params=BACKENDS)
async def desk(request: pytest.FixtureRequest, tmp_path: Path, host: HttpServer) -> AsyncGenerator[Desk]:
    async with desk_of(request.param, tmp_path, host) as found:
        yield found


@pytest.fixture(params=APART)
async def desk_apart(request: pytest.FixtureRequest, tmp_path: Path, host: HttpServer) -> AsyncGenerator[Desk]:
    async with desk_of(request.param, tmp_path, host) as found:
        yield found


async def test_the_help_of_a_tool_is_the_same(desk: Desk, tmp_path: Path, host: HttpServer) -> None:
    (tmp_path / "control").mkdir()
    async with desk_of("worker", tmp_path / "control", host) as control:
        for name in ("forecast", "wipe", "meet"):
            command = f"ot.help(query='{PACK}.{name}')"
            expected, found = (await control.app.run(command)).text, (await desk.app.run(command)).text
            assert (
                expected.strip() == found.partition("\nDocs: ")[0].strip()
            )  # what lies beside the bundled packs has a page like them


async def test_tools_have_their_names_and_hints_and_nothing_else_is_in_the_pack(desk: Desk) -> None:
    await desk.app.definitions_of([PACK])
    tools = desk.app.picture.registry.pack(PACK).tools
    assert {"forecast", "echo", "fail", "wait", "meet", "much", "lines", "tell", "wipe", "key", "look"} == set(tools)
    assert (True, False) == (tools["forecast"].read_only, tools["forecast"].destructive)
    assert tools["wipe"].destructive
    assert tools["echo"].read_only is None


async def test_a_call_has_a_key_of_its_own_and_one_that_changes_nothing_has_none(desk: Desk) -> None:
    reply = await desk.app.run(f"[{PACK}.key(), {PACK}.look(), {PACK}.key()]")
    run = reply.meta["run"]
    assert [f"{run}-1", "", f"{run}-3"] == reply.value


async def test_the_ledger_lists_a_call_by_the_key_that_the_pack_was_given(desk: Desk) -> None:
    reply = await desk.app.run(f"{PACK}.key()")
    effects = (await desk.app.run(f"ot.effects(run={reply.meta['run']!r})")).value
    assert [(f"{PACK}.key", "done", reply.value)] == [(row["tool"], row["state"], row["key"]) for row in effects]


async def test_the_ledger_of_another_host_lists_a_call_by_the_key_that_it_came_with(
    tmp_path: Path, host: HttpServer
) -> None:
    async with desk_of("remote", tmp_path, host) as desk:
        key = (await desk.app.run(f"{PACK}.key()")).value
    ledger = sqlite3.connect(host.place.home / ".onetool" / "ledger" / "ledger.db")
    with closing(ledger):
        assert [("station.key", "done")] == list(
            ledger.execute("SELECT tool, state FROM effects WHERE given_key = ?", (key,))
        )


async def test_arguments_go_by_place_by_name_and_by_a_shortened_name(desk: Desk) -> None:
    expected = [{"city": "Bern", "day": 0, "units": "F"}]
    assert expected == await desk.call("forecast", "Bern", 1, units="F")
    assert expected == await desk.call("forecast", city="Bern", da=1, un="F")


async def test_values_keep_their_types_both_ways(desk: Desk) -> None:
    for value in VALUES:
        came = await desk.call("echo", value)
        assert (type(value), value) == (type(came), came)
    assert math.isnan(await desk.call("echo", math.nan))


async def test_a_failure_has_its_kind_and_its_message(desk: Desk) -> None:
    for kind, error in FAILURES.items():
        with pytest.raises(ToolFailed) as raised:
            await desk.call("fail", kind)
        message = "the probe is broken" if kind == "probe" else "no such thing"
        assert (f"{PACK}.fail", error, message) == (raised.value.tool, raised.value.kind, raised.value.message)


async def test_a_program_catches_a_failure_by_its_class(desk: Desk) -> None:
    assert ("caught no such thing",) == (await desk.app.run(CATCH)).texts
    assert "FileNotFoundError: no such thing" in error_of(await desk.app.run(f"{PACK}.fail('file')"))


async def test_wrong_arguments_are_refused_in_the_same_words(desk: Desk) -> None:
    with pytest.raises(InvalidArguments, match="did you mean 'city'") as raised:
        await desk.call("forecast", cty="Bern", dys=3)
    assert "forecast(city: str, days: int = 3, units: Literal['C', 'F'] = 'C', at: datetime | None = None)" in str(
        raised.value
    )
    with pytest.raises(InvalidArguments, match="argument 'city' must be str"):
        await desk.call("forecast", 3)


async def test_what_a_tool_prints_and_tells_comes_in_order(desk_apart: Desk) -> None:
    assert [(n, 5, f"step {n}") for n in range(5)] == await desk_apart.progress(f"{PACK}.tell(5)")
    assert ("so it begins\n", "told") == (await desk_apart.app.run(f"{PACK}.tell(1)")).texts


async def test_a_cancelled_call_ends_where_it_runs(desk: Desk, tmp_path: Path) -> None:
    call = asyncio.create_task(desk.call("wait", str(tmp_path)))
    await until((tmp_path / "begun").exists)
    call.cancel()
    await until((tmp_path / "ended").exists)
    assert 7 == await desk.call("echo", 7)


@pytest.mark.parametrize("kind", BACKENDS)
async def test_a_call_that_takes_too_long_is_ended_where_it_runs(kind: str, tmp_path: Path, host: HttpServer) -> None:
    async with desk_of(kind, tmp_path, host, {"limits": {"call_seconds": 2}}) as desk:
        await desk.call("echo", 1)  # what starts a pack is not part of the call's time
        with pytest.raises(ToolTimeout, match=rf"{PACK}.wait did not answer within .* s and was cancelled"):
            await desk.call("wait", str(tmp_path))
        assert (tmp_path / "begun").exists()
        await until((tmp_path / "ended").exists)


async def test_calls_are_carried_out_at_the_same_time(desk: Desk) -> None:
    async with asyncio.timeout(PATIENCE):
        met = await asyncio.gather(*(desk.call("meet", 8) for _ in range(8)))
    assert [8] * 8 == [min(count, 8) for count in met]


async def test_a_large_value_comes_whole(desk: Desk) -> None:
    came = await desk.call("much", 5 * MIB)
    assert bytes(range(256)) * (5 * MIB // 256) == came
    given = "x" * (2 * MIB)
    assert given == await desk.call("echo", given)


@pytest.mark.parametrize("kind", BACKENDS)
async def test_a_value_that_is_too_large_is_stored_and_can_be_read(kind: str, tmp_path: Path, host: HttpServer) -> None:
    async with desk_of(kind, tmp_path, host, {"limits": {"value_bytes": 2 * MIB}}) as desk:
        for size in (3, 9):  # too large here; and there, too
            with pytest.raises(ResultTooLarge) as raised:
                await desk.call("lines", size << 10)
            page = await desk.app.run(f"ot.result(handle='{raised.value.handle}', path='[1]')", ME)
            assert "y" * 1000 in page.text


async def test_a_changed_pack_is_used_without_a_restart(desk_apart: Desk) -> None:
    assert 3 == len(await desk_apart.call("forecast", "Bern"))
    desk_apart.rewrite(SOURCE.replace("days: int = 3", "days: int = 2"))
    assert 2 == len(await desk_apart.call("forecast", "Bern"))
    async with asyncio.timeout(PATIENCE):
        # A list is fetched anew after the call that told of a new revision.
        while "days: int = 2" not in (await desk_apart.app.run(f"ot.help(query='{PACK}.forecast')")).text:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.01)

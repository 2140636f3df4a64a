"""A PostgreSQL that is killed, frozen, slow or refuses: what cannot be written down is not sent, and at once."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import psycopg
import pytest

from ledger.ledger_beds import background, effect, until
from ledger.postgres_bed import PostgresBed, held, waiting
from onetool_team.ledger import postgres_effects
from onetool_team.ledger.postgres_ledger import PostgresLedger
from onetool_team.ledger.postgres_sessions import ANSWER_SECONDS
from ot.errors import LedgerUnavailable
from pace import PATIENCE, wait_while, within
from postgres_server import PASSWORD, PostgresServer
from system_package import require_programs

pytestmark = pytest.mark.anyio

KILLS = 2
ITEMS = 400


@asynccontextmanager
async def bed_on(postgres: PostgresServer, **options: Any) -> AsyncGenerator[PostgresBed]:
    """Yield a ledger to which a PostgreSQL that only the machine keeps waiting is not gone."""
    bed = PostgresBed(postgres.address, token_hex(8), **options)
    try:
        async with asyncio.timeout(4 * PATIENCE):
            await until(lambda: bed.ledger.health())  # the tables are made
            yield bed
    finally:
        await bed.aclose()


@contextmanager
def hasty(bed: PostgresBed) -> Generator[None]:
    """Give PostgreSQL in the block the time for an answer that it has with servers."""
    assert isinstance(bed.ledger, PostgresLedger)
    sessions = bed.ledger.sessions
    patience, sessions.seconds = sessions.seconds, ANSWER_SECONDS
    try:
        yield
    finally:
        sessions.seconds = patience


async def refused(bed: PostgresBed, run: str, **arguments: Any) -> str:
    """Return why a call is not sent; whoever is refused says that it failed, as the door does."""
    with pytest.raises(LedgerUnavailable) as found:
        await bed.ledger.send(effect(run, **arguments))
    bed.ledger.record_end(effect(run, **arguments), "failed")
    return found.value.why


async def states(bed: PostgresBed, run: str) -> list[str]:
    return [entry.state for entry in await bed.ledger.of_run("ada", run)]


async def is_back(bed: PostgresBed) -> None:
    async def answers() -> bool:
        await bed.ledger.runs("ada")
        return True

    await until(answers)


class Shop:
    """Sells each item once, if nobody sends a call that is not written down, or one twice."""

    def __init__(self, bed: PostgresBed) -> None:
        self._bed = bed
        self._calls = itertools.count(1)
        self._items = iter(range(ITEMS))
        self.sold = Counter[int]()
        self.unknown: set[int] = set()
        self.refused = 0
        self._news = asyncio.Event()

    async def has_sold(self, most: int) -> None:
        """Return once it has sold that much."""
        while self.sold.total() < most:
            self._news.clear()
            await self._news.wait()

    async def sell(self) -> None:
        for item in self._items:
            while not await self._is_sold(item):
                self.refused += 1
                await asyncio.sleep(0.01)

    async def _is_sold(self, item: int) -> bool:
        call = effect(f"item{item}", next(self._calls), item=item)
        try:
            if await self._bed.ledger.send(call):
                self.unknown.add(item)
                return True
        except LedgerUnavailable:
            self._bed.ledger.record_end(call, "failed")
            return False
        self.sold[item] += 1
        self._news.set()
        self._bed.ledger.record_end(call, "done")
        return True


async def test_a_database_that_is_killed_and_comes_back_has_every_entry_and_nothing_is_done_twice(
    postgres: PostgresServer,
) -> None:
    async with bed_on(postgres) as bed:
        shop = Shop(bed)
        selling = [asyncio.ensure_future(shop.sell()) for _ in range(4)]
        for n in range(1, KILLS + 1):
            await shop.has_sold(n * ITEMS // (KILLS + 1))
            await asyncio.to_thread(postgres.kill)
            await asyncio.to_thread(postgres.start)
        await asyncio.gather(*selling)
        assert shop.refused >= KILLS, "it was noticed"
        assert {1} == set(shop.sold.values())
        assert ITEMS == len(shop.sold.keys() | shop.unknown)
        for item in shop.sold:
            found = await states(bed, f"item{item}")
            assert 1 == found.count("done"), (item, found)
            assert set(found) <= {"done", "failed"}


async def test_a_background_run_is_there_after_a_kill_with_its_fence(postgres: PostgresServer) -> None:
    async with bed_on(postgres) as bed:
        await bed.ledger.add(background(), 10)
        await bed.ledger.begin("b1")
        await bed.ledger.send(effect("b1", start=1))
        postgres.kill()
        # A run that has the time waits until it can be written down.
        sending = asyncio.ensure_future(bed.ledger.send(effect("b1", call=2, start=1)))
        await asyncio.sleep(0)
        await asyncio.to_thread(postgres.start)
        assert await sending is None
        other = bed.process()
        await bed.let_the_lease_pass("b1")
        assert (start := await other.begin("b1"))
        assert (2, [1, 2]) == (start.number, [entry.call for entry in start.effects])
        assert (await bed.ledger.beat("b1", 1)).fenced


async def test_a_background_run_does_not_wait_for_ever(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_effects, "WAIT_SECONDS", 0.0)
    async with bed_on(postgres) as bed:
        await bed.ledger.add(background(), 10)
        await bed.ledger.begin("b1")
        postgres.kill()
        try:
            assert await refused(bed, "b1", call=1, start=1)
        finally:
            await asyncio.to_thread(postgres.start)


async def test_a_frozen_database_is_noticed_soon_and_then_at_once_and_ends_are_written_when_it_is_back(
    postgres: PostgresServer,
) -> None:
    async with bed_on(postgres) as bed:
        await bed.ledger.send(effect("r1"))
        await asyncio.to_thread(postgres.freeze)
        try:
            with hasty(bed), within(2.5):
                refusals = await asyncio.gather(*(refused(bed, f"f{n}", amount=n) for n in range(50)))
            assert all("unreachable" in why for why in refusals)
            bed.ledger.record_end(effect("r1"), "done")
            with within(1.0):
                for n in range(500):
                    await refused(bed, f"g{n}", amount=n)
                for step in (
                    lambda: bed.ledger.add(background(), 1),
                    lambda: bed.ledger.begin("b1"),
                    lambda: bed.ledger.beat("b1", 1),
                    lambda: bed.ledger.status("ada", "b1"),
                    lambda: bed.ledger.of_run("ada", "r1"),
                    lambda: bed.ledger.unknown("ada"),
                    lambda: bed.ledger.list_left_behind(),
                ):
                    with pytest.raises(LedgerUnavailable):
                        await step()
        finally:
            await asyncio.to_thread(postgres.thaw)
        await is_back(bed)

        async def is_written() -> bool:
            return [("done",)] == await bed.sql("SELECT state FROM effects WHERE run = 'r1'")

        await until(is_written)  # nobody has to ask for it
        for n in range(50):
            assert await states(bed, f"f{n}") in ([], ["failed"]), "what came late was not sent, and is known to be so"
        assert [] == await bed.ledger.unknown("ada")


async def test_a_database_that_takes_two_seconds_is_as_good_as_gone_and_what_arrives_late_is_known_as_not_sent(
    postgres: PostgresServer,
) -> None:
    async with bed_on(postgres) as bed:
        await bed.ledger.send(effect("r1"))
        async with held(bed):
            with hasty(bed):
                with within(2.5):
                    assert "no answer within 1 s" in await refused(bed, "r2", amount=2)
                with within(1.0):
                    await refused(bed, "r3", amount=3)

            async def is_known() -> bool:
                return [("failed",)] == await bed.sql("SELECT state FROM effects WHERE run = 'r2'")

            await until(is_known)
            await waiting(bed, "advisory")  # it is still on its way
        await waiting(bed, "advisory", 0)
        assert ["failed"] == await states(bed, "r2")
        assert await states(bed, "r3") in ([], ["failed"])
        assert await bed.ledger.send(effect("r4", amount=4)) is None


async def test_a_database_that_refuses_to_write_lets_nothing_be_sent_and_says_so_until_it_does(
    postgres: PostgresServer,
) -> None:
    async with bed_on(postgres) as bed:
        await bed.ledger.send(effect("r1"))
        await bed.ledger.add(background(), 10)
        postgres.run("ALTER SYSTEM SET default_transaction_read_only = on")
        postgres.run("SELECT pg_reload_conf()")

        assert isinstance(bed.ledger, PostgresLedger)
        sessions = bed.ledger.sessions  # each reads the settings by itself

        async def is_read_only() -> bool:
            return [[("on",)]] == await sessions.take(("SHOW default_transaction_read_only", {}))

        await until(is_read_only)
        try:
            with within(2.5):
                assert "PostgreSQL refuses: ReadOnlySqlTransaction" in await refused(bed, "r2", amount=2)
                with pytest.raises(LedgerUnavailable, match="read-only"):
                    await bed.ledger.add(background("b2"), 10)
            bed.ledger.record_end(effect("r1"), "done")
        finally:
            connection = await psycopg.AsyncConnection.connect(postgres.address, autocommit=True)
            await connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
            await connection.execute("SELECT pg_reload_conf()")
            await connection.close()
        await until(lambda: _is_done(bed))
        assert await bed.ledger.send(effect("r3", amount=3)) is None


async def _is_done(bed: PostgresBed) -> bool:
    return ["done"] == await states(bed, "r1")


# ---------------------------------------------------------------- a pooler in between

POOLER = """[databases]
postgres = host={socket} user=admin password={password}
[pgbouncer]
listen_addr =
unix_socket_dir = {place}
listen_port = 6432
auth_type = any
pool_mode = transaction
{more}
"""


@contextmanager
def pooler(postgres: PostgresServer, more: str = "") -> Generator[str]:
    """Yield the address of a pooler before PostgreSQL."""
    require_programs("pgbouncer")
    place = postgres.socket / f"pooler-{token_hex(4)}"
    place.mkdir()
    (place / "ini").write_text(POOLER.format(socket=postgres.socket, password=PASSWORD, place=place, more=more))
    for path in (place, place / "ini") if postgres.as_user else ():
        shutil.chown(path, "postgres", "postgres")
    with (place / "said").open("wb") as said:
        process = subprocess.Popen(
            [shutil.which("pgbouncer") or "", str(place / "ini")], stdout=said, stderr=said, **postgres.as_user
        )
    try:
        wait_while(lambda: _refuses(place / ".s.PGSQL.6432"))
        yield f"postgresql://admin@/postgres?host={place}&port=6432"
    finally:
        process.kill()
        process.wait(PATIENCE)


def _refuses(path: Path) -> bool:
    """Tell whether nobody listens at *path* yet; a socket is bound a moment before it listens."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) != 0


@pytest.mark.parametrize("more", ["", "ignore_startup_parameters = options"], ids=["refuses", "swallows"])
async def test_a_pooler_that_takes_no_settings_is_not_used(postgres: PostgresServer, more: str) -> None:
    with pooler(postgres, more) as address:
        bed = PostgresBed(address, token_hex(8))
        assert "must lead to PostgreSQL itself" in await refused(bed, "r1")
        await bed.aclose()

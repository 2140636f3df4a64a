"""What was sent is on the standby that takes over, and a process whose address names both goes on there."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from ledger.ledger_beds import effect, until
from ledger.postgres_bed import PostgresBed, waiting
from ot.errors import LedgerUnavailable
from postgres_server import PASSWORD, postgres_server, standby_of

pytestmark = pytest.mark.anyio


async def test_what_was_sent_is_known_after_its_machine_is_gone_and_the_standby_takes_over() -> None:
    with postgres_server("fsync=on") as primary, standby_of(primary) as standby:
        both = f"{primary.socket},{standby.socket}"
        bed = PostgresBed(f"postgresql://admin:{PASSWORD}@/postgres?host={both}&target_session_attrs=read-write")
        for call in range(20):
            await bed.ledger.send(effect(call=call, amount=call))
        bed.ledger.record_end(effect(call=0, amount=0), "done")
        await bed.ledger.settle()
        standby.freeze()
        sending = asyncio.ensure_future(bed.ledger.send(effect(call=20, amount=20)))
        (pid,) = await waiting(bed, "SyncRep")
        await bed.sql("SELECT pg_cancel_backend(%(pid)s)", pid=pid)
        with pytest.raises(LedgerUnavailable, match="canceling wait for synchronous replication"):
            await sending
        primary.kill()
        standby.thaw()
        standby.promote()

        calls = itertools.count(1)  # one that was refused is known as such, and its number is taken

        async def goes_on() -> bool:
            await bed.ledger.send(effect("r2", next(calls), amount=21))
            return True

        await until(goes_on)
        found = {entry.call: entry.state for entry in await bed.ledger.of_run("ada", "r1")}
        assert set(range(20)) <= found.keys() <= set(range(21))
        assert ("done", {"sent"}) == (found.pop(0), {found[call] for call in range(1, 20)})
        await bed.aclose()

"""What one release does with the ledger in PostgreSQL, as a process: it is run with this release's code or an older's.

It imports nothing of the tests, and nothing that the older release does not have.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from onetool_team.ledger.postgres_ledger import PostgresLedger
from onetool_team.ledger.postgres_place import PostgresPlace
from onetool_team.ledger.postgres_sessions import PostgresSessions
from onetool_team.state.state_keys import StateKeys
from ot.execution.caller import Caller
from ot.execution.ledger import Effect
from ot.ledger.background_run import BackgroundRun, RunEnd
from ot.registry.tool import Tool

PAY = Tool("bank", "pay")
KEYS = ["the key of both releases, 32 characters at least"]
AT_ONCE = 4


def tell(line: str) -> None:
    """Say *line* to whoever has started this."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def work(url: str, schema: str, name: str, count: int, total: int) -> dict[str, object]:
    """Leave *count* runs for whoever takes them, and carry out what there is until *total* have ended."""
    sessions = PostgresSessions(url, schema, answer_seconds=30.0)
    ledger = PostgresLedger(sessions, PostgresPlace(StateKeys(KEYS)))
    carried: list[str] = []
    calls = 0

    async def leave() -> None:
        for number in range(count):
            run = BackgroundRun(f"{name}-{number}", "ada", "bank.pay(amount=1)", time.time())
            await ledger.add(run, 1_000_000)

    async def call(run: str, start: int, number: int) -> None:
        nonlocal calls
        effect = Effect(Caller("ada"), run, number, 1, PAY, {"for": run, "amount": number}, start=start)
        known = await ledger.send(effect)
        assert known is None, known
        ledger.record_end(effect, "done", {"paid": number})
        calls += 1

    async def carry_out(id: str) -> None:
        start = await ledger.begin(id)
        assert start, id
        assert not start.end, id
        for number in range(3):
            await call(id, start.number, number)
        assert await ledger.end(id, start.number, RunEnd("done", time.time(), (name,)))
        carried.append(id)

    async def serve() -> None:
        while True:
            taken = await ledger.take_runs(AT_ONCE, AT_ONCE)
            await asyncio.gather(*map(carry_out, taken))
            if not taken:
                ended = [one for one in await ledger.runs("ada", 10 * total) if one.end]
                if len(ended) == total:
                    return
                await asyncio.sleep(0.02)

    async def call_in_front() -> None:
        for number in range(count):
            await call(f"{name}-front-{number}", 0, 0)

    await ledger.writer.begin()
    tell("at work")
    await asyncio.gather(leave(), serve(), call_in_front())
    await ledger.aclose()
    return {"carried": carried, "calls": calls}


if __name__ == "__main__":
    url, schema, name, count, total = sys.argv[1:]
    tell(json.dumps(asyncio.run(work(url, schema, name, int(count), int(total)))))

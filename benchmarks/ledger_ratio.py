"""Measures a run that writes one file, with the ledger and without it, run by run in turns.

python benchmarks/ledger_ratio.py [--rounds 300] [--engine portable|exact] [--power] [--json]

How many times as long a run takes because the call is written down before it is sent: the median of ratios with its
90 % interval. The runs go through the workspace as a client's do, without the protocol, which costs both the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from benchmarks.budgets import interval

from ot.config.paths import Paths
from ot.execution.effect_entries import EffectEntries
from ot.execution.ledger import NoLedger
from ot.workspace import Workspace

BAR = 1.15
COMMAND = "file.write(path='a.txt', content='x')"
WARM = 20


def opened(root: Path, name: str, settings: dict[str, Any]) -> Workspace:
    """Return a workspace of a user of its own."""
    cwd, user = root / name, root / f"user-{name}"
    for directory in (cwd, user):
        directory.mkdir()
    (user / "onetool.yaml").write_text(json.dumps(settings), encoding="utf-8")
    return Workspace.alone(Paths.of(cwd, user))


async def once(app: Workspace) -> float:
    """Return the milliseconds of one run."""
    started = time.perf_counter()
    reply = await app.run(COMMAND)
    taken = (time.perf_counter() - started) * 1000
    assert not reply.is_error, reply.text
    return taken


async def measured(recorded: Workspace, control: Workspace, rounds: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds of each run, the two in turns; which is first changes from round to round."""
    found: dict[Workspace, list[float]] = {recorded: [], control: []}
    for number in range(WARM + rounds):
        turns = (recorded, control) if number % 2 else (control, recorded)
        for app in turns:
            found[app].append(await once(app))
    return found[recorded][WARM:], found[control][WARM:]


def ratio(base: Sequence[float], other: Sequence[float]) -> dict[str, Any]:
    """Return the median of the rounds' ratios with its 90 % interval."""
    ratios = [ours / theirs for ours, theirs in zip(other, base, strict=True)]
    ends = [round(end, 3) for end in interval(ratios)]
    return {"ratio": round(statistics.median(ratios), 3), "ci90": ends, "bar": BAR}


async def main(asked: argparse.Namespace) -> dict[str, Any]:
    """Return what was measured."""
    settings = {
        "engines": {"use": asked.engine},
        "ledger": {"durability": "power" if asked.power else "process"},
        "policy": {"allow": ["file.*"]},
    }
    with tempfile.TemporaryDirectory() as root:
        recorded, control = (opened(Path(root), name, settings) for name in ("recorded", "control"))
        control.picture.runner.executor._entries = EffectEntries(NoLedger())  # pyright: ignore[reportPrivateUsage] - the control
        try:
            for app in (recorded, control):
                await app.start()
            found, without = await measured(recorded, control, asked.rounds)
        finally:
            for app in (recorded, control):
                await app.aclose()
    return {"engine": asked.engine, "durability": settings["ledger"]["durability"], **ratio(without, found)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--engine", choices=["portable", "exact"], default="exact")
    parser.add_argument("--power", action="store_true", help="with ledger.durability: power")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    told = asyncio.run(main(given))
    print(json.dumps(told) if given.json else "\n".join(f"{name:12} {value}" for name, value in told.items()))

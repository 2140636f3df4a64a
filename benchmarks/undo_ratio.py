"""Measures a run that writes one file over an old one, with what is kept for its undo and without it, in turns.

python benchmarks/undo_ratio.py [--rounds 300] [--engine portable|exact] [--root DIR] [--json]

For each size of the file: how many times as long a run takes because what was there is kept, and how many times as
long the call of ``file.write`` alone takes, without engine, door and ledger: medians of ratios with 90 % intervals.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from benchmarks.ledger_ratio import opened, ratio

from ot.execution import tool_context
from ot.execution.tool_context import ToolContext
from ot.files.path_guard import PathGuard
from ot.files.run_images import ImageBounds, ImageStore
from ot.files.run_writes import RunWrites
from ot.workspace import Workspace
from ot_tools import file

SIZES = (100, 4 << 10, 64 << 10)
READ_ONLY = "1 + 1"
WARM = 20


async def one_run(app: Workspace, command: str) -> float:
    """Return the milliseconds of one run."""
    started = time.perf_counter()
    reply = await app.run(command)
    taken = (time.perf_counter() - started) * 1000
    assert not reply.is_error, reply.text
    return taken


async def of_runs(kept: Workspace, control: Workspace, command: str, rounds: int) -> dict[str, Any]:
    """Return the ratio of whole runs."""
    found: dict[Workspace, list[float]] = {kept: [], control: []}
    for number in range(WARM + rounds):
        for app in (kept, control) if number % 2 else (control, kept):
            found[app].append(await one_run(app, command))
    return ratio(found[control][WARM:], found[kept][WARM:])


def of_calls(root: Path, size: int, rounds: int) -> dict[str, Any]:
    """Return the ratio of the call alone; each is the first of its run, which is the dearest."""
    store = ImageStore(lambda principal: root / "images", ImageBounds())
    runs, guard = count(), PathGuard((root,))

    def write(*, keeps: bool) -> float:
        writes = RunWrites()
        if keeps:
            writes.make_images = lambda: store.images_of("me", f"r{next(runs)}", "")
        with tool_context.use(ToolContext(guard, root, writes=writes)):
            started = time.perf_counter()
            file.write(path="a.txt", content="x" * size)
            writes.close()
            return (time.perf_counter() - started) * 1000

    found: dict[bool, list[float]] = {True: [], False: []}
    for number in range(WARM + rounds):
        for keeps in (True, False) if number % 2 else (False, True):
            found[keeps].append(write(keeps=keeps))
    return ratio(found[False][WARM:], found[True][WARM:]) | {"ms": round(sorted(found[False])[rounds // 2], 3)}


async def main(asked: argparse.Namespace) -> dict[str, Any]:
    """Return what was measured."""
    settings: dict[str, Any] = {"engines": {"use": asked.engine}, "policy": {"allow": ["file.*"]}}
    settings["limits"] = {"run_seconds": 60}
    with tempfile.TemporaryDirectory(dir=asked.root) as made:
        root = Path(made)
        kept, control = (
            opened(root, name, settings | {"undo": {"run_bytes": most}})
            for name, most in (("kept", 64 << 20), ("control", 0))
        )
        commands = {f"run, {size} bytes": f"file.write(path='a.txt', content='x' * {size})\n'x'" for size in SIZES}
        commands["run without writes"] = READ_ONLY
        try:
            for app in (kept, control):
                await app.start()
            found = {name: await of_runs(kept, control, text, asked.rounds) for name, text in commands.items()}
        finally:
            for app in (kept, control):
                await app.aclose()
        return found | {f"call, {size} bytes": of_calls(root, size, asked.rounds) for size in SIZES}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--engine", choices=["portable", "exact"], default="exact")
    parser.add_argument("--root", help="the directory to write in")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    told = asyncio.run(main(given))
    print(json.dumps(told) if given.json else "\n".join(f"{name:20} {value}" for name, value in told.items()))

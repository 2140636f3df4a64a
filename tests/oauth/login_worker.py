"""A process that calls the guarded server through runs, and says how many were right; started beside others."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from ot.config.paths import Paths
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.workspace import Workspace

BATCH = 20


async def main(directory: Path, calls: int) -> None:
    """Make *calls* calls in programs of twenty, beginning when told to, and print how many were right."""
    app = Workspace.alone(Paths.of(directory / "work", directory / "user"), engine=PortableEngine())
    right, errors = 0, list[str]()
    try:
        await app.run("guarded.echo(text='ready')")
        _say("ready")
        await asyncio.to_thread(sys.stdin.readline)
        for start in range(0, calls, BATCH):
            reply = await app.run(f"[int(guarded.echo(text=str(i))) for i in range({start}, {start + BATCH})]")
            if reply.is_error:
                errors.append(reply.texts[-1])
            elif json.loads(reply.texts[0]) == list(range(start, start + BATCH)):
                right += BATCH
    finally:
        await app.aclose()
    _say(json.dumps({"right": right, "errors": errors}))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))

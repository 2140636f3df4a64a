"""Attempts of the activity of docs/how-to/schedule-runs.md, as a Temporal worker would make them.

python tests/temporal_attempt.py DIRECTORY_OF_THE_PAGE PROGRAM...: prints what Temporal would be told, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment


async def attempt(program: str) -> dict[str, Any]:
    """Return what the activity returns or raises, and how often it beat."""
    from activities import run_program  # pyright: ignore - it is in the page

    beats: list[Any] = []
    environment = ActivityEnvironment()
    environment.on_heartbeat = lambda *details: beats.append(details)
    try:
        value: Any = await environment.run(run_program, program)
    except ApplicationError as error:
        return {"type": error.type, "final": error.non_retryable, "text": error.message, "run": error.details[0]}
    return {"value": value, "beats": len(beats)}


async def main(programs: list[str]) -> dict[str, Any]:
    """Return what comes of each of *programs*, and of the page's workflow."""
    from workflows import Nightly  # pyright: ignore - as above

    definition = workflow._Definition.from_class(Nightly)
    return {"workflow": definition and definition.name} | {name: await attempt(name) for name in programs}


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    sys.stdout.write(json.dumps(asyncio.run(main(sys.argv[2:]))))

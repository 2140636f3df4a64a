"""What stands for a proxied server's tools."""

from __future__ import annotations

import asyncio
from pathlib import Path


def delete(*, item: int) -> int:
    """Delete something, and write that down."""
    with Path("deleted.txt").open("a") as file:
        file.write(f"{item}\n")
    return item


async def slow(*, item: int, seconds: float) -> int:
    """Write down that it began, wait, and write down that it ended."""
    delete(item=item)
    await asyncio.sleep(seconds)
    return delete(item=-item)


def look() -> str:
    """Read something."""
    return "seen"

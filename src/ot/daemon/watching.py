"""Serves who watches the runs of the shared server: the news go out, and what is to be cancelled comes in."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any, cast

from ot.runtime.run_feed import RunFeed, RunWatcher

MALFORMED = "the request is malformed"


async def serve_watcher(feed: RunFeed, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Tell the other end what happens, until it goes away."""
    watcher = feed.watch()
    work = [asyncio.ensure_future(_send(watcher, writer)), asyncio.ensure_future(_listen(feed, watcher, reader))]
    try:
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    finally:
        feed.leave(watcher)
        for task in work:
            task.cancel()
        await asyncio.wait(work)


async def _send(watcher: RunWatcher, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while True:
            writer.write(await watcher.take())
            await writer.drain()


async def _listen(feed: RunFeed, watcher: RunWatcher, reader: asyncio.StreamReader) -> None:
    """Cancel what is asked for; a line that is longer than any of ours ends the connection."""
    with suppress(ConnectionError, ValueError):
        while line := await reader.readline():
            run, call, why = _read_request(line)
            why = why or feed.cancel(run, call)
            watcher.tell("refused" if why else "cancelled", run=run, call=call, why=why)


def _read_request(line: bytes) -> tuple[str, int | None, str]:
    """Return the run, and the call, that are to be cancelled, and what is wrong with the request."""
    try:
        said: Any = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    found = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    run, call = found.get("cancel"), found.get("call")
    if not isinstance(run, str) or not (call is None or type(call) is int):
        return "", None, MALFORMED
    return run, call, ""

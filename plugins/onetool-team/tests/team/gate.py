"""A run that is under way until a test opens a gate."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2

from http_server import HttpServer, call, reply_of
from pace import wait_while

PACK = '''"""A gate that a test opens."""

import time
from pathlib import Path


def wait(*, entered: str, opened: str) -> str:
    """Say that it has begun, and wait until the gate is open."""
    Path(entered).touch()
    while not Path(opened).exists():
        time.sleep(0.01)
    return "through"
'''


def write_gate(root: Path) -> None:
    """Give the server that is started below *root* the pack with the gate."""
    pack = root / "home" / ".onetool" / "tools" / "gate" / "gate_tools.py"
    pack.parent.mkdir(parents=True, exist_ok=True)
    pack.write_text(PACK)


async def begun(server: HttpServer, client: httpx2.AsyncClient, era: str) -> tuple[asyncio.Task[httpx2.Response], Path]:
    """Return a run that is inside a call, and the file that lets it go on."""
    entered, opened = server.place.cwd / "entered", server.place.cwd / "opened"
    command = f"gate.wait(entered={str(entered)!r}, opened={str(opened)!r})"
    run = asyncio.ensure_future(client.post(server.url, json=call(command, era)))
    await anyio.to_thread.run_sync(lambda: wait_while(lambda: None if entered.exists() else "the call has not begun"))
    return run, opened


def told(response: httpx2.Response) -> tuple[int, str, Any]:
    """Return the status of an answer, its text, and the class of its error."""
    result = reply_of(response)["result"]
    return response.status_code, result["content"][0]["text"], result["_meta"]["onetool"].get("error")

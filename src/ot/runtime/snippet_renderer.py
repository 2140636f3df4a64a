"""Renders Jinja2 templates in a process of its own, with little memory and no time to lose.

Jinja's sandbox keeps a template from Python's internals but not from ``'x' * 10**10`` or endless loops:
only a process can be bounded and thrown away. Run as a script it is that process; imported, its client.
It starts at the first snippet and ends with the server, whose death closes its standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

MAX_RENDERED = 1 << 20
RENDER_SECONDS = 2.0
MEMORY_BYTES = 512 << 20


class SnippetRenderer:
    """Renders one template at a time in the guarded process."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    async def render(self, body: str, values: dict[str, Any], marker: str) -> dict[str, Any]:
        """Return ``{"text", "values"}``: the template with a marker for each value, or ``{"error"}``."""
        async with self._lock:
            try:
                async with asyncio.timeout(RENDER_SECONDS + (0 if self._process else 5)):
                    return await self._ask({"body": body, "values": values, "marker": marker})
            except (TimeoutError, OSError, ValueError, EOFError, RuntimeError, asyncio.IncompleteReadError):
                # RuntimeError is uvloop's word for a pipe whose other end has just gone.
                await self._end()
                return {"error": "the template takes too much time or memory"}
            except asyncio.CancelledError:
                await self._end()
                raise

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._process is not None and self._process.returncode is not None:
            self._process = None  # it died while nobody asked it anything
        process = self._process = self._process or await self._start()
        assert process.stdin and process.stdout
        line = json.dumps(request).encode()
        process.stdin.write(len(line).to_bytes(4, "big") + line)
        await process.stdin.drain()
        size = int.from_bytes(await process.stdout.readexactly(4), "big")
        return json.loads(await process.stdout.readexactly(size))

    @staticmethod
    async def _start() -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-I", str(Path(__file__)),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            env={}, cwd="/" if sys.platform != "win32" else None,
        )  # fmt: skip

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process and process.returncode is None:
            process.kill()
            await process.wait()

    async def aclose(self) -> None:
        """End the process."""
        await self._end()


# ---------------------------------------------------------------- the guarded process


def _serve() -> None:  # pragma: no cover - runs in the other process
    _limit_memory()
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415 - only this process pays for it

    wire = sys.stdin.buffer, sys.stdout.buffer
    while head := wire[0].read(4):
        request = json.loads(wire[0].read(int.from_bytes(head, "big")))
        reply = json.dumps(_render(ImmutableSandboxedEnvironment, request)).encode()
        wire[1].write(len(reply).to_bytes(4, "big") + reply)
        wire[1].flush()


def _limit_memory() -> None:  # pragma: no cover - runs in the other process
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _render(environment_type: Any, request: dict[str, Any]) -> dict[str, Any]:  # pragma: no cover - other process
    import jinja2  # noqa: PLC0415 - as above

    values: list[Any] = []

    # Without pass_context the values of constant expressions would be marked when the template is compiled.
    @jinja2.pass_context
    def mark(_context: Any, value: Any) -> str:
        # The client decides how a value is written, once it knows where in the code it stands.
        if isinstance(value, _Code):
            return str(value)
        if value is jinja2.Undefined or isinstance(value, jinja2.Undefined):
            value = str(value)
        values.append(value if isinstance(value, str | int | float | bool | list | dict | type(None)) else str(value))
        return f"{request['marker']}{len(values) - 1}_"

    environment = environment_type(undefined=jinja2.StrictUndefined, finalize=mark, autoescape=False)
    environment.filters["code"] = _Code
    try:
        text = ""
        for part in environment.from_string(request["body"]).generate(**request["values"]):
            text += part
            if len(text) > MAX_RENDERED:
                return {"error": "the template renders to more than 1 MiB"}
        return {"text": text, "values": values}
    except MemoryError:
        return {"error": "the template takes too much memory"}
    except Exception as error:  # noqa: BLE001 - a template is other people's code
        return {"error": f"{type(error).__name__}: {error}"[:500]}


class _Code(str):
    """Text that the template's author wants in the code as it is: ``{{ name | code }}``."""

    __slots__ = ()


if __name__ == "__main__":  # pragma: no cover - runs in the other process
    _serve()

"""Runs commands from inside a run."""

from __future__ import annotations

from contextvars import ContextVar

from escapes.packs._watch import WATCH

pack = "meta"
__all__ = ["run"]

_depth: ContextVar[int] = ContextVar("depth", default=0)


async def run(command: str) -> str:
    """Return the text of a nested run's reply."""
    with WATCH.call("meta.run", command):
        assert WATCH.app
        token = _depth.set(_depth.get() + 1)
        WATCH.max_depth = max(WATCH.max_depth, _depth.get())
        try:
            reply = await WATCH.app.run(command)
        finally:
            _depth.reset(token)
        return "\n".join(reply.texts)

"""EffectEntries: the door's side of the ledger: what is written before a call is sent, and how the call ended."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from ot.errors import (
    InvalidArguments,
    LedgerUnavailable,
    NotApproved,
    NotPlainData,
    ResultTooLarge,
    ServerUnavailable,
    ToolBusy,
    ToolDenied,
    ToolError,
    ToolFailed,
    ToolUnavailable,
)
from ot.execution.call_context import CallContext
from ot.execution.ledger import Effect, HowEnded, Ledger, UnknownEffect

logger = logging.getLogger(__name__)

FIND_OUT = "Nobody is there to be asked: find out whether it did before you call it again"
LOOK_FIRST = "Find out whether it did before you call it"
PAUSE_SECONDS = 5.0
"""How long an unavailable ledger is left alone: a file that is locked is waited for at each attempt."""
NOT_SENT = (ToolFailed, ToolBusy, ToolUnavailable, ToolDenied, InvalidArguments, NotPlainData)
"""The tool said that it failed, or was surely never reached."""


class EffectEntries:
    """Writes each call into the ledger, and asks about one that may have been made before."""

    def __init__(self, ledger: Ledger, *, refuse: bool = False) -> None:
        """Write into *ledger*; *refuse* the calls of programs in the foreground, too, while it is unavailable."""
        self._ledger = ledger
        self._refuse = refuse
        self._pause_until = 0.0
        self._why = ""

    async def write(self, effect: Effect, context: CallContext, *, again: bool = False) -> bool:
        """Wait until the call may be sent, and return whether it is recorded.

        Unless it is to be sent *again* anyway, one that was sent before with an unknown end is asked about first.

        Raises:
            NotApproved: It may have been made before, and nobody wants it again.
            LedgerUnavailable: It cannot be written down, and must be.
        """
        must = self._refuse or effect.start > 0
        if not must and time.monotonic() < self._pause_until:
            return self._unrecorded(context)
        try:
            if earlier := await self._ledger.send(effect, again=again):
                await _agree_again(earlier, effect, context)
                await self._ledger.send(effect, again=True)
        except LedgerUnavailable as error:
            if must:
                raise LedgerUnavailable(error.why, effect.tool.full_name) from None
            logger.warning("calls are not written to the ledger: %s", error.why)
            self._pause_until, self._why = time.monotonic() + PAUSE_SECONDS, error.why
            return self._unrecorded(context)
        return True

    def _unrecorded(self, context: CallContext) -> bool:
        if context.effects:
            context.effects.add_unrecorded(self._why)
        return False

    def record_end(self, effect: Effect, how: HowEnded, value: Any) -> None:
        """Write down how a call ended; of a run in the background also what it returned."""
        self._ledger.record_end(effect, how, value if effect.start else None)

    async def settle(self) -> None:
        """Wait until the ends of calls so far are recorded."""
        await self._ledger.settle()


class SummedEntries:
    """One entry a tool and run, for Python's own file functions, of which a program may make thousands of calls.

    A run in the background has an entry a call: each must find out whether another start has taken its place.
    """

    def __init__(self, entries: EffectEntries) -> None:
        """Write into *entries*."""
        self._entries = entries
        self._open: dict[str, tuple[Effect, bool, HowEnded]] = {}
        self._first = asyncio.Lock()

    async def write(self, effect: Effect, context: CallContext) -> bool:
        """Wait until the call may be sent: what was done to a file can be seen, so nobody is asked again."""
        if effect.start:
            return await self._entries.write(effect, context, again=True)
        name = effect.tool.full_name
        if name not in self._open:
            async with self._first:  # no other call may be sent before the entry is written
                if name not in self._open:
                    self._open[name] = effect, await self._entries.write(effect, context, again=True), "failed"
        return True

    def record_end(self, effect: Effect, how: HowEnded, value: Any) -> None:
        """Take how a call ended into the sum: one that is unknown makes it unknown, one that is done done."""
        if effect.start:
            self._entries.record_end(effect, how, value)
        elif (found := self._open.get(effect.tool.full_name)) and found[2] != "unknown" and how != "failed":
            self._open[effect.tool.full_name] = (*found[:2], how)

    def end(self) -> None:
        """Write the sums down."""
        for effect, is_written, how in self._open.values():
            if is_written:
                self._entries.record_end(effect, how, None)
        self._open = {}


type Entries = EffectEntries | SummedEntries


async def _agree_again(earlier: UnknownEffect, effect: Effect, context: CallContext) -> None:
    """Wait until a call that was sent before may be sent again; for an unmarked tool the program is only told."""
    held = effect.tool
    if held.destructive or held.read_only is False:
        if context.consent is None:
            raise NotApproved(held.full_name, f"{describe_earlier(earlier)}. {FIND_OUT}")
        await context.consent.require_again(held, effect.arguments, describe_earlier(earlier), LOOK_FIRST)
    elif context.told:
        text = f"note: {held.full_name} is called again: {describe_earlier(earlier)}\n"
        context.told("print", held.full_name, {"text": text})


def how_failed(failure: ToolError) -> HowEnded:
    """Return what a sent call's failure says about its effect."""
    if isinstance(failure, ResultTooLarge):
        return "done"
    surely = not failure.unknown if isinstance(failure, ServerUnavailable) else isinstance(failure, NOT_SENT)
    return "failed" if surely else "unknown"


def describe_earlier(earlier: UnknownEffect) -> str:
    """Return what is known about the same call, made before."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(earlier.at))
    where = f" (run {earlier.run_id}" + (f", line {earlier.line})" if earlier.line else ")")
    return f"the same call was sent at {when}{where}, and whether it took effect is unknown"

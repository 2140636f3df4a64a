"""Ledger: the seam at which calls that may have effects are written down before they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ot.execution.caller import Caller
from ot.registry.tool import Tool

SETTLE_SECONDS = 0.5
"""A reply waits no longer for its ledger: what is not written by then is written soon."""

type HowEnded = Literal["done", "failed", "unknown"]
"""The tool did it; it said that it did not, or was never reached; nobody knows."""

type NotMade = Literal["refused", "declined"]
"""The policy or an approval forbids it; its user said no, or could not be asked."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One call, on its way to a tool that may change something."""

    caller: Caller
    run_id: str
    call_id: int
    line: int | None
    tool: Tool
    """With no hint that is laxer than those its user approved."""
    arguments: Mapping[str, Any] = field(repr=False)
    allowed: str = ""
    """What allowed it: a pattern of the policy, a user's consent, or the tool's own hint."""
    start: int = 0
    """The number of the run's start, of a run in the background."""
    given_key: str = ""
    """What whoever asked for the call from another host knows it by."""
    directory: str = ""
    """Where the program works that makes it; empty where a principal has one place only."""

    @property
    def key(self) -> str:
        """What names this call and no other: a tool that is handed it twice can tell that it is the same call."""
        return self.given_key or call_key(self.run_id, self.start, self.call_id)


def call_key(run_id: str, start: int, call_id: int) -> str:
    """Return the key of a call that a run made."""
    return f"{run_id}-{start}-{call_id}" if start else f"{run_id}-{call_id}"


@dataclass(frozen=True, slots=True)
class UnknownEffect:
    """The same call, made before, of which nobody knows whether it had its effect."""

    run_id: str
    line: int | None
    at: float
    """When it was sent, in seconds since 1970."""


class Ledger(Protocol):
    """Writes down what is sent and how it ended, so that "did it happen?" has an answer."""

    async def send(self, effect: Effect, *, again: bool = False) -> UnknownEffect | None:
        """Wait until it is recorded that this call is about to be sent.

        Unless it is to be sent *again* all the same, the same call of this principal whose effect is unknown is
        returned instead, and nothing is written.

        Raises:
            LedgerUnavailable: It cannot be written down, so it must not be sent.
            RunFenced: Another start has taken the place of the one that makes the call.
        """
        ...

    def record_end(self, effect: Effect, how: HowEnded, value: Any = None) -> None:
        """Write down how it ended, soon; what is not written down by a crash stays unknown.

        Of a run in the background, *value* is what the call returned.
        """
        ...

    async def settle(self) -> None:
        """Wait until the ends of calls so far are recorded, but not for a slow ledger."""
        ...


class NoLedger:
    """Writes nothing down."""

    async def send(self, effect: Effect, *, again: bool = False) -> UnknownEffect | None:
        """Forget it."""

    def record_end(self, effect: Effect, how: HowEnded, value: Any = None) -> None:
        """Forget it."""

    async def settle(self) -> None:
        """Wait for nothing."""


class EffectWatcher(Protocol):
    """Watches calls on their way to tools, beside the ledger: an audit log is one."""

    async def sending(self, effect: Effect) -> None:
        """Take note that the call is about to be sent; a ToolError keeps it from being sent."""
        ...

    def note_end(self, effect: Effect, how: HowEnded) -> None:
        """Take note of how it ended; must be quick and must not raise."""
        ...

    def note_refused(
        self, tool: Tool, caller: Caller, how: NotMade, arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Take note of a call that was not made; must be quick and must not raise."""
        ...

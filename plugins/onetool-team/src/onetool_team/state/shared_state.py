"""The seam of what replicas share: small values by key, locks, and mailboxes."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol


class StateUnavailable(Exception):
    """The shared state cannot be reached; whoever asks does without, and says what that means."""


class SharedState(Protocol):
    """Keeps small values for all replicas; every method raises StateUnavailable when it cannot be reached.

    Keys are texts of ours, never a principal's own: whoever makes one hashes what came from outside.
    """

    replicas: bool
    """Whether other processes may share it: False for memory."""

    @property
    def trouble(self) -> str:
        """Why it cannot be reached, and since when, for people; empty while it can be."""
        ...

    async def get(self, key: str) -> bytes | None:
        """Return the value, or nothing."""
        ...

    async def set(self, key: str, value: bytes, seconds: float | None = None) -> None:
        """Keep *value*, for *seconds* if given."""
        ...

    async def add(self, key: str, value: bytes, seconds: float | None = None) -> bool:
        """Keep *value* if the key has none, and return whether it was kept."""
        ...

    async def pop(self, key: str) -> bytes | None:
        """Return the value and forget it, in one step: of several who ask, one gets it."""
        ...

    async def delete(self, key: str) -> None:
        """Forget the value."""
        ...

    async def count(self, key: str) -> int:
        """Add one to the number of *key*, which begins at zero, and return it; ``get`` returns its digits."""
        ...

    async def join(self, key: str, member: str, seconds: float) -> None:
        """Count *member* among those of *key* for *seconds* from now; for none, it has left."""
        ...

    async def members(self, key: str) -> list[str]:
        """Return the members of *key* whose time is not over."""
        ...

    def lock(self, key: str, seconds: float) -> AbstractAsyncContextManager[None]:
        """Hold the lock of *key* in the block, at most *seconds*; others wait for it.

        After *seconds* another may have it, although the block goes on: choose them longer than the block may take.
        """
        ...

    async def send(self, mailbox: str, message: bytes, seconds: float) -> None:
        """Put *message* into a mailbox, which is forgotten when nobody has read it for *seconds*."""
        ...

    async def receive(self, mailbox: str, seconds: float) -> bytes | None:
        """Return the oldest message of a mailbox, or nothing if none comes within *seconds*."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...

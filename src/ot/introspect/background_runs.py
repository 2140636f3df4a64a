"""What the ``ot`` pack asks of background runs; whoever carries them out stands elsewhere."""

from __future__ import annotations

from typing import Any, Protocol

from ot.execution.caller import Caller


class RunActions(Protocol):
    """Begins runs in the background, tells of them and cancels them, each for its caller."""

    async def begin(self, caller: Caller, command: str, name: str) -> dict[str, Any]:
        """Have *command* carried out, and return what is known of the run."""
        ...

    async def state(self, caller: Caller, id: str, wait: float) -> Any:
        """Return the state of one run, waiting a while for its end, or of the latest runs."""
        ...

    async def cancel(self, caller: Caller, id: str) -> dict[str, Any]:
        """Want a run to end."""
        ...

"""Callers for tests: the user of this process, who can be asked, and somebody else."""

from __future__ import annotations

from ot.config.principal import os_user
from ot.execution.caller import AskUser, Caller

ME = Caller("me")
SOMEBODY_ELSE = Caller("somebody else")


def asking(ask: AskUser | None) -> Caller:
    """Return this process's user, whose questions go to *ask*."""
    return Caller(os_user(), ask=ask)

"""The trusted engine: programs run by CPython in a process of their own, held by nothing else."""

from __future__ import annotations

import os
from typing import Any

from ot.runtime.engines.forked import ForkedEngine
from ot.runtime.engines.jail_command import trusted_command
from ot.runtime.engines.zygote_process import ZygoteProcess

WARNING = (
    "engines.use is 'trusted': programs run without a sandbox, with all your rights and your environment; "
    "whoever writes what the model reads can run code as you"
)


class TrustedEngine(ForkedEngine):
    """Runs each program in an ordinary child, in the server's environment and working directory."""

    name = "trusted"

    def __init__(self, **options: Any) -> None:
        """For *options* see ForkedEngine."""
        super().__init__(_start, **options)

    def details(self) -> dict[str, Any]:
        """Return that nothing holds a program."""
        return super().details() | {"layers": "none", "warning": WARNING}


def _start() -> ZygoteProcess:
    return ZygoteProcess(lambda fd: [trusted_command(fd)], os.environ, jailed=False)

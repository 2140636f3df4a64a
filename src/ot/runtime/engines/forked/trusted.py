"""The trusted engine: programs run by CPython in a process of their own, held by nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ot.runtime.engines.forked.forked_engine import ForkedEngine
from ot.runtime.engines.forked.jail_command import trusted_command
from ot.runtime.engines.forked.zygote_process import ZygoteProcess

WARNING = (
    "engines.use is 'trusted': programs run without a sandbox, with all your rights and your environment; "
    "whoever writes what the model reads can run code as you"
)


class TrustedEngine(ForkedEngine):
    """Runs each program in an ordinary child, in an environment that it is given and the server's directory."""

    name = "trusted"

    def __init__(self, environ: Mapping[str, str], **options: Any) -> None:
        """Give programs *environ*; for *options* see ForkedEngine."""
        super().__init__(partial(_start, environ), **options)

    def details(self) -> dict[str, Any]:
        """Return the details of the engine, with a warning: it does not contain programs."""
        return super().details() | {"layers": "none", "warning": WARNING}


def _start(environ: Mapping[str, str]) -> ZygoteProcess:
    return ZygoteProcess(lambda fd: [trusted_command(fd)], environ, jailed=False)

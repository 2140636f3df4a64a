"""Children that end while the zygote reaps others."""

from __future__ import annotations

import subprocess
import sys

from ot.runtime.engines.forked.jail.zygote import REMEMBERED

STORM = """
import os, signal, socket
from ot.runtime.engines.forked.jail.zygote import Zygote
zygote = Zygote(socket.socketpair()[0], {"jailed": False})
signal.signal(signal.SIGCHLD, zygote._reap)
for _ in range(3000):
    os.fork() or os._exit(0)
zygote._reap()
print(len(zygote._ends))
"""


def test_children_that_end_while_others_are_reaped_do_not_end_the_zygote() -> None:
    ended = subprocess.run([sys.executable, "-c", STORM], capture_output=True, timeout=60, check=False, text=True)
    assert ended.stderr == ""
    assert int(ended.stdout) == REMEMBERED

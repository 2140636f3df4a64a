"""What a zygote's modules would do after each fork, and do not."""

from __future__ import annotations

import subprocess
import sys

FORKS = """
import os
from ot.runtime.engines.forked.jail import without_fork_hooks
with without_fork_hooks():
    os.register_at_fork(before=lambda: os.write(1, b"before "), after_in_child=lambda: os.write(1, b"ignored "))
os.register_at_fork(after_in_child=lambda: os.write(1, b"kept"))
pid = os.fork()
os.waitpid(pid, 0) if pid else os._exit(0)
"""


def test_hooks_of_modules_imported_meanwhile_never_run_and_later_ones_do() -> None:
    ended = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, timeout=20, check=True)
    assert ended.stdout == b"kept"

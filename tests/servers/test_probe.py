"""A look at a server brings its tools, ends in time, and leaves no process behind."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from ot.errors import ServerUnavailable
from ot.servers.connection import probe
from ot.servers.spec import ServerSpec

pytestmark = pytest.mark.anyio

SILENT = """
import os, sys, time
with open(sys.argv[1], "w") as file:
    file.write(str(os.getpid()))
sys.stderr.write("thinking\\n")
sys.stderr.flush()
time.sleep(60)
"""


def has_ended(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def test_a_silent_server_is_given_up_in_time_and_ended(tmp_path: Path) -> None:
    script, pid_file = tmp_path / "silent.py", tmp_path / "pid"
    script.write_text(SILENT)
    spec = ServerSpec("silent", "silent", command=sys.executable, args=(str(script), str(pid_file)), start_seconds=2)
    with pytest.raises(ServerUnavailable, match="did not start within 2 s") as error:
        await probe(spec)
    assert "It said: thinking" in str(error.value)
    assert has_ended(int(pid_file.read_text()))


async def test_a_program_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(ServerUnavailable, match="no-such-program"):
        await probe(ServerSpec("gone", "gone", command="no-such-program"))


async def test_a_server_with_a_problem_is_not_started() -> None:
    with pytest.raises(ServerUnavailable, match="needs TOKEN"):
        await probe(ServerSpec("s", "s", command="sh", problem="env.A needs TOKEN"))


async def test_an_address_where_nobody_listens_is_unavailable() -> None:
    with pytest.raises(ServerUnavailable):
        await probe(ServerSpec("far", "far", url="http://127.0.0.1:9/mcp", start_seconds=10))

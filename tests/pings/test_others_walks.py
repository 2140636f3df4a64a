"""Whatever tree one client of the shared server walks, the others are answered as if it did not."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from daemon.shared_user import SharedUser, shared_user
from mcp_wire import WireServer
from pings.due_pings import DuePings

FILES = 200_000
MORE_SECONDS = 0.05
"""What a ping may take beyond the slowest of the control's."""
TIMES = 3
"""How many times as long as the control's a run may take, by the median."""
ATTEMPTS = 3
"""What a busy machine adds is not there each time; a stall is."""
RUNS = 15
MEMORY = Path("/dev/shm")
CONFIG = """\
engines: {use: exact}
policy: {allow: ["file.*"]}
"""
PROGRAM = """
import asyncio
async def look():
    try:
        return await {call}
    except Exception as error:
        return str(error)
await asyncio.gather(*[look() for _ in range(32)])
"""
WALKS = ("file.search(pattern='(a|b|c)+zq')", "file.tree()")
MANY = {
    "os.listdir": "import os\nlen(os.listdir('many'))",
    "Path.rglob": "from pathlib import Path\nsum(1 for _ in Path('many').rglob('f*'))",
}


@pytest.fixture(scope="module")
def hostile() -> Iterator[Path]:
    """A repository with rules that take long, names that they take long for, and a directory of very many files."""
    place = Path(tempfile.mkdtemp(prefix="walks", dir=MEMORY if MEMORY.is_dir() else None))
    (place / ".git").mkdir()
    (place / "many").mkdir()
    (place / ".gitignore").write_text(("*a" * 100 + "b\n") * 3000)
    for number in range(300):
        (place / ("a" * 200 + str(number))).touch()
    many = os.open(place / "many", os.O_RDONLY)
    for number in range(FILES):
        os.mknod(f"f{number}", dir_fd=many)
    os.close(many)
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedUser]:
    with shared_user(tmp_path_factory.mktemp("user")) as user:
        user.config.write_text(CONFIG)
        yield user


def answers(client: WireServer) -> tuple[float, float]:
    """Return the slowest ping and the median of a few runs, in seconds."""
    with DuePings(client) as pings:
        seconds: list[float] = []
        for _ in range(RUNS):
            started = time.perf_counter()
            assert client.run("1 + 1", timeout=60).text == "2"
            seconds.append(time.perf_counter() - started)
    return pings.worst, median(seconds)


def lateness(client: WireServer, busy: WireServer, program: str) -> tuple[float, float]:
    """Return by how much the slowest ping is late while *busy* walks, and how many times as long a run takes."""
    ping, run = answers(client)
    walking = busy.send_run(program)
    late_ping, late_run = answers(client)
    busy.cancel(walking)
    # Its own next call has a helper again.
    assert ".gitignore" in busy.run("file.glob(pattern='.gitignore')", timeout=60).text
    return late_ping - ping, late_run / run


@pytest.mark.parametrize("walk", WALKS)
def test_a_tree_that_one_client_walks_keeps_no_other_waiting(user: SharedUser, hostile: Path, walk: str) -> None:
    with user.client() as client, user.client(cwd=hostile) as busy:
        assert busy.run("file.info(path='many')['type']").text == "directory"
        seen: list[tuple[float, float]] = []
        while len(seen) < ATTEMPTS:
            seen.append(lateness(client, busy, PROGRAM.format(call=walk)))
            if seen[-1][0] <= MORE_SECONDS and seen[-1][1] <= TIMES:
                return
        pytest.fail(f"late by seconds, times as long: {seen}")


def test_a_directory_of_very_many_files_is_listed_by_pythons_own_functions(user: SharedUser, hostile: Path) -> None:
    with user.client(cwd=hostile) as client:
        assert {name: client.run(program).text for name, program in MANY.items()} == dict.fromkeys(MANY, str(FILES))

"""What servers spool is theirs while they live, and goes soon after they were killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from ot.workers.spool_directories import SpoolDirectories

SERVER = """
import sys
from pathlib import Path
from ot.workers.spool_directories import SpoolDirectories
directories = SpoolDirectories(Path(sys.argv[1]))
(directories.new() / "value.txt").write_text("x" * 1000)
print("spooled", flush=True)
sys.stdin.read()
"""


def age(place: Path) -> None:
    """Let everything in *place* seem as old as an hour."""
    for path in place.rglob("*"):
        os.utime(path, (0, time.time() - 3600))


def test_what_a_killed_server_has_spooled_goes_and_what_a_live_one_has_stays(tmp_path: Path) -> None:
    place = tmp_path / "spool"
    other = SpoolDirectories(place)
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "spooled\n"
        age(place)
        other.sweep()
        assert other.total_bytes() == 1000
        server.kill()
    other.sweep()
    assert list(place.iterdir()) == []


def test_what_was_just_left_is_not_taken_from_who_is_about_to_hold_it(tmp_path: Path) -> None:
    place = tmp_path / "spool"
    (place / "server-new").mkdir(parents=True)
    directories = SpoolDirectories(place)
    directories.sweep()
    assert [path.name for path in place.iterdir()] == ["server-new"]


def test_a_server_makes_its_directory_again_and_leaves_nothing_in_the_end(tmp_path: Path) -> None:
    place = tmp_path / "spool"
    directories = SpoolDirectories(place)
    first = directories.new()
    shutil.rmtree(place)
    second = directories.new()
    assert second.is_dir()
    assert first.parent == second.parent
    assert second.stat().st_mode & 0o777 == second.parent.stat().st_mode & 0o777 == 0o700
    age(place)
    SpoolDirectories(place).sweep()
    assert second.is_dir()
    directories.close()
    assert list(place.iterdir()) == []

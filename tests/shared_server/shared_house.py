"""SharedHouse: a user whose commands are typed, with a pack that asks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daemon.shared_user import SharedUser
from pace import PATIENCE
from server.asked_talk import place as place_with_pack


def own_command(*arguments: str) -> tuple[str, ...]:
    """Return the command line of ``onetool`` as it is installed."""
    return (str(Path(sys.executable).with_name("onetool")), *arguments)


@dataclass(frozen=True)
class SharedHouse(SharedUser):
    """A home, a directory to work in, and where the sockets are."""

    def directory_beside(self, name: str) -> Path:
        """Make another directory to work in."""
        made = self.cwd.parent / name
        made.mkdir()
        return made

    def typed(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Type a command of ``onetool``, and wait until it has ended."""
        return subprocess.run(
            own_command(*arguments),
            cwd=self.cwd,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            timeout=PATIENCE * 2,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def servers(self) -> list[dict[str, Any]]:
        """Return the shared servers that run, as ``onetool ps`` shows them."""
        done = self.typed("ps", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["servers"]


@contextmanager
def shared_house(root: Path, config: str = "") -> Generator[SharedHouse]:
    """Yield a house below *root*; whatever was started there is ended with it."""
    place = place_with_pack(root, config)
    # A socket's path is short, and that of a test's directory is not.
    house = SharedHouse(place.home, place.cwd, Path(tempfile.mkdtemp(prefix="ot", dir="/tmp")))
    try:
        yield house
    finally:
        ended = house.typed("stop", "--now")
        shutil.rmtree(house.runtime, ignore_errors=True)
        assert ended.returncode == 0, ended.stderr

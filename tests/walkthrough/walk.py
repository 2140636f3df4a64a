"""A newcomer's way through the README and the tutorial: in an empty home, with every step timed beside a control."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from uv import find_uv_bin

from console_blocks import STEP, check, typed_commands
from uv_outside import uv_cache_dir

ROOT = Path(__file__).parents[2]
CONTROL = "import fastmcp"
"""What every server of this kind pays at its start: times are told as multiples of it."""
CALM_CONTROL = 1.0
"""Seconds that the control takes where nothing else runs."""


@dataclass
class Walk:
    """One newcomer: their clone, their home, and how long each step took them."""

    place: Path
    steps: list[tuple[str, str, float]] = field(default_factory=list[tuple[str, str, float]])
    controls: list[float] = field(default_factory=list[float])

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def clone(self) -> Path:
        return self.place / "clone"

    @property
    def environment(self) -> dict[str, str]:
        """A login shell's: the home is new, and nothing of this project is on the PATH but what was installed."""
        bare = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
        ours = str(Path(sys.executable).parent)
        paths = [str(self.place / "bin"), *(path for path in os.environ["PATH"].split(":") if path != ours)]
        return bare | {
            "HOME": str(self.home), "PATH": ":".join(paths), "UV_PYTHON": sys.executable,
            "UV_TOOL_DIR": str(self.place / "tools"), "UV_TOOL_BIN_DIR": str(self.place / "bin"),
        }  # fmt: skip

    def prepare(self) -> None:
        """Make the clone, and a home that is empty but for uv, and for what uv and npm have downloaded before."""
        (self.place / "bin").mkdir()
        for program in ("uv", "uvx"):
            (self.place / "bin" / program).symlink_to(Path(find_uv_bin()).with_name(program))
        (self.home / ".cache").mkdir(parents=True)
        (self.home / ".cache/uv").symlink_to(uv_cache_dir())
        npm = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".npm"
        npm.mkdir(exist_ok=True)
        (self.home / ".npm").symlink_to(npm)
        fresh_clone(self.clone)

    @contextmanager
    def step(self, page: str, what: str) -> Generator[None]:
        """Time one step."""
        begun = time.monotonic()
        yield
        self.steps.append((page, what, time.monotonic() - begun))

    def control(self) -> None:
        """Time the control once, with the interpreter that was installed."""
        begun = time.monotonic()
        python = self.place / "tools/onetool-run/bin/python"
        subprocess.run([str(python), "-c", CONTROL], env=self.environment, check=True, timeout=120)
        self.controls.append(time.monotonic() - begun)

    def play(self, page: str, cwd: Path) -> int:
        """Do what a page of the tutorial says, from its first line to its last, and return how many commands it has.

        What is installed stays installed.
        """
        cwd.mkdir(exist_ok=True)
        self.control()
        before = len(self.steps)
        for block in STEP.finditer((ROOT / page).read_text(encoding="utf-8")):
            if block["file"]:
                (cwd / block["file"]).write_text(block["text"], encoding="utf-8")
            for typed in typed_commands(block[0]):
                if not typed.command.startswith("uv tool install"):
                    with self.step(page, typed.command):
                        check(typed, cwd, self.environment)
        return len(self.steps) - before

    @property
    def seconds(self) -> float:
        """How long all steps took together."""
        return sum(seconds for _, _, seconds in self.steps)

    @property
    def slowness(self) -> float:
        """How many times slower than a calm machine this one is."""
        return max(1.0, median(self.controls) / CALM_CONTROL)

    def table(self) -> str:
        """Return every step with its time, and that as a multiple of the control."""
        control = median(self.controls)
        rows = [
            f"{seconds:7.1f} s {seconds / control:6.1f}x  {page}: {what[:70]}" for page, what, seconds in self.steps
        ]
        return "\n".join([f"control, python -c '{CONTROL}': {control:.2f} s", *rows, f"{self.seconds:7.1f} s in all"])


def fresh_clone(target: Path) -> None:
    """Copy what a clone would hold: every file that git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)

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

from console_blocks import STEP, Typed, check, check_printed, typed_commands
from uv_outside import uv_cache_dir

sys.path.insert(0, str(Path(__file__).parents[2]))
from docs import make_picture

ROOT = make_picture.ROOT
README = (ROOT / "README.md").read_text(encoding="utf-8")
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

    def shell(self, cwd: Path, *, terminal: bool = False) -> list[str]:
        """Return what runs a command in *cwd*, at a terminal or not."""
        return ["bash", "-c"]

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
        self.make_belongings()

    def make_belongings(self) -> None:
        """Make what the newcomer has: a clone, a repository, and two servers in Claude Code."""
        self.home.mkdir(exist_ok=True)
        fresh_clone(self.clone)
        make_picture.users_home(self.home)
        make_picture.users_project(self.place / "shop", README)

    def forget_settings(self) -> None:
        """Begin a lesson as it says: with OneTool installed, and nothing set up."""
        (self.home / "notes.jsonl").unlink(missing_ok=True)
        settings = self.home / ".onetool"
        if settings.exists():
            settings.rename(self.place / f"settings-{len(self.steps)}")

    @contextmanager
    def step(self, page: str, what: str) -> Generator[None]:
        """Time one step."""
        begun = time.monotonic()
        yield
        self.steps.append((page, what, time.monotonic() - begun))

    def control(self) -> None:
        """Time the control once, with the interpreter that was installed."""
        begun = time.monotonic()
        command = [*self.shell(self.place), f"{self.place}/tools/onetool-run/bin/python -c '{CONTROL}'"]
        subprocess.run(command, env=self.environment, check=True, timeout=120)
        self.controls.append(time.monotonic() - begun)

    def show(self, command: str, cwd: Path) -> str:
        """Return what a terminal shows of *command*, with a yes typed after every question."""
        with self.step("README.md", command):
            return make_picture.typed(command, cwd, self.environment, self.shell(cwd, terminal=True))

    def play_readme(self, *typed: Typed) -> None:
        """Type commands of the README at a terminal, in the clone."""
        for entry in typed:
            check_printed(entry, self.show(entry.command, self.clone))

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
                        check(typed, cwd, self.environment, self.shell(cwd))
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

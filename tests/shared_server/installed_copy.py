"""InstalledCopy: a OneTool in an environment of its own, whose files a test replaces as an installer does."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from checkout import PACKAGES, ROOT
from mcp_wire import WireServer
from shared_bed import HASTY, SharedBed


class InstalledCopy:
    """An environment with the packages of this checkout; what they need is that of the tests."""

    def __init__(self, root: Path) -> None:
        """Make it below *root*."""
        self.root = root
        venv.create(root, with_pip=False, symlinks=True)
        self.python = root / "bin" / "python"
        self.packages = root / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
        # A path file in a directory that another one names is not read: this checkout is not found by it.
        (self.packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        (self.python.with_name("monty")).symlink_to(Path(sys.executable).with_name("monty"))
        self._install()

    def _install(self) -> None:
        for package in PACKAGES:
            (self.packages / package.name).symlink_to(package)
        self.upgrade()

    def upgrade(self) -> None:
        """Stand for another version: what is written about it is new, also its record."""
        name = f"onetool_run-{version('onetool-run')}.dist-info"
        shutil.rmtree(self.packages / name, ignore_errors=True)
        shutil.copytree(Path(sysconfig.get_path("purelib")) / name, self.packages / name, copy_function=shutil.copyfile)

    @contextmanager
    def removed(self, package: str = "") -> Generator[None]:
        """Take a package away in the block, or the whole environment, as an installer does for a moment."""
        place = self.packages / package if package else self.root
        away = place.with_name(f"{place.name}.away")
        place.rename(away)
        try:
            yield
        finally:
            shutil.rmtree(place, ignore_errors=True)  # a server that was just starting has written its caches there
            away.rename(place)

    def client(self, user: SharedBed, *, shared_seconds: float = 5.0) -> WireServer:
        """Start a relay from here."""
        script = HASTY.format(shared=shared_seconds, alone=0.2)
        command = [str(self.python), "-P", "-c", script, "serve", "--shared"]
        return WireServer.start(command, cwd=user.cwd, env=_without_paths(user), warm=False)


def _without_paths(user: SharedBed) -> dict[str, str]:
    return {name: value for name, value in user.environment().items() if name != "PYTHONPATH"}


class InstalledWheels(InstalledCopy):
    """An environment into which two wheels of different versions are installed by turns, as uv does it."""

    def _install(self) -> None:
        self._turn = 0
        self._wheels = [_built_wheel(self.root / f"source{number}", f"0.{number}.0") for number in (8, 9)]
        self.upgrade()

    def upgrade(self) -> None:
        """Install the other version: its files are removed and written anew."""
        self._turn += 1
        wheel = str(self._wheels[self._turn % 2])
        how = ("--no-deps", "--reinstall", "--python", str(self.python))
        subprocess.run([uv_command(), "pip", "install", "-q", *how, wheel], check=True, timeout=300)

    def client(self, user: SharedBed, *, shared_seconds: float = 5.0) -> WireServer:
        """Start a relay by the command that is installed; it waits as long as any."""
        command = [str(self.root / "bin" / "onetool"), "serve", "--shared"]
        return WireServer.start(command, cwd=user.cwd, env=_without_paths(user), warm=False)


def _built_wheel(place: Path, version: str) -> Path:
    place.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place)
    settings = place / "pyproject.toml"
    settings.write_text(re.sub(r'(?m)^version = ".*"$', f'version = "{version}"', settings.read_text(), count=1))
    for name in ("src", "packs"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    command = [uv_command(), "build", "-q", "--wheel", "--out-dir", str(place)]
    subprocess.run(command, cwd=place, check=True, timeout=600)
    [wheel] = place.glob("*.whl")
    return wheel


def uv_command() -> str:
    """Return the uv that comes with OneTool."""
    return str(Path(sys.executable).with_name("uv"))

"""Distributions of the project, built and installed for tests: what a user gets, not the checkout."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from checkout import PACKAGES, ROOT
from pace import wait_while
from uv_outside import OUTSIDE, uv_cache_dir

SECONDS = 240
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BACKEND: list[str] = PYPROJECT["build-system"]["requires"]
"""Put into the environment beforehand: pip would download it anew for every build."""
CLAIMED = [f"3.{n}" for n in range(30) if SpecifierSet(PYPROJECT["project"]["requires-python"]).contains(f"3.{n}")]
"""The Pythons that the metadata allows."""
INDEX = "pypiserver==2.4.1"
WAY_OUT = re.compile("CERT|CA_BUNDLE|PROXY|INDEX|REGISTRY", re.IGNORECASE)
"""Variables that say how clients of registries get there from this machine."""
SETTINGS = (".npmrc", ".config/pip/pip.conf", ".config/uv/uv.toml")


@dataclass(frozen=True)
class Distributions:
    """What ``uv build`` made: the server's sdist, the wheel made from that sdist, and the wheels of its plugins."""

    wheel: Path
    sdist: Path
    plugins: Sequence[Path]


@dataclass(frozen=True)
class Installation:
    """An environment of its own, and a home that nobody has used."""

    environment: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.environment / "bin" / "python"

    @property
    def site(self) -> Path:
        """Where its packages are."""
        return next(self.environment.glob("lib/python*/site-packages"))

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment in an empty directory, as a user without this checkout would."""
        work = self.environment / "work"
        work.mkdir(exist_ok=True)
        environ = {"HOME": str(work), "PATH": f"{self.environment / 'bin'}:{os.environ['PATH']}"}
        program = [str(self.environment / "bin" / command[0]), *command[1:]]
        return subprocess.run(program, cwd=work, env=environ, capture_output=True, text=True, timeout=SECONDS)

    def answers(self, *command: str) -> str:
        """Return what a command prints that must succeed."""
        done = self.run(*command)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def files_of_ours(self) -> set[str]:
        """Return every module and data file that was installed of the project."""
        files = (file for package in PACKAGES for file in (self.site / package.name).rglob("*") if file.is_file())
        return {file.relative_to(self.site).as_posix() for file in files if "__pycache__" not in file.parts}


def uv(*arguments: str) -> None:
    """Run uv with the machine's own cache: what .ci/setup has downloaded is there."""
    _checked([find_uv(), *arguments], cached_environ())


def find_uv() -> str:
    """Return the path of uv."""
    found = subprocess.run([str(ROOT / ".ci/find-uv")], env=OUTSIDE, capture_output=True, text=True, check=True)
    return found.stdout.strip()


def cached_environ() -> dict[str, str]:
    """Return the environment in which uv finds the machine's own cache."""
    environ = {**OUTSIDE, "UV_CACHE_DIR": OUTSIDE.get("UV_CACHE_DIR") or uv_cache_dir()}
    environ.pop("VIRTUAL_ENV", None)
    return environ


def hand_over_registries(home: Path) -> dict[str, str]:
    """Give *home* the settings that lead from this machine to the registries, and return the variables that do."""
    real_home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    for name in SETTINGS:
        if (real_home / name).is_file():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(real_home / name, home / name)
    return {name: value for name, value in OUTSIDE.items() if WAY_OUT.search(name)}


@contextmanager
def package_index(packages: Path) -> Generator[str]:
    """Yield the address of a package index on the loopback that takes uploads into *packages*."""
    packages.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    serve = ("run", "--interface", "127.0.0.1", "--port", str(port), "--disable-fallback", "--passwords", ".")
    command = [find_uv(), "tool", "run", "--from", INDEX, "pypi-server", *serve, "--authenticate", ".", str(packages)]
    with (packages.parent / "index.log").open("w") as log:
        server = subprocess.Popen(command, env=cached_environ(), stdout=log, stderr=log)
    try:
        wait_while(lambda: _is_closed(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(SECONDS)


def _is_closed(port: int) -> bool:
    with socket.socket() as knocking:
        return knocking.connect_ex(("127.0.0.1", port)) != 0


def run_uvx(home: Path, *arguments: str) -> str:
    """Return what uvx prints in an empty *home*, where nothing was ever downloaded."""
    home.mkdir(exist_ok=True)
    path = f"{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin"
    environ = {**hand_over_registries(home), "HOME": str(home), "PATH": path}
    return _checked([str(Path(find_uv()).with_name("uvx")), *arguments], environ).strip()


def build(directory: Path) -> Distributions:
    """Build all distributions into *directory*."""
    uv("build", "--quiet", "--all-packages", "--out-dir", str(directory), str(ROOT))
    (wheel,), (sdist,) = directory.glob("onetool_run-*.whl"), directory.glob("onetool_run-*.tar.gz")
    return Distributions(wheel, sdist, sorted(set(directory.glob("*.whl")) - {wheel}))


def installed_by_uv(environment: Path, distribution: Path) -> Installation:
    """Install *distribution* and all that it needs into an empty environment."""
    uv("venv", "--quiet", "--python", sys.executable, str(environment))
    _install(environment, str(distribution))
    return Installation(environment)


def ready_for_pip(environment: Path) -> Installation:
    """Return an environment with pip and what the project needs at the locked versions, without the project.

    uv puts the dependencies there: pip would download each of them, which takes longer than all checks together may.
    """
    uv("venv", "--quiet", "--python", sys.executable, str(environment))
    _install(environment, "pip", *BACKEND, "--requirements", str(ROOT / "pyproject.toml"))
    return Installation(environment)


def _install(environment: Path, *what: str) -> None:
    where = ("--python", str(environment / "bin" / "python"))
    uv("pip", "install", "--quiet", *where, "--constraints", str(ROOT / "requirements.lock"), *what)


def _checked(command: Sequence[str], environ: Mapping[str, str]) -> str:
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return done.stdout

"""Environments of packs that bring a list of packages with hashes, made by a uv that only notes what it is asked."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import anyio
import pytest

from ot.errors import ToolUnavailable
from ot.workers.pack_environment import COMPLETE, PackEnvironment, PackEnvironments

pytestmark = pytest.mark.anyio

UV = """#!/bin/sh
echo "$*" >> "{directory}/asked"
case "$1" in
  cache) echo "{directory}/cache" ;;
  venv) for word in "$@"; do case "$word" in */onetool-environments/*) place=$word ;; esac; done
        mkdir -p "$place/bin" && ln -sf "{python}" "$place/bin/python" ;;
  pip) echo "Downloading https://me:canary-77f1@packages.example/six" >&2; test ! -e "{directory}/offline" ;;
esac
"""
LOCK = f"six==1.17.0 --hash=sha256:{'0' * 64}\n".encode()


class Uv:
    """A uv in *directory* that installs nothing, and notes what it was asked."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "bin").mkdir()
        program = directory / "bin" / "uv"
        program.write_text(UV.format(directory=directory, python=sys.executable))
        program.chmod(0o700)
        self.environments = PackEnvironments(directory / "state", {"PATH": f"{program.parent}:/usr/bin:/bin"})

    async def prepare(self, code: str = "x = 1", said: list[str] | None = None) -> PackEnvironment:
        main = f'# /// script\n# dependencies = ["six"]\n# ///\n{code}\n'.encode()
        files = {"demo_tools.py": main, "requirements.lock": LOCK}
        with anyio.fail_after(60):
            told = None if said is None else said.append
            return await self.environments.prepare("demo", files, "demo_tools.py", progress=told)

    def asked(self, command: str) -> list[str]:
        lines = (self.directory / "asked").read_text().splitlines()
        return [line for line in lines if line.startswith(f"{command} ")]


@pytest.fixture
def uv(tmp_path: Path) -> Uv:
    return Uv(tmp_path)


async def test_packs_with_the_same_packages_share_an_environment_that_is_made_once(uv: Uv) -> None:
    one, other = await asyncio.gather(uv.prepare("x = 1"), uv.prepare("x = 2"))
    assert one.python == other.python and one.main != other.main
    assert (len(uv.asked("venv")), len(uv.asked("pip"))) == (1, 1)
    assert "--require-hashes" in uv.asked("pip")[0]


async def test_an_environment_that_was_not_completed_is_made_again_from_nothing(uv: Uv) -> None:
    (uv.directory / "offline").touch()
    with pytest.raises(ToolUnavailable, match="needs the network once"):
        await uv.prepare()
    (uv.directory / "offline").unlink()
    python = (await uv.prepare()).python
    assert (python.parent.parent / COMPLETE).exists()
    assert (len(uv.asked("venv")), len(uv.asked("pip"))) == (2, 2)
    assert all(" --clear " in line for line in uv.asked("venv"))


async def test_another_python_has_another_environment(uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await uv.prepare("x = 1")
    monkeypatch.setattr(sys, "version", f"{sys.version} of another build")
    assert (await uv.prepare("x = 2")).python != before.python


async def test_logins_of_an_index_are_not_in_what_is_told_meanwhile(uv: Uv) -> None:
    said: list[str] = []
    await uv.prepare(said=said)
    assert "Downloading https://***@packages.example/six" in said

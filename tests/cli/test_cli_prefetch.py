"""onetool prefetch installs what packs need, ahead of their first call."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

import ot.build
from cli.command import OneTool
from uv_outside import uv_cache_dir

PACK = '''
    # /// script
    # requires-python = ">=3.12"
    # dependencies = ["six>=1.17,<2"]
    # ///
    """Says hello."""


    def hello() -> str:
        """Say hello."""
        return "hello"
'''


@pytest.fixture
def packs(tmp_path: Path, onetool: OneTool) -> Path:
    """A directory of bundled packs with one pack, whose lock names a package that is not there."""
    folder = tmp_path / "in_workers" / "hello"
    folder.mkdir(parents=True)
    (folder / "hello_tools.py").write_text(dedent(PACK).lstrip())
    (folder / "requirements.lock").write_text(f"six==1.17.0 --hash=sha256:{'0' * 64}\n")
    onetool.monkeypatch.setattr(ot.build, "IN_WORKERS", folder.parent)
    onetool.monkeypatch.setenv("UV_CACHE_DIR", uv_cache_dir())
    return folder


def test_all_packs_with_packages_are_installed_and_their_size_is_told(packs: Path, onetool: OneTool) -> None:
    (packs / "requirements.lock").write_text(
        "six==1.17.0 --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274"
        " --hash=sha256:ff70335d468e7eb6ec65b95b99d3a2836546063f63acc5171de367e834932a81\n"
    )
    ended = onetool("prefetch", "--json")
    (row,) = json.loads(ended.out)["packs"]
    assert (ended.code, row["pack"], row["problem"]) == (0, "hello", "")
    assert 0 < row["megabytes"] < 10
    assert onetool("prefetch", "hello", "file").out.splitlines()[1] == "file: needs no packages"


def test_a_pack_that_cannot_be_installed_is_told_with_uvs_reason(packs: Path, onetool: OneTool) -> None:
    ended = onetool("prefetch", "hello")
    assert ended.code == 1
    assert ended.out.startswith("hello: not installed: its packages are not installed: it needs the network once")
    assert "Hash mismatch" in ended.out


def test_an_unknown_pack_is_told_and_is_not_found(packs: Path, onetool: OneTool) -> None:
    ended = onetool("prefetch", "nope")
    assert (ended.code, ended.out) == (3, "nope: not installed: there is no pack 'nope': onetool list shows them\n")


def test_check_and_doctor_install_nothing_and_say_what_would(packs: Path, onetool: OneTool) -> None:
    assert "installed at their first call: hello (ahead of it: onetool prefetch)" in onetool("check").out
    assert "installed at their first call: hello" in onetool("doctor").out

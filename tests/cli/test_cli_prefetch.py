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
    assert ended.out.startswith("hello: its packages could not be installed, which needs the network once")
    assert "Hash mismatch" in ended.out
    assert ended.err == "", "progress is for terminals"


def test_a_secret_in_what_uv_says_is_not_shown(packs: Path, onetool: OneTool) -> None:
    (packs / "requirements.lock").write_text(f"no-such-package-c4a7==1.0 --hash=sha256:{'0' * 64}\n")
    onetool.user.mkdir()
    secrets = onetool.user / "secrets.yaml"
    secrets.write_text("PASSWORD: no-such-package-c4a7\n")
    secrets.chmod(0o600)
    ended = onetool("prefetch", "hello")
    assert "[secret:PASSWORD]" in ended.out and "c4a7" not in ended.out + ended.err


def test_an_unknown_pack_is_told_and_is_not_found(packs: Path, onetool: OneTool) -> None:
    ended = onetool("prefetch", "nope")
    assert ended.code == 3
    assert ended.out.startswith("nope: there is no pack 'nope'. Available packs: ")


@pytest.mark.parametrize(
    ("config", "code", "said"),
    [
        ("packs: {disabled: [hello]}", 3, "hello: the pack 'hello' is disabled: the setting packs.disabled names it\n"),
        ("servers: {hello: {command: 'true'}}", 0, "hello: needs no packages\n"),
    ],
    ids=["a disabled pack", "a server of the same name"],
)
def test_what_is_not_used_is_not_installed(config: str, code: int, said: str, packs: Path, onetool: OneTool) -> None:
    onetool.user.mkdir()
    (onetool.user / "onetool.yaml").write_text(f"version: 1\n{config}\n")
    ended = onetool("prefetch", "hello")
    assert (ended.code, ended.out) == (code, said)
    ended = onetool("prefetch")
    assert (ended.code, ended.out) == (0, "")


@pytest.mark.parametrize("command", ["check", "doctor"])
def test_a_name_that_disables_nothing_is_told(command: str, packs: Path, onetool: OneTool) -> None:
    onetool.user.mkdir()
    (onetool.user / "onetool.yaml").write_text("version: 1\npacks: {disabled: [hello, helo, ot]}\n")
    ended = onetool(command)
    for name in ("helo", "ot"):
        assert f"packs.disabled names '{name}', and there is no such pack here that could be left out" in ended.out
    assert "names 'hello'" not in ended.out
    assert ended.code == 0
    assert onetool("prefetch", "helo").out.startswith("helo: there is no pack 'helo'")


def test_the_first_call_at_a_terminal_shows_what_is_installed(packs: Path, onetool: OneTool) -> None:
    command = ("run", "hello.hello()")
    assert "installing" not in onetool(*command).err.partition("RuntimeError")[0]
    onetool.monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    shown = onetool(*command).err.partition("RuntimeError")[0]
    assert shown.startswith("hello: installing its packages") and shown.count("\n") == 1


def test_check_and_doctor_install_nothing_and_say_what_would(packs: Path, onetool: OneTool) -> None:
    assert "installed at their first call: hello (in advance: onetool prefetch)" in onetool("check").out
    assert "installed at their first call: hello" in onetool("doctor").out

"""onetool prefetch and new: packs made ready, and packs begun."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import ot.build
from cli.command import OneTool
from ot.registry.pep723 import script_metadata
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


def pack_file(directory: Path, name: str = "weather") -> Path:
    return directory / "tools" / name / f"{name}_tools.py"


def project_state(onetool: OneTool) -> str:
    return json.loads(onetool("check", "--json").out)["project"]


def test_a_new_pack_works_as_it_is(onetool: OneTool) -> None:
    ended = onetool("new", "pack", "weather")
    assert (ended.code, ended.err) == (0, "")
    assert (
        ended.out
        == f"""\
Wrote {pack_file(onetool.project)}
Next: onetool run 'weather.hello(name="you")'
"""
    )
    onetool.monkeypatch.setenv("UV_CACHE_DIR", uv_cache_dir())
    assert onetool("run", 'weather.hello(name="you")').out == "Hello, you!\n"


def test_a_new_pack_has_a_header_and_a_tool_that_explains_itself(onetool: OneTool) -> None:
    onetool("new", "pack", "weather")
    metadata = script_metadata(pack_file(onetool.project).read_text())
    assert metadata and (metadata.present, metadata.dependencies) == (True, ())
    ended = onetool("run", 'ot.help(query="weather.hello")')
    for words in ("Greet somebody.", "name: Who is greeted.", 'weather.hello(name="you")'):
        assert words in ended.out


def test_what_stands_commented_out_in_a_new_pack_is_python_that_works(onetool: OneTool) -> None:
    onetool("new", "pack", "weather")
    file = pack_file(onetool.project)
    text = file.read_text()
    for line in ("from dataclasses", "__ot_requires__", "@dataclass", "class Config", "    greeting: str"):
        assert f"# {line}" in text
        text = text.replace(f"# {line}", line)
    text = text.replace('f"Hello, {name}!"', 'f"{ot_sdk.config().greeting}, {ot_sdk.secret("WEATHER_TOKEN").reveal()}"')
    file.write_text(text)
    (onetool.user / "onetool.yaml").write_text("workers: {packs: {weather: {secrets: [WEATHER_TOKEN]}}}\n")
    onetool.monkeypatch.setenv("UV_CACHE_DIR", uv_cache_dir())
    ended = onetool("dev", str(file), 'hello(name="you")', "--once", stdin="")
    assert "has no settings" not in ended.err
    assert "was not given the secret 'WEATHER_TOKEN'" in ended.err
    onetool.monkeypatch.setenv("WEATHER_TOKEN", "sesame-open-1")
    ended = onetool("dev", str(file), 'hello(name="you")', "--once")
    assert (ended.code, ended.out) == (0, "Hello, [secret:WEATHER_TOKEN]\n")


def test_a_new_pack_passes_a_linter_and_a_formatter(onetool: OneTool) -> None:
    onetool("new", "pack", "weather")
    for command in ("check", "format --check --line-length=120"):
        ruff = [Path(sys.executable).with_name("ruff"), *command.split(), "--isolated", pack_file(onetool.project)]
        done = subprocess.run(ruff, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


# ---------------------------------------------------------------- trust


def test_the_first_pack_of_a_project_is_trusted_and_its_directory_private(onetool: OneTool) -> None:
    onetool("new", "pack", "weather")
    assert project_state(onetool) == "trusted"
    assert onetool.project.stat().st_mode & 0o777 == 0o700
    assert "secrets" in (onetool.project / ".gitignore").read_text()


def test_another_pack_of_a_trusted_project_is_trusted(onetool: OneTool) -> None:
    onetool("init")
    assert json.loads(onetool("new", "pack", "one", "--json").out)["trusted"] is True
    assert json.loads(onetool("new", "pack", "two", "--json").out)["trusted"] is True
    assert project_state(onetool) == "trusted"


def test_a_pack_beside_the_files_of_others_is_not_trusted(onetool: OneTool) -> None:
    pack_file(onetool.project, "evil").parent.mkdir(parents=True)
    pack_file(onetool.project, "evil").write_text("def f(): ...\n")
    ended = onetool("new", "pack", "weather")
    assert ended.code == 0
    assert "look at it, then run onetool trust" in ended.out
    assert project_state(onetool) == "untrusted"


def test_a_pack_in_a_project_that_has_changed_is_not_trusted(onetool: OneTool) -> None:
    onetool("init")
    (onetool.project / "onetool.yaml").write_text("version: 1\naliases: {v: ot.version}\n")
    found = json.loads(onetool("new", "pack", "weather", "--json").out)
    assert found == {"pack": "weather", "file": str(pack_file(onetool.project)), "trusted": False}
    assert project_state(onetool) == "changed"


def test_a_pack_of_the_user_needs_no_trust(onetool: OneTool) -> None:
    found = json.loads(onetool("new", "pack", "weather", "--global", "--json").out)
    assert found == {"pack": "weather", "file": str(pack_file(onetool.user)), "trusted": True}
    assert not onetool.project.exists()
    assert "weather" in onetool("run", "ot.packs(info='list')").out


def test_in_the_home_directory_a_pack_is_the_users_own(onetool: OneTool) -> None:
    onetool.cwd = onetool.home
    found = json.loads(onetool("new", "pack", "weather", "--json").out)
    assert found == {"pack": "weather", "file": str(pack_file(onetool.user)), "trusted": True}
    assert not (onetool.user / "trust.json").exists()


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("name", ["ot", "proj", "class", "two words", "1st", "ä", "a-b", "_own", "../up", ""])
def test_a_name_that_no_pack_can_have_is_refused(onetool: OneTool, name: str) -> None:
    ended = onetool("new", "pack", name)
    assert (ended.code, ended.out) == (2, "")
    assert f"'{name}'" in ended.err
    assert not onetool.project.exists()


def test_a_pack_that_is_there_is_left_as_it_is(onetool: OneTool) -> None:
    onetool("new", "pack", "weather")
    pack_file(onetool.project).write_text("# mine\n")
    ended = onetool("new", "pack", "weather")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"onetool: {pack_file(onetool.project).parent} exists already and was left as it is\n"
    assert pack_file(onetool.project).read_text() == "# mine\n"


def test_nothing_is_written_through_a_link(onetool: OneTool, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    onetool.project.symlink_to(elsewhere)
    assert "is a symbolic link" in onetool("new", "pack", "weather").err
    onetool.project.unlink()
    onetool.project.mkdir()
    (onetool.project / "tools").symlink_to(elsewhere)
    assert "is a symbolic link" in onetool("new", "pack", "weather").err
    assert list(elsewhere.iterdir()) == []


def test_where_nothing_can_be_written_there_is_a_sentence(onetool: OneTool) -> None:
    onetool.project.mkdir()
    (onetool.project / "tools").write_text("a file where the directory should be")
    ended = onetool("new", "pack", "weather")
    assert ended.code == 1
    assert ended.err.startswith(f"onetool: {onetool.project / 'tools'}")

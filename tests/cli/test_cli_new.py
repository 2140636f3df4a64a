"""onetool new pack writes a pack that works as it is, and trusts no more than what it wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command import OneTool
from ot.registry.pep723 import script_metadata
from uv_outside import uv_cache_dir


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

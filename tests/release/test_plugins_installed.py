"""A stranger's plugin, as its page has it, beside a wheel of the core; and installing again after a pull."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checkout import PLUGINS, ROOT
from release.installation import (
    SECONDS,
    Distributions,
    Installation,
    build,
    cached_environ,
    find_uv,
    installed_by_uv,
    uv,
)

pytestmark = pytest.mark.timeout(300)

PAGE = (ROOT / "docs/how-to/write-a-plugin.md").read_text(encoding="utf-8")
BLOCK = re.compile(r'^```\w+ title="(?P<file>[^"]+)"\n(?P<text>.*?)^```', re.M | re.S)
LINES = 85
"""How long a plugin with one of each may be; its page promises a short one."""
BIG = """'x' * 1000"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """The core and its own plugins, from this checkout."""
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def shelf(built: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The plugin of the page as a wheel, installed beside the core's wheel by somebody who has configured both."""
    place = tmp_path_factory.mktemp("shelf")
    for block in BLOCK.finditer(PAGE):
        file = place / "source" / block["file"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block["text"])
    (place / "source/src/onetool_shelf/__init__.py").touch()
    uv("build", "--quiet", "--wheel", "--out-dir", str(place), str(place / "source"))
    (wheel,) = place.glob("*.whl")
    installed = installed_by_uv(place / "env", built.wheel)
    uv("pip", "install", "--quiet", "--no-deps", "--python", str(installed.python), str(wheel))
    user = place / "env/work/.onetool"
    user.mkdir(parents=True)
    settings = {
        "shelf": {"label": "oak"},
        "output": {"max_inline_size": 100, "store": {"url": f"shelf://{place}/kept"}},
    }
    (user / "onetool.yaml").write_text(json.dumps(settings))
    return installed


def test_the_plugin_of_the_page_is_short() -> None:
    blocks = [block["text"] for block in BLOCK.finditer(PAGE)]
    assert sum(bool(line.strip()) for text in blocks for line in text.splitlines()) <= LINES


def test_its_command_is_listed_and_runs_with_its_settings(shelf: Installation) -> None:
    assert "  shelf           Show how the shelf is labelled.\n" in shelf.run("onetool", "--help", "--all").stdout
    assert shelf.answers("onetool", "shelf") == "oak"


def test_help_imports_nothing_of_it(shelf: Installation) -> None:
    told = shelf.run("python", "-X", "importtime", "-P", str(shelf.environment / "bin/onetool"), "--help", "--all")
    assert "Show how the shelf is labelled." in told.stdout
    assert "ot.cli.overview" in told.stderr
    assert "onetool_shelf" not in told.stderr


def test_its_section_is_in_the_schema_and_wrong_settings_are_refused(shelf: Installation) -> None:
    schema = json.loads(shelf.answers("onetool", "config", "schema"))
    assert schema["properties"]["shelf"]["description"] == "The shelf"
    file = shelf.environment / "work/.onetool/onetool.yaml"
    kept = file.read_text()
    file.write_text(json.dumps({"shelf": {"lable": "oak"}}))
    try:
        refused = shelf.run("onetool", "run", "1+1")
        assert (refused.returncode, "unknown key 'shelf.lable', did you mean 'label'?" in refused.stderr) == (1, True)
    finally:
        file.write_text(kept)


def test_its_pack_its_store_and_its_observer_take_part_in_runs(shelf: Installation) -> None:
    assert shelf.answers("onetool", "run", "shelf.label()") == "oak"
    reply = shelf.run("onetool", "run", BIG)
    assert reply.returncode == 0, reply.stderr
    handle = re.search(r"ot\.result\(handle='([\w-]+)'", reply.stdout)
    assert handle, reply.stdout
    kept = [file for file in (shelf.environment.parent / "kept").rglob("*") if handle[1] in file.name]
    assert any("x" * 1000 in file.read_text(errors="replace") for file in kept)
    assert "shelf.label" in (shelf.environment / "work/shelf.log").read_text().splitlines()


def test_doctor_says_what_it_found_out(shelf: Installation) -> None:
    found = json.loads(shelf.run("onetool", "doctor", "--json").stdout)["findings"]
    assert {"area": "shelf", "state": "ok", "text": "it is labelled oak"} in found


def test_without_the_edge_for_http_the_core_says_how_to_get_it(shelf: Installation) -> None:
    refused = shelf.run("onetool", "serve", "--http", "0")
    assert (refused.returncode, "onetool serve --http needs" in refused.stderr, "[team]" in refused.stderr) == (
        1,
        True,
        True,
    )


def test_our_own_plugins_are_installed_from_wheels_beside_the_cores(
    built: Distributions, shelf: Installation, tmp_path: Path
) -> None:
    assert {wheel.name.partition("-")[0] for wheel in built.plugins} == {one.name.replace("-", "_") for one in PLUGINS}
    for wheel in built.plugins:
        uv("pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), str(wheel))
    listed = subprocess.run(
        [str(shelf.python), "-c", "import sys; from ot.cli.overview import overview; print(overview(every=True))"],
        env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True, timeout=SECONDS,
    )  # fmt: skip
    assert "  chat            Talk to a model that can use your tools.\n" in listed.stdout
    assert "  worker          Carry out the background runs of a team's server.\n" in listed.stdout


def test_installing_again_after_a_pull_gives_the_new_core_and_the_new_plugins(tmp_path: Path) -> None:
    clone, tools = tmp_path / "clone", tmp_path / "tools"
    clone.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)
    for name in ("src", "packs", *(plugin.relative_to(ROOT) for plugin in PLUGINS)):
        left_out = shutil.ignore_patterns("__pycache__", "tests")
        shutil.copytree(ROOT / name, clone / name, ignore=left_out)
    environ = {**cached_environ(), "UV_TOOL_DIR": str(tools), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}

    def install() -> str:
        constraints = ("--constraints", str(ROOT / "requirements.lock"))
        what = ("--python", sys.executable, f"{clone}[chat]")
        command = [find_uv(), "tool", "install", "--quiet", *constraints, *what]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        program = [str(tmp_path / "bin/onetool"), "--help", "--all"]
        return subprocess.run(program, capture_output=True, text=True, check=True, timeout=SECONDS).stdout

    before = install()
    for file, text in (
        ("src/ot/cli/commands.ini", "Run a program and print what it returns."),
        ("plugins/onetool-chat/src/onetool_chat/commands.ini", "Talk to a model that can use your tools."),
    ):
        assert text in before
        changed = (clone / file).read_text()
        assert text in changed
        (clone / file).write_text(changed.replace(text, f"{text[:-1]}, pulled."))
    after = install()
    assert "Run a program and print what it returns, pulled." in after
    assert "Talk to a model that can use your tools, pulled." in after

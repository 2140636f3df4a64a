"""Pages and texts that are made from the code are those that it would make now."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from checkout import PACKAGES, ROOT, SOURCES
from ot.build import IN_WORKERS
from ot.config.paths import Paths
from ot.registry.bundled_extensions import bundled_extensions
from ot.registry.pack_needs import read_needs
from ot.registry.pep723 import script_metadata
from ot.server.run_description import BUNDLED_TOOLS
from ot.workspace import Workspace
from run_app import running_app, value_of
from uv_outside import uv_cache_dir

TITLED = re.compile(r'^```(?:python|toml) title="(?P<file>[^"]+)"\n(?P<text>.*?)^```', re.M | re.S)


def test_the_tests_of_the_page_about_testing_pass(tmp_path: Path) -> None:
    assert written(tmp_path, "test-a-pack") == ["weather_tools.py", "test_weather_tools.py", "test_with_the_stub.py"]
    assert_passing(tmp_path, 3)


def test_the_tests_of_the_page_about_typed_tools_pass(tmp_path: Path) -> None:
    names = ["server.py", "tool_note.py", "notes_server.py", "notes_pack.py", "pyproject.toml", "test_tool_note.py"]
    assert written(tmp_path, "write-typed-tools") == names
    assert len((tmp_path / "server.py").read_text().splitlines()) <= 22
    assert_passing(tmp_path, 4)


@pytest.mark.anyio
async def test_the_distribution_of_the_page_about_typed_tools_is_built_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, site = tmp_path / "notes", tmp_path / "site"
    notes.mkdir()
    written(notes, "write-typed-tools")
    install(notes, site)
    monkeypatch.syspath_prepend(site)
    try:
        async with running_app(tmp_path) as app:
            reply = await app.run('notes.find(words="Ada")[0]["due"]')
    finally:
        for name in ("notes_pack", "tool_note"):
            sys.modules.pop(name, None)
    assert reply.texts == ("2026-03-01", "note: notes.find: 1 found")


def install(distribution: Path, target: Path) -> None:
    """Build what lies in *distribution* and install it into *target*."""
    command = ["uv", "pip", "install", "--quiet", "--python", sys.executable, "--target", target, distribution]
    subprocess.run(command, env={**os.environ, "UV_CACHE_DIR": uv_cache_dir()}, check=True, timeout=100)


def written(directory: Path, page: str) -> list[str]:
    """Write the files that a page shows, and return their names."""
    blocks = list(TITLED.finditer((ROOT / f"docs/how-to/{page}.md").read_text(encoding="utf-8")))
    for block in blocks:
        (directory / block["file"]).write_text(block["text"], encoding="utf-8")
    return [block["file"] for block in blocks]


def assert_passing(directory: Path, count: int) -> None:
    """Run the tests of *directory* as their author would."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:langsmith_plugin",
        "-W",
        "error",
    ]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout
    assert f"{count} passed" in done.stdout


def test_each_page_and_the_description_of_run_show_each_pack_as_it_is() -> None:
    script: dict[str, Any] = runpy.run_path(str(ROOT / "docs/make_pack_pages.py"))
    pages: dict[str, str] = script["pages"]()
    behind = [name for name, text in pages.items() if _read(ROOT / f"docs/reference/packs/{name}.md") != text]
    assert behind == [], "run: python docs/make_pack_pages.py"
    assert BUNDLED_TOOLS.read_text(encoding="utf-8") == script["brief"](), "run: python docs/make_pack_pages.py"


def test_the_lock_of_each_pack_holds_what_its_file_declares() -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    for extension in bundled_extensions(IN_WORKERS):
        lock = extension.files["requirements.lock"].decode()
        entries = (line.split(" ")[0].split(";")[0] for line in lock.splitlines() if "==" in line)
        locked = {canonicalize_name(name): version for name, _, version in (entry.partition("==") for entry in entries)}
        metadata = script_metadata(extension.files[extension.main].decode())
        assert metadata is not None and metadata.requires_python == ">=3.12"
        for requirement in map(Requirement, metadata.dependencies):
            version = locked[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), f"{extension.name}: {requirement}, locked {version}"
        assert "://" not in lock, f"{extension.name}: its lock names an index"
        assert lock.count("--hash=sha256:") >= len(locked)


def test_what_a_pack_needs_is_found_as_a_parse_of_its_file_finds_it() -> None:
    for extension in bundled_extensions(IN_WORKERS):
        for kind in ("secrets", "optional_secrets", "programs"):
            text = extension.files[extension.main].decode()
            assert read_needs(text)(kind) == extension.source.read_requirements(kind), extension.name


def test_packs_in_workers_import_of_ours_the_sdk_alone() -> None:
    ours = {package.name for package in PACKAGES}
    assert "ot_sdk" in ours
    for file in IN_WORKERS.glob("*/*.py"):
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        assert {name.partition(".")[0] for name in names} & ours <= {"ot_sdk"}, file


def _read(page: Path) -> str:
    return page.read_text(encoding="utf-8") if page.is_file() else ""


MAKE = runpy.run_path(str(ROOT / "docs/make_source_map.py"))
FILE = re.compile(r"[\w./<>*-]+(?:\.(?:py|md|ini|toml|yaml|txt|lock)|/)(?![\w.])")
"""A path in a table: it ends with one of these suffixes, or with a slash."""


@pytest.mark.parametrize(
    ("page", "update"), [(MAKE["SOURCE_MAP"], "update_source_map"), (MAKE["ARCHITECTURE"], "update_architecture")]
)
def test_packages_and_layers_on_the_pages_are_current(page: Path, update: str) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count(MAKE["BEGIN"]) == text.count(MAKE["END"]) == 1
    assert MAKE[update](text) == text, "run: python docs/make_source_map.py"


def test_each_package_has_one_row() -> None:
    names = [name for name, _ in MAKE["packages"]()]
    assert len(names) == len(set(names))
    assert {"ot.ledger", "ot.build", "onetool_chat.cli"} <= set(names)


@pytest.mark.parametrize("page", ["docs/reference/source-map.md", "AGENTS.md"])
def test_every_file_that_a_table_names_exists(page: str) -> None:
    rows = [line for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    named = {path for row in rows for code in re.findall(r"`([^`]+)`", row) for path in FILE.findall(code)}
    assert len(named) > 40
    assert sorted(path for path in named if not is_in_checkout(path)) == []


def is_in_checkout(path: str) -> bool:
    """Return whether *path* exists in the checkout, or below a folder of the source; ``<name>`` stands for any."""
    if "<" in path:
        return is_in_checkout(path[: path.index("<")].rpartition("/")[0])
    return any(ROOT.glob(path)) or any(True for source in SOURCES for _ in source.rglob(path))


SKILL = Path(__file__).parents[1] / "skills/onetool/SKILL.md"
FRAME = re.compile(r"---\n(?P<head>.*?)\n---\n(?P<body>.*)", re.DOTALL)
PACK = re.compile(r'^```python title="(?P<file>(?P<pack>\w+)_tools\.py)"\n(?P<text>.*?)^```', re.M | re.S)
PROGRAM = re.compile(r"^```python\n(?P<program>.*?)^```\n\n```(?:json|text)\n(?P<answer>.*?)\n```", re.M | re.S)


def parts() -> tuple[dict[str, Any], str]:
    """Return the settings at the top of the skill, and its text."""
    found = FRAME.fullmatch(SKILL.read_text(encoding="utf-8"))
    assert found
    return yaml.safe_load(found["head"]), found["body"]


def test_the_skill_has_the_frame_that_clients_expect() -> None:
    head, body = parts()
    assert head["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", head["name"])
    assert 0 < len(head["description"]) <= 1024
    assert len(body.splitlines()) < 500


@pytest.mark.anyio
async def test_the_programs_of_the_skill_answer_what_it_says(tmp_path: Path, home: Path) -> None:
    _, body = parts()
    for pack in PACK.finditer(body):
        folder = home / ".onetool/tools" / pack["pack"]
        folder.mkdir(parents=True)
        (folder / pack["file"]).write_text(pack["text"], encoding="utf-8")
    programs = list(PROGRAM.finditer(body))
    assert len(programs) == body.count("```python\n") >= 6, "every program is followed by its answer"
    app = Workspace.alone(Paths.of(tmp_path, home / ".onetool"))
    try:
        for shown in programs:
            assert value_of(await app.run(shown["program"])) == shown["answer"]
    finally:
        await app.aclose()

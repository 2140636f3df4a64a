"""Wheel and sdist, installed by uv and by pip into environments of their own, work and stay small."""

from __future__ import annotations

import json
import shutil
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from checkout import PACKAGES, ROOT
from ot.build import IN_WORKERS
from ot.version import installed_version
from release.installation import (
    CLAIMED,
    Distributions,
    Installation,
    build,
    installed_by_uv,
    package_index,
    ready_for_pip,
    run_uvx,
    uv,
)

WHEEL_BYTES = 1_648_000
INSTALLED_BYTES = 230_000_000
DISTRIBUTIONS = 90
"""Bounds a little above what there is: a dependency that doubles them is a decision, not an accident."""

NEVER_AT_ONCE = {
    *("anthropic", "anyio", "fastmcp", "griffe", "jinja2", "jsonschema_rs", "mcp", "mcp_types", "ollama", "orjson"),
    *("pydantic", "pydantic_core", "pydantic_monty", "rapidfuzz", "re2", "rich", "uvloop", "yaml"),
}
"""What neither ``--version`` nor ``--help`` may import."""

MODULES_LOADED = """
import sys
import ot.entry
before = set(sys.modules)
sys.argv = ["onetool", *sys.argv[1:]]
try:
    ot.entry.main()
except SystemExit:
    pass
tops = lambda names: sorted({name.partition(".")[0] for name in names} - set(sys.stdlib_module_names))
sys.stderr.write(repr({"import": tops(before), "command": tops(sys.modules)}))
"""

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """Both distributions, from this checkout."""
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def by_uv(built: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel, installed by uv into an empty environment."""
    return installed_by_uv(tmp_path_factory.mktemp("by-uv") / "env", built.wheel)


# ---------------------------------------------------------------- what is in them


def test_the_wheel_holds_the_packages_their_types_and_nothing_else(built: Distributions) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = wheel.namelist()
    tops = {name.split("/", 1)[0] for name in names}
    packages = {package.name for package in PACKAGES}
    assert {top for top in tops if not top.endswith(".dist-info")} == packages
    assert {f"{package}/py.typed" for package in packages - {"ot_packs"}} <= set(names), "packs are run, not imported"
    assert {"ot_packs/rg/rg_tools.py", "ot_packs/rg/requirements.lock", "ot_packs/_shared/arguments.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name]
    assert built.wheel.stat().st_size < WHEEL_BYTES


def test_the_sdist_holds_the_source_and_no_file_of_the_checkout_beside_it(built: Distributions) -> None:
    with tarfile.open(built.sdist) as archive:
        names = [name.split("/", 1)[1] for name in archive.getnames() if "/" in name]
    beside = {name for name in names if not name.startswith(("packs/", "src/"))}
    assert beside == {".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert not [name for name in names if "__pycache__" in name]


def test_the_metadata_names_licence_commands_and_the_registrys_server(built: Distributions) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        (metadata,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        found = Parser().parsestr(wheel.read(metadata).decode())
    assert (found["Name"], found["Version"]) == ("onetool-run", installed_version())
    assert (found["License-Expression"], found["Requires-Python"]) == ("Apache-2.0", "<3.15,>=3.12")
    # The registry looks for it in the description of the package.
    assert f"mcp-name: {json.loads((ROOT / 'server.json').read_text())['name']}" in str(found.get_payload())


# ---------------------------------------------------------------- installed


def test_the_wheel_installed_by_uv_works(by_uv: Installation) -> None:
    assert by_uv.answers("onetool", "--version") == installed_version()
    assert by_uv.answers("onetool-run", "--version") == installed_version()
    assert by_uv.answers("onetool", "run", "1+1") == "2"


def test_the_sdist_installed_by_uv_gives_the_same_files_as_the_wheel(
    built: Distributions, by_uv: Installation, tmp_path: Path
) -> None:
    from_sdist = installed_by_uv(tmp_path / "env", built.sdist)
    assert from_sdist.answers("onetool", "--version") == installed_version()
    assert from_sdist.files_of_ours() == by_uv.files_of_ours()


def test_wheel_and_sdist_installed_by_pip_work_and_pip_misses_nothing(
    built: Distributions, by_uv: Installation, tmp_path: Path
) -> None:
    environment = ready_for_pip(tmp_path / "env")
    local = ("--no-deps", "--no-index", "--no-build-isolation", "--no-compile", "--force-reinstall")
    for distribution in (built.sdist, built.wheel):
        environment.answers("pip", "--disable-pip-version-check", "install", *local, str(distribution))
        assert environment.files_of_ours() == by_uv.files_of_ours()
    assert environment.answers("pip", "check") == "No broken requirements found."
    assert environment.answers("onetool", "run", "1+1") == "2"


# ---------------------------------------------------------------- for every Python that is claimed


@pytest.mark.parametrize("python", CLAIMED)
def test_all_extras_and_all_bundled_packs_have_wheels(python: str, tmp_path: Path) -> None:
    wheels = ("--quiet", "--only-binary", ":all:", "--python-version", python)
    resolved = ("--output-file", str(tmp_path / "resolved"))
    uv("pip", "compile", *wheels, *resolved, "--all-extras", str(ROOT / "pyproject.toml"))
    # The packs' versions are settled: only whether each has a wheel is asked, which needs no metadata.
    locks = IN_WORKERS.glob("*/requirements.lock")
    asked = [word for lock in locks for word in ("--requirements", str(lock))]
    assert asked
    uv("pip", "install", "--dry-run", "--no-deps", *wheels, "--target", str(tmp_path / "target"), *asked)


# ---------------------------------------------------------------- a release


def test_what_is_published_to_an_index_is_run_from_there_by_uvx_in_an_empty_home(
    built: Distributions, tmp_path: Path
) -> None:
    uv("tool", "run", "twine==7.0.0", "check", "--strict", str(built.wheel), str(built.sdist))
    (package,) = json.loads((ROOT / "server.json").read_text())["packages"]
    python = [part for argument in package["runtimeArguments"] for part in (argument["name"], argument["value"])]
    with package_index(tmp_path / "packages") as index:
        who = ("--username", "anybody", "--password", "anything")
        uv("publish", "--quiet", "--publish-url", f"{index}/", *who, str(built.wheel), str(built.sdist))
        assert {file.name for file in (tmp_path / "packages").iterdir()} == {built.wheel.name, built.sdist.name}
        uvx = (tmp_path / "home", *python, "--index", f"{index}/simple/", package["identifier"])
        assert run_uvx(*uvx, "--version") == installed_version()
        assert run_uvx(*uvx, "run", "1+1") == "2"
    shutil.rmtree(tmp_path / "home")  # 400 MB


# ---------------------------------------------------------------- what it costs


def test_an_installation_stays_within_its_size_and_its_number_of_distributions(by_uv: Installation) -> None:
    installed = [file.lstat().st_size for file in by_uv.site.rglob("*") if "__pycache__" not in file.parts]
    assert sum(installed) < INSTALLED_BYTES
    assert len(list(by_uv.site.glob("*.dist-info"))) <= DISTRIBUTIONS


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_the_entry_imports_nothing_of_others_and_quick_commands_nothing_heavy(
    by_uv: Installation, argument: str
) -> None:
    ended = by_uv.run("python", "-I", "-c", MODULES_LOADED, argument)
    loaded = json.loads(ended.stderr.replace("'", '"'))
    assert set(loaded["import"]) - {"__main__"} == {"ot"}
    assert set(loaded["command"]).isdisjoint(NEVER_AT_ONCE)

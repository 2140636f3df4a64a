"""requirements.lock fits pyproject.toml and says nothing about where packages came from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
DIRECT: list[str] = [*PYPROJECT["project"]["dependencies"], *PYPROJECT["dependency-groups"]["dev"]]


def locked_versions(name: str) -> list[str]:
    """Return the versions that the lock holds of a package, one for each range of Pythons or platforms."""
    return re.findall(rf"^{re.escape(canonicalize_name(name))}(?:\[[^\]]*\])?==(\S+)", LOCK, re.MULTILINE)


@pytest.mark.parametrize("text", DIRECT)
def test_the_lock_holds_a_version_that_the_project_asks_for(text: str) -> None:
    wanted = Requirement(text)
    versions = locked_versions(wanted.name)
    assert versions, f"{wanted.name} is not locked: run `just lock`"
    assert all(wanted.specifier.contains(version) for version in versions), "run `just lock`"


def test_every_locked_package_has_a_hash() -> None:
    packages = re.split(r"^(?=\S)", LOCK, flags=re.MULTILINE)[1:]
    assert len(packages) >= len(DIRECT)
    assert not [package.split(" ", 1)[0] for package in packages if "--hash=sha256:" not in package]


def test_the_lock_names_no_address_no_path_and_no_option() -> None:
    assert not re.search(r"://|^-|^\s*#|@|(?<![\w.])/", LOCK, re.MULTILINE)

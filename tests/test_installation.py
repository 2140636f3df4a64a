"""What a plain installation has, and a lock that fits pyproject.toml."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from checkout import ROOT
from ot.errors import MissingExtra
from ot.installation import TOOL_RECEIPT, command_of, install_command, newest_python

CLONE = "file:///home/me/one%20tool"


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        ({"url": CLONE, "dir_info": {}}, "'/home/me/one tool[chat]'"),
        ({"url": CLONE, "dir_info": {"editable": True}}, "--editable '/home/me/one tool[chat]'"),
        ({"url": "https://h/o.git", "vcs_info": {"vcs": "git"}}, "'onetool-run[chat] @ git+https://h/o.git'"),
        ({"url": "https://h/o.whl", "archive_info": {}}, "'onetool-run[chat] @ https://h/o.whl'"),
        ({"url": "file:///o.whl", "archive_info": {}}, "'onetool-run[chat] @ file:///o.whl'"),
        ({}, "'onetool-run[chat]'"),
    ],
)
def test_an_extra_is_installed_from_where_onetool_came_from(
    origin: dict[str, Any], wanted: str, tmp_path: Path
) -> None:
    assert command_of("chat", origin, tmp_path) == f"uv pip install --python {tmp_path} {wanted}"
    (tmp_path / TOOL_RECEIPT).touch()
    assert command_of("chat", origin, tmp_path) == f"uv tool install {wanted}"


def test_a_missing_library_names_the_command_for_this_very_installation() -> None:
    text = str(MissingExtra("chat with Anthropic's models", "chat"))
    assert text.startswith("chat with Anthropic's models needs more than the plain installation: uv pip install ")
    assert f"--python {sys.prefix} " in text
    assert "[chat]" in text


def test_an_extra_that_this_python_is_too_new_for_names_the_newest_one_that_has_it(tmp_path: Path) -> None:
    requires = ["a>=1", "b; extra == 'chat'", "c; python_version < '3.14' and extra == 'offline'"]
    assert [newest_python("offline", requires, minor) for minor in (12, 13, 14, 15)] == ["", "", "3.13", "3.13"]
    assert newest_python("chat", requires, 15) == ""
    assert command_of("offline", {}, tmp_path, "3.13") == "uv tool install --python 3.13 'onetool-run[offline]'"


def test_offline_speech_is_installed_with_a_python_that_has_it() -> None:
    assert install_command("voice-offline", 14).startswith("uv tool install --python 3.13 ")
    assert install_command("voice-offline", 13) == install_command("voice-offline", 12)


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

"""What is public stays as it is listed, unless somebody announces a change."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import public_surface
from public_surface import FILE, ROOT, Surface, as_text, collect, differences, main

HOW = "announce it in changelog.d/, then run: python tests/public_surface.py changelog.d/<name>.<type>.md"


@pytest.fixture(scope="module")
def surface() -> Surface:
    """What is public now."""
    return json.loads(as_text(collect()))


def test_nothing_public_changed_unannounced(surface: Surface) -> None:
    assert differences(json.loads(FILE.read_text(encoding="utf-8")), surface) == [], HOW


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("commands", "onetool config migrate"),
        ("configuration", "limits.calls"),
        ("configuration", "servers.<name>.command"),
        ("environment variables", "OT_CWD"),
        ("errors", "ot.errors.OneToolError"),
        ("formats", "statistics"),
        ("packs", "file.read"),
        ("packs", "ot.help"),
        ("python", "mcp_core.Result.ok"),
        ("python", "mcp_core.program_function"),
        ("python", "ot_sdk.call_tool"),
        ("python", "ot_sdk.testing.use"),
        ("run", "description, exact engine"),
        ("run", "parameters"),
        ("seams", "ot.execution.backends.backend.Backend.call"),
    ],
)
def test_every_kind_of_public_thing_is_listed(surface: Surface, kind: str, name: str) -> None:
    assert surface[kind][name]


def test_the_comparison_with_others_counts_the_tools_that_are_included(surface: Surface) -> None:
    tools = surface["packs"]
    packs = {name.partition(".")[0] for name in tools}
    page = (ROOT / "docs/explanation/compared-with-others.md").read_text(encoding="utf-8")
    assert f"| tools included | {len(tools)} in {len(packs)} packs |" in page


def test_what_is_added_removed_or_changed_is_told_by_name() -> None:
    old: Surface = {"errors": {"A": "class()", "B": "class()"}}
    new: Surface = {"errors": {"A": "class(X)"}, "run": {"hints": {}}}
    assert differences(old, new) == ["changed errors: A", "removed errors: B", "added run: hints"]
    assert differences(old, old) == []


def test_a_change_without_a_fragment_is_not_written(
    surface: Surface, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = tmp_path / "public_surface.json"
    shutil.copy(FILE, listed)
    monkeypatch.setattr(public_surface, "FILE", listed)
    monkeypatch.setattr(public_surface, "collect", lambda: surface | {"errors": {}})
    assert "name the fragment" in main([])
    assert "name the fragment" in main([str(ROOT / "README.md")])
    assert listed.read_text() == FILE.read_text()
    fragment = tmp_path / "changelog.d" / "errors.removal.md"
    fragment.parent.mkdir()
    fragment.write_text("The errors were removed.\n")
    assert main([str(fragment)]) == ""
    assert json.loads(listed.read_text())["errors"] == {}
    assert "removed errors: ot.errors.OneToolError" in capsys.readouterr().out

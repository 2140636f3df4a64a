"""Where the source and the tests of the checkout are: the core's, and those of each plugin."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
PLUGINS = sorted(member.parent for member in ROOT.glob("plugins/*/pyproject.toml"))
SOURCES = [ROOT / "src", *(plugin / "src" for plugin in PLUGINS)]
TESTS = [ROOT / "tests", *(plugin / "tests" for plugin in PLUGINS)]


def python_files(folders: list[Path]) -> dict[str, Path]:
    """Return the Python files below *folders*, by their path below the one they are in."""
    return {file.relative_to(folder).as_posix(): file for folder in folders for file in sorted(folder.rglob("*.py"))}

"""Where the source and the tests of the checkout are: the core's, the packs', and those of each plugin."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKS = ROOT / "packs"
PLUGINS = sorted(member.parent for member in ROOT.glob("plugins/*/pyproject.toml"))
SOURCES = [ROOT / "src", PACKS, *(plugin / "src" for plugin in PLUGINS)]
PACKAGES = [marker.parent for folder in ("src", "packs") for marker in sorted(ROOT.glob(f"{folder}/*/__init__.py"))]
"""What the server's own distribution installs."""
TESTS = [ROOT / "tests", *(plugin / "tests" for plugin in PLUGINS)]


def python_files(folders: list[Path]) -> dict[str, Path]:
    """Return the Python files below *folders*, by their path below the one they are in."""
    return {file.relative_to(folder).as_posix(): file for folder in folders for file in sorted(folder.rglob("*.py"))}

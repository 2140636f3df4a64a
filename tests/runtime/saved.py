"""Saved programs of tests: files in the user's or a project's directory, and workspaces that have them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent


def save(directory: Path, name: str, text: str) -> Path:
    """Put a saved program into the user's directory that workspaces in *directory* have."""
    return save_at(directory / "user" / "programs", name, text)


def save_of_project(directory: Path, name: str, text: str) -> Path:
    """Put a saved program into the project's directory."""
    return save_at(directory / "work" / ".onetool" / "programs", name, text)


def save_at(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return file

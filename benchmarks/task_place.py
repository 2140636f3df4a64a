"""The directory that the tasks of the bench work in: the same files and the same commits every time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

NOTES = "The release is planned.\nThe deadline is Friday, and Grace holds the keys.\n"
ERRORS = {"auth": 4, "cron": 9, "disk": 0, "mail": 17, "net": 16, "web": 11}
LINES = 60
COMMITS = (
    ("Write down how to build", {"BUILD.md": "Run the build, then look at what it says.\n" * 8}),
    ("Read names from a file", {"names.py": "".join(f"names_{n} = read('names-{n}.txt')\n" for n in range(30))}),
    ("Rewrite the parser", {"parser.py": "".join(f"def rule_{n}(text): return text[{n}:]\n" for n in range(120))}),
    ("Add a test of names", {"test_names.py": "".join(f"assert names_{n} is not None\n" for n in range(12))}),
    ("Fix the length of names", {"length.py": "LONGEST = 64\nSHORTEST = 1\n"}),
)
FIXED = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"), ("DATE", "2026-01-02T03:04:05+00:00"))
}
"""So that every commit has the same name everywhere."""


def fill(place: Path) -> Mapping[str, str]:
    """Write the files and the repository into *place*; return what ``$name`` stands for in the tasks."""
    (place / "notes.txt").write_text(NOTES)
    logs = place / "logs"
    logs.mkdir()
    for name, errors in ERRORS.items():
        (logs / f"{name}.log").write_text("".join(_line(name, number, errors) for number in range(LINES)))
    commits = _repository(place / "repository")
    return {"place": str(place)} | {f"commit{number}": name for number, name in enumerate(commits, 1)}


def _line(name: str, number: int, errors: int) -> str:
    level = "ERROR" if number % 3 == 0 and number // 3 < errors else "INFO"
    return (
        f"2026-01-02T03:{number:02}:00 {level} {name}[{4000 + number}]: request {number * 37} took {number % 13} ms\n"
    )


def _repository(place: Path) -> list[str]:
    """Make a repository and return its commits, the newest first."""
    place.mkdir()
    _git(place, "init", "--quiet", "--initial-branch=main")
    for message, files in COMMITS:
        for name, text in files.items():
            (place / name).write_text(text)
        _git(place, "add", ".")
        _git(place, "commit", "--quiet", "--message", message)
    return _git(place, "log", "--format=%H").split()


def _git(place: Path, *words: str) -> str:
    environment = {**os.environ, **FIXED, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", "-C", str(place), *words], env=environment, check=True, capture_output=True, text=True, timeout=20
    )
    return done.stdout

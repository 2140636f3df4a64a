"""Reads ``console`` blocks of a page: commands after ``$``, and what they are said to print."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
STEP = re.compile(r'^```(?:console\n(?P<typed>.*?)|python title="(?P<file>[^"]+)"\n(?P<text>.*?))^```', re.M | re.S)
"""What a reader of a page does: types commands, or writes a file."""
SECONDS = 240


@dataclass(frozen=True)
class Typed:
    """One command and the output that the page promises; ``...`` stands for anything."""

    command: str
    output: str

    def is_kept_by(self, printed: str) -> bool:
        """Return whether *printed* is what the page promises."""
        pattern = ".*?".join(re.escape(part) for part in self.output.strip().split("..."))
        return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def typed_commands(page: str) -> list[Typed]:
    """Return the commands of all console blocks of *page*, in order."""
    typed: list[Typed] = []
    for block in BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            typed.append(Typed(command, output))
    return typed


def check(typed: Typed, cwd: Path, environment: Mapping[str, str], shell: Sequence[str] = ("bash", "-c")) -> None:
    """Type a command, and fail when it does not print what the page promises."""
    done = subprocess.run(
        [*shell, typed.command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    check_printed(typed, done.stdout + done.stderr)


def check_printed(typed: Typed, printed: str) -> None:
    """Fail when *printed* is not what the page promises."""
    assert typed.is_kept_by(printed), f"$ {typed.command}\npromised:\n{typed.output}\nprinted:\n{printed}"

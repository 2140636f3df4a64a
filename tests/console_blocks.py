"""Reads ``console`` blocks of a page: commands after ``$``, and what they are said to print."""

from __future__ import annotations

import re
from dataclasses import dataclass

SLOW = re.compile(r"^.*\bslow call: .*\n?", re.MULTILINE)
"""A warning about the machine that the command runs on: no page promises how fast that is."""
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Typed:
    """One command and the output that the page promises; ``...`` stands for anything."""

    command: str
    output: str

    def is_kept_by(self, printed: str) -> bool:
        """Return whether *printed* is what the page promises."""
        pattern = ".*?".join(re.escape(part) for part in self.output.strip().split("..."))
        return re.fullmatch(pattern, SLOW.sub("", printed).strip(), re.DOTALL) is not None


def typed_commands(page: str) -> list[Typed]:
    """Return the commands of all console blocks of *page*, in order."""
    typed: list[Typed] = []
    for block in BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            typed.append(Typed(command, output))
    return typed

"""Ways in which other clients refer to values, and which OneTool does not read."""

from __future__ import annotations

import re

FOREIGN = re.compile(r"\$\{(?:(env):(\w++)|(input|keyring|file|op|workspaceFolder|userHome)\b(?:[^}$]|\$(?!\{))*+)\}")


def foreign_reference(text: str) -> str:
    """Return what to write instead of the first such reference in *text*, or nothing."""
    found = FOREIGN.search(text)
    if not found:
        return ""
    if found.group(1):
        return f"{found.group()} is not read here: write ${{{found.group(2)}}}"
    if found.group(3).startswith("workspace"):
        return f"{found.group()} is not read here: write ${{workspace}}"
    return f"{found.group()} is not read here: put the value into secrets.yaml and write ${{NAME}}"

"""ProtectedPaths: what no program may write, and the little that it may not even read."""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

CODE_DIRECTORIES = {
    ".onetool": "its packs and settings decide what runs",
    ".git": "its hooks and settings run commands",
}
"""Folders, or a worktree's file ``.git``, in which a write would become code that runs outside the engine."""

CLIENT_DIRECTORIES = frozenset(
    {".amazonq", ".claude", ".codeium", ".codex", ".continue", ".copilot", ".cursor", ".gemini"}
    | {".junie", ".kiro", ".opencode", ".roo", ".vscode", ".windsurf", ".zed"}
)
"""Folders where clients keep servers to start, permissions and commands to run.

All of ``.vscode`` is meant: its settings can switch off the question before a tool call, its tasks run by themselves.
Not listed on purpose: ``.envrc``, because direnv asks again after every change; ``AGENTS.md`` and its kin, because
they are prose that people let models write.
"""

CLIENT_FILES = frozenset(
    {".mcp.json", "mcp.json", "mcp_config.json", "mcp-config.json", ".claude.json", "claude_desktop_config.json"}
    | {"opencode.json", "opencode.jsonc"}
)
"""Files that name servers for a client to start."""

SETTINGS_DIRECTORIES = frozenset({".config", "application support", "roaming"})
SETTINGS_OF_CLIENTS = frozenset({"claude", "code", "cursor", "goose", "opencode", "windsurf", "zed"})
"""Folders of clients below the user's settings, for those who allow their whole home directory."""

PRIVATE_STATE = frozenset({"sessions", "stats", "tmp"})
"""Folders below ``.onetool`` whose content belongs to single callers, who reach it by handle."""

_SHORT_NAME = re.compile(r"([^.~]{1,6})~\d")
_SHORT_FORMS = {
    name.lstrip(".").split(".")[0][:6]: name for name in (*CODE_DIRECTORIES, *CLIENT_DIRECTORIES, *CLIENT_FILES)
}


def fold(name: str) -> str:
    """Return *name* as the most forgiving file system would compare it.

    Some systems take ``.GIT``, ``.git.``, ``.g\u200cit``, ``.git::$DATA`` or ``GIT~1`` for ``.git``.
    """
    plain = name.lower() if name.isascii() else _visible(unicodedata.normalize("NFKC", name).casefold())
    plain = plain.split(":", 1)[0].rstrip(" .")
    short = _SHORT_NAME.match(plain)
    return _SHORT_FORMS.get(short[1], plain) if short else plain


def _visible(text: str) -> str:
    return "".join(character for character in text if unicodedata.category(character) != "Cf")


@dataclass(frozen=True)
class ProtectedPaths:
    """Answers, for a real path whose names are folded, why it may not be written or read; an empty answer allows it."""

    hidden: tuple[Path, ...] = ()
    read_only: tuple[Path, ...] = ()
    _hidden_names: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)
    _read_only_names: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Resolve what is protected, because real places are compared."""
        for name in ("hidden", "read_only"):
            real = [Path(os.path.realpath(path)) for path in getattr(self, name)]
            object.__setattr__(self, name, tuple(real))
            object.__setattr__(self, f"_{name}_names", tuple(tuple(map(fold, path.parts[1:])) for path in real))

    def why_not_write(self, folded: tuple[str, ...]) -> str:
        """Return why nothing may be written at this path."""
        for name, why in CODE_DIRECTORIES.items():
            if name in folded:
                return f"nothing is written below {name}: {why}"
        if _of_client(folded):
            return "it is part of a client's configuration, which no program may change"
        if any(folded[: len(path)] == path for path in self._read_only_names):
            return "the server's own code lives there"
        return self.why_not_read(folded)

    def why_not_read(self, folded: tuple[str, ...]) -> str:
        """Return why this path may not be read."""
        if any(folded[: len(path)] == path for path in self._hidden_names):
            return "it is private to the server"
        if ".onetool" not in folded:
            return ""
        below = folded[folded.index(".onetool") + 1 :]
        # "secret", without its s, also meets the short form SECRET~1.
        if any(name.startswith("secret") for name in below):
            return "secrets never reach a program"
        return "it belongs to single callers: ask by handle" if PRIVATE_STATE.intersection(below[:1]) else ""

    def is_hidden_file(self, status: os.stat_result) -> bool:
        """Return whether this file is a hidden one under another name, which only a hard link can be."""
        return status.st_nlink > 1 and any(_is_at(path, status) for path in self.hidden)


def _is_at(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(status, path.stat())
    except OSError:
        return False


def _of_client(folded: tuple[str, ...]) -> bool:
    if not CLIENT_FILES.isdisjoint(folded):
        return True
    return any(_client_directory(name, below) for name, below in pairwise((*folded, "")))


def _client_directory(name: str, below: str) -> bool:
    if name in SETTINGS_DIRECTORIES:
        return below in SETTINGS_OF_CLIENTS
    # Checkouts that a client keeps for its own parallel work hold source, not settings.
    return name in CLIENT_DIRECTORIES and below != "worktrees"

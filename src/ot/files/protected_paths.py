"""ProtectedPaths: what no program may write, the little that it may not even read, and why.

The table lists what programs execute on sight and nobody reviews.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

CLIENTS = "it is part of a client's configuration, which no program may change"
ENVIRONMENT = "it is a virtual environment, whose programs and packages run unreviewed"


@dataclass(frozen=True, slots=True)
class NameRule:
    """Names that mean the same danger, in one text; those of folders end in ``/``, ``*`` stands for any beginning.

    A row without names is ``what`` is found out by looking at the place itself.
    """

    listed: str
    why: str
    what: str = ""
    everywhere: bool = False
    """Whether it also counts for what lies above an allowed directory."""

    @property
    def names(self) -> list[str]:
        """The names one by one."""
        return self.listed.split()

    @property
    def title(self) -> str:
        """What is refused, as a page shows it."""
        return self.what or ", ".join(f"`{name}`" for name in self.names)


TABLE = (
    NameRule(".onetool/", "its packs and settings decide what runs", everywhere=True),
    NameRule(".git/", "its hooks and settings run commands", everywhere=True),
    NameRule(
        "",
        "git takes it for a repository, whose settings run commands",
        "what completes a directory with `HEAD`, `objects` and `refs`, or `HEAD` and `commondir`; anything below one",
    ),
    NameRule(".husky/ .githooks/", "git runs what is there with the next commit"),
    NameRule(
        ".amazonq/ .claude/ .codeium/ .codex/ .continue/ .copilot/ .cursor/ .gemini/ .junie/ .kiro/ .opencode/ .roo/"
        " .vscode/ .windsurf/ .zed/ .mcp.json mcp.json mcp_config.json mcp-config.json .claude.json"
        " claude_desktop_config.json opencode.json opencode.jsonc",
        CLIENTS,
        everywhere=True,
    ),
    NameRule(
        ".idea/ .fleet/ .helix/ .devcontainer/ .devcontainer.json *.code-workspace"
        " .exrc .vimrc .gvimrc .nvimrc .nvim.lua",
        "an editor runs its tasks and commands when it opens the directory",
    ),
    NameRule(".envrc mise.toml .mise.toml", "a shell runs it when it enters the directory"),
    NameRule(
        ".npmrc .yarnrc .yarnrc.yml .yarn/ .pnpmfile.cjs .pnpmfile.mjs .pnp.cjs .pnp.loader.mjs bunfig.toml .cargo/"
        " .bundle/ .mvn/",
        "a package manager runs what it names with any command",
    ),
    NameRule("node_modules/", "npx and node prefer what is there to anything installed elsewhere"),
    NameRule(".venv/ venv/ pyvenv.cfg conda-meta/", ENVIRONMENT),
    NameRule("", ENVIRONMENT, "anything below a directory with `pyvenv.cfg` or `conda-meta`"),
    NameRule("sitecustomize.py usercustomize.py *.pth .pdbrc", "every Python that finds it runs it"),
    NameRule("", "the server's own code lives there", "OneTool's own code, and what it imports from"),
    NameRule("", "programs are started from there", "the directories of the `PATH`"),
    NameRule(
        "",
        "programs read their settings there, and many run what those name",
        "names that begin with a dot, directly in the home directory",
    ),
    NameRule(
        "",
        "npx, uv and similar launchers look there for a project to obey, above the servers' own directories",
        "`package.json`, `pyproject.toml` and other files of launchers, in each directory above `~/.onetool/homes/`",
    ),
    NameRule(
        "",
        "a configured server executes it",
        "files that a server's command, arguments or environment name; modules beside such a script, or in a directory "
        "that the command runs",
    ),
    NameRule("", "a pack is executed from there", "files of packs, also behind links"),
    NameRule("", "it belongs to a server", "the servers' private directories"),
)
"""What is refused, in the order in which it is looked at.

Left out on purpose, because people let models write them daily and look at them: ``package.json``, ``pyproject.toml``,
``Makefile``, ``.pre-commit-config.yaml``, files of CI, ``.env``, ``AGENTS.md`` and its kin.
"""

SETTINGS_DIRECTORIES = frozenset({".config", "application support", "roaming"})
SETTINGS_OF_CLIENTS = frozenset({"claude", "code", "cursor", "goose", "opencode", "windsurf", "zed"})
"""Folders of clients below the user's settings, for those who allow their whole home directory."""

PRIVATE_STATE = frozenset({"sessions", "stats", "tmp"})
"""Folders below ``.onetool`` whose content belongs to single callers, who reach it by handle."""

type Names = tuple[str, ...]

_ROWS = {name.rstrip("/"): (name, row) for row in TABLE for name in row.names}
_ENDINGS = {name[1:]: entry for name, entry in _ROWS.items() if name.startswith("*")}
_CLIENT_FOLDERS = frozenset(name for name, (shown, row) in _ROWS.items() if row.why is CLIENTS and shown.endswith("/"))
_SHORT_NAME = re.compile(r"([^.~]{1,6})~\d")
_SHORT_FORMS = {name.lstrip(".").split(".")[0][:6]: name for name in _ROWS if not name.startswith("*")}


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


def why_protected(folded: Names, root: int) -> str:
    """Return why none may write the path of these folded names, of which *root* lead to an allowed directory."""
    for at, (name, below) in enumerate(pairwise((*folded, ""))):
        if name in SETTINGS_DIRECTORIES and below in SETTINGS_OF_CLIENTS:
            return CLIENTS
        endings = (entry for ending, entry in _ENDINGS.items() if name.endswith(ending))
        shown, row = _ROWS.get(name) or next(endings, ("", None))
        # Checkouts that a client keeps for its own parallel work hold source, not settings.
        if row and (row.everywhere or at >= root) and not (name in _CLIENT_FOLDERS and below == "worktrees"):
            return _words(shown, row.why)
    return ""


def _words(shown: str, why: str) -> str:
    if why is CLIENTS:
        return why
    return f"nothing is written below {shown[:-1]}: {why}" if shown.endswith("/") else f"{shown} is not written: {why}"


@dataclass(frozen=True, slots=True)
class LockedPath:
    """A place that is not written, and why; with a pattern, only what lies below it by a path that begins so."""

    path: Path
    why: str
    below: str = ""


type FindLocked = Callable[[], Iterable[LockedPath]]


class ProtectedPaths:
    """Answers, for a real path whose names are folded, why it may not be written or read; an empty answer allows it.

    What is ``hidden`` can be neither read nor written, but for what is ``shown`` below it; what is ``locked`` cannot be
    written, and is looked for before the first write. Of the ``roots``, in which programs may write at all, the
    innermost counts.
    """

    def __init__(
        self, roots: Iterable[Path], hidden: Iterable[Path], shown: Iterable[Path], locked: FindLocked
    ) -> None:
        """Resolve what is protected, because real places are compared."""
        self._roots, self._shown = tuple(map(_names, roots)), tuple(map(_names, shown))
        self._hidden = {path: _names(path) for path in hidden}
        self._find_locked = locked

    @cached_property
    def _locked(self) -> tuple[tuple[Names, LockedPath], ...]:
        return tuple((_names(entry.path), entry) for entry in self._find_locked())

    def why_not_write(self, folded: Names) -> str:
        """Return why nothing may be written at this path."""
        root = max((len(names) for names in self._roots if folded[: len(names)] == names), default=0)
        if why := why_protected(folded, root):
            return why
        for names, entry in self._locked:
            if folded[: len(names)] == names and re.match(entry.below, "/".join(folded[len(names) :])):
                return entry.why
        return self.why_not_read(folded)

    def why_not_read(self, folded: Names) -> str:
        """Return why this path may not be read."""
        if _is_below(folded, self._hidden.values()) and not _is_below(folded, self._shown):
            return "it is private to the server"
        if ".onetool" not in folded:
            return ""
        below = folded[folded.index(".onetool") + 1 :]
        # "secret", without its s, also meets the short form SECRET~1.
        if any(name.startswith("secret") for name in below):
            return "secrets never reach a program"
        return "it belongs to individual callers: use the handle" if PRIVATE_STATE.intersection(below[:1]) else ""

    def is_hidden_file(self, status: os.stat_result) -> bool:
        """Return whether this file is a hidden one under another name, which only a hard link can be."""
        return status.st_nlink > 1 and any(_is_at(path, status) for path in self._hidden)


def _names(path: Path) -> Names:
    return tuple(map(fold, Path(os.path.realpath(path)).parts[1:]))


def _is_below(folded: Names, places: Iterable[Names]) -> bool:
    return any(folded[: len(place)] == place for place in places)


def _is_at(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(status, path.stat())
    except OSError:
        return False

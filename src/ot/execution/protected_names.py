"""The names that no program may write: what programs execute on sight and nobody reviews, with a reason per row."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import pairwise

CLIENTS = "it is part of a client's configuration, which no program may change"
ENVIRONMENT = "it is a virtual environment, whose programs and packages run as they are"


@dataclass(frozen=True, slots=True)
class Row:
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
    Row(".onetool/", "its packs and settings decide what runs", everywhere=True),
    Row(".git/", "its hooks and settings run commands", everywhere=True),
    Row(
        "",
        "git takes it for a repository, whose settings run commands",
        "what makes a directory one with `HEAD`, `objects` and `refs`, or `HEAD` and `commondir`; anything below one",
    ),
    Row(".husky/ .githooks/", "git runs what lies there with the next commit"),
    Row(
        ".amazonq/ .claude/ .codeium/ .codex/ .continue/ .copilot/ .cursor/ .gemini/ .junie/ .kiro/ .opencode/ .roo/"
        " .vscode/ .windsurf/ .zed/ .mcp.json mcp.json mcp_config.json mcp-config.json .claude.json"
        " claude_desktop_config.json opencode.json opencode.jsonc",
        CLIENTS,
        everywhere=True,
    ),
    Row(
        ".idea/ .fleet/ .helix/ .devcontainer/ .devcontainer.json *.code-workspace"
        " .exrc .vimrc .gvimrc .nvimrc .nvim.lua",
        "an editor runs its tasks and commands when it opens the directory",
    ),
    Row(".envrc mise.toml .mise.toml", "a shell runs it when it enters the directory"),
    Row(
        ".npmrc .yarnrc .yarnrc.yml .yarn/ .pnpmfile.cjs .pnpmfile.mjs .pnp.cjs .pnp.loader.mjs bunfig.toml .cargo/"
        " .bundle/ .mvn/",
        "a package manager runs what it names with any command",
    ),
    Row("node_modules/", "npx and node run what lies there before anything that is installed elsewhere"),
    Row(".venv/ venv/ pyvenv.cfg conda-meta/", ENVIRONMENT),
    Row("", ENVIRONMENT, "anything below a directory with `pyvenv.cfg` or `conda-meta`"),
    Row("sitecustomize.py usercustomize.py *.pth .pdbrc", "every python runs it that finds it"),
    Row("", "the server's own code lives there", "OneTool's own code, and what it imports from"),
    Row("", "programs are started from there", "the directories of the `PATH`"),
    Row(
        "",
        "programs read their settings there, and many run what those name",
        "names that begin with a dot, directly in the home directory",
    ),
    Row(
        "",
        "npx, uv and their kin look there for a project to obey, above the servers' own directories",
        "`package.json`, `pyproject.toml` and other files of launchers, in each directory above `~/.onetool/homes/`",
    ),
    Row(
        "",
        "the server that is named executes it",
        "files that a server's command, arguments or environment name; modules beside such a script, or in a directory "
        "that the command runs",
    ),
    Row("", "the pack that is named is executed from there", "files of packs, also behind links"),
    Row("", "it belongs to a server", "the servers' private directories"),
)
"""What is refused, in the order in which it is looked at.

Left out on purpose, because people let models write them daily and look at them: ``package.json``, ``pyproject.toml``,
``Makefile``, ``.pre-commit-config.yaml``, files of CI, ``.env``, ``AGENTS.md`` and its kin.
"""

SETTINGS_DIRECTORIES = frozenset({".config", "application support", "roaming"})
SETTINGS_OF_CLIENTS = frozenset({"claude", "code", "cursor", "goose", "opencode", "windsurf", "zed"})
"""Folders of clients below the user's settings, for those who allow their whole home directory."""

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


def why_protected(folded: tuple[str, ...], root: int) -> str:
    """Return why none may write the path of these folded names, of which *root* lead to an allowed directory."""
    for at, (name, below) in enumerate(pairwise((*folded, ""))):
        if name in SETTINGS_DIRECTORIES and below in SETTINGS_OF_CLIENTS:
            return CLIENTS
        shown, row = _row_of(name)
        # Checkouts that a client keeps for its own parallel work hold source, not settings.
        if row and (row.everywhere or at >= root) and not (name in _CLIENT_FOLDERS and below == "worktrees"):
            return _words(shown, row.why)
    return ""


def _row_of(name: str) -> tuple[str, Row | None]:
    if entry := _ROWS.get(name):
        return entry
    return next((entry for ending, entry in _ENDINGS.items() if name.endswith(ending)), ("", None))


def _words(shown: str, why: str) -> str:
    if why is CLIENTS:
        return why
    return f"nothing is written below {shown[:-1]}: {why}" if shown.endswith("/") else f"{shown} is not written: {why}"

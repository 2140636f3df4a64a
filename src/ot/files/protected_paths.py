"""ProtectedPaths: what no program may write, the little that it may not even read, and why.

The table lists what programs execute on sight and nobody reviews.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

CLIENTS = "it is part of a client's configuration, which no program may change"
ENVIRONMENT = "it is a virtual environment, whose programs and packages run unreviewed"


@dataclass(frozen=True, slots=True)
class NameRule:
    """Names that mean the same danger, in one text; those of folders end in ``/``, one ``*`` stands for any characters.

    A name may say which folder it lies in. A row without names is ``what`` is found out by looking at the place itself.
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
        ".hg/ .jj/ .sl/ .bzr/ .svn/ .pijul/ _darcs/ .repo/ .fslckout _FOSSIL_ .fossil-settings/",
        "version control keeps its hooks and settings there, which run commands",
        everywhere=True,
    ),
    NameRule(
        "",
        "git takes it for a repository, whose settings run commands",
        "what completes a directory with `HEAD`, `objects` and `refs`, or `HEAD` and `commondir`; anything below one",
    ),
    NameRule(".husky/ .githooks/ .lefthook/ .lefthook-local/", "git runs what is there with the next commit"),
    NameRule(
        ".agent/ .agents/ .aider.* .amazonq/ .amp/ .augment/ .claude/ .claude-plugin/ .cline/ .clinerules/hooks/"
        " .codebuddy/ .codeium/ .codex/ .continue/ .continuerc.json .copilot/ .crush/ .crush.json crush.json .cursor/"
        " .factory/ .forge/ .gemini/ .github/agents/ .github/copilot/ .github/extensions/ .github/hooks/ .goose/"
        " .grok/ .iflow/ .junie/ .kilo/ .kilocode/ kilo.json kilo.jsonc .kimi/ .kiro/ .openhands/ .opencode/ .pi/"
        " .qoder/ .qwen/ .roo/ .rovodev/ .tabnine/ .trae/ .vibe/ .vscode/ .warp/ .windsurf/ .zed/ .mcp.json mcp.json"
        " mcp_config.json mcp-config.json .claude.json claude_desktop_config.json opencode.json opencode.jsonc",
        CLIENTS,
        everywhere=True,
    ),
    NameRule(
        ".idea/ .run/ .fleet/ .helix/ .nova/ .vs/ .lapce/ .bsp/ .lsp/ .theia/ .devcontainer/ .devcontainer.json"
        " *.code-workspace *.sublime-project launch.vs.json tasks.vs.json .externalToolBuilders/ .dir-locals.el"
        " .dir-locals-2.el .exrc _exrc .vimrc .vimrc.* _vimrc .gvimrc _gvimrc .ycm_extra_conf.py .nvimrc .nvim.lua"
        " .lvimrc .local.vimrc .lazy.lua .vim/ .nvim/ .neoconf.json",
        "an editor runs its tasks and commands when it opens the directory",
    ),
    NameRule(
        ".envrc .envrc.* .direnv/ .autoenv.zsh .rvmrc .shadowenv.d/ mise.toml .mise.toml mise.*.toml .mise.*.toml"
        " mise/config.toml mise/config.*.toml .mise/ .config/mise/ .config/mise.toml .config/mise.*.toml .rtx.toml"
        " .rtx.*.toml .rtx/ .prototools .flox/ .devbox/ .devenv/",
        "a shell runs it when it enters the directory, or starts programs from there",
    ),
    NameRule(
        ".npmrc .yarnrc .yarnrc.yml .yarn/ .pnpmfile.cjs .pnpmfile.mjs .pnp.cjs .pnp.loader.mjs bunfig.toml .bowerrc"
        " .cargo/ .bundle/ .mvn/ .bazeliskrc",
        "a package manager runs what it names with any command",
    ),
    NameRule("node_modules/", "npx and node prefer what is there to anything installed elsewhere"),
    NameRule(".venv/ venv/ pyvenv.cfg conda-meta/", ENVIRONMENT),
    NameRule("", ENVIRONMENT, "anything below a directory with `pyvenv.cfg` or `conda-meta`"),
    NameRule("sitecustomize.py usercustomize.py *.pth .pdbrc .pdbrc.py", "every Python that finds it runs it"),
    NameRule(
        ".Rprofile .Renviron .RData .irbrc .pryrc .byebugrc .rdbgrc .rdbgrc.rb .octaverc .ghci .ocamlinit .iex.exs"
        " .erlang .perldb .psysh.php .gdbinit .lldbinit ipython_config.py ipython_kernel_config.py jupyter_config.*"
        " jupyter_*_config.py jupyter_*_config.json",
        "an interpreter or debugger runs it when it starts in the directory",
    ),
    NameRule(
        "*.db-journal *.db3-journal *.sqlite-journal *.sqlite3-journal *.s3db-journal",
        "whatever opens the database lets SQLite remove the file that its journal names",
    ),
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

HARMLESS = {
    "what others leave out": """
        .*ignore .*ignore-revs .gitkeep .keep .gitattributes .gitmodules .mailmap .hgtags .nojekyll .nomedia
        .DS_Store
    """,
    "values for programs": """
        .env .env.* .env-* .env_* .flaskenv
    """,
    "versions, as plain numbers": """
        .nvmrc .node-version .python-version .python-versions .ruby-version .ruby-gemset .java-version .go-version
        .php-version .perl-version .swift-version .terraform-version .terraform.lock.hcl .xcode-version
        .crystal-version .dotnet-version
    """,
    "CI, releases and services": """
        .github/ .gitlab/ .gitlab-ci* .circleci/ .travis.yml .travis/ .buildkite/ .drone.yml .woodpecker*
        .azure-pipelines* .azuredevops/ .appveyor.yml .cirrus.yml .forgejo/ .gitea/ .semaphore/ .teamcity/ .tekton/
        .builds/ .build.yml .ci/ .readthedocs.y* .codecov.y* .coveralls.yml .codeclimate.yml .codacy.y*
        .deepsource.toml .scrutinizer.yml .lgtm.yml .styleci.yml .mergify.yml .kodiak.toml .sonarcloud.properties
        .dependabot/ .renovaterc .renovaterc.json* .releaserc .releaserc.json .releaserc.y* .release-please-*
        .release-it.json .goreleaser.y* .changeset/ .changes/ .changie.y* .chglog/ .bumpversion.* .versionrc
        .versionrc.json .all-contributorsrc .zenodo.json .snyk .whitesource .fossa.yml .coderabbit.y* .imgbotconfig
        .pullapprove.yml .spi.yml .jazzy.y* .gitbook.yaml .sops.yaml .firebaserc .openapi-generator/ .well-known/
        .htaccess
    """,
    "linters, formatters and tests": """
        .pre-commit-config.y* .pre-commit-hooks.y* .prettierrc .prettierrc.json* .prettierrc.y* .prettierrc.toml
        .eslintrc .eslintrc.json .eslintrc.y* .stylelintrc .stylelintrc.json .stylelintrc.y* .oxlintrc.json
        .oxfmtrc.json* .jshintrc .jscsrc .jsbeautifyrc .tslint.json .htmlhintrc .csslintrc .csscomb.json
        .markdownlint.json* .markdownlint.y* .markdownlintrc .mdformat.toml .remarkrc .remarkrc.json .remarkrc.y*
        .textlintrc.json .yamllint* .yamlfmt* .taplo.toml .dprint.json* .cspell.json .cspell.y* .codespellrc
        .typos.toml .vale.ini .lychee.toml .linkspector.yml .commitlintrc .commitlintrc.json .commitlintrc.y* .czrc
        .cz.toml .cz.json .cz.yaml .flake8 .isort.cfg .style.yapf .pycodestyle .pydocstyle* .pep8 .bandit .mypy.ini
        .ruff.toml .coveragerc .nycrc .nycrc.json .nycrc.y* .c8rc.json .mocharc.json* .mocharc.y* .babelrc
        .babelrc.json .swcrc .postcssrc .postcssrc.json .browserslistrc .flowconfig .size-limit.json .jscpd.json
        .shellcheckrc .hadolint.y* .ansible-lint* .tflint.hcl .terraform-docs.y* .checkov.y* .gitleaks.toml
        .secrets.baseline .golangci.* .clang-format .clang-tidy .cmake-format.json .cmake-format.y* .rustfmt.toml
        .clippy.toml .rubocop.yml .rubocop_*.yml .rspec .standard.yml .reek.yml .haml-lint.yml .slim-lint.yml
        .erb-lint.yml .document .swiftlint.yml .swiftformat .swift-format .scalafmt.conf .scalafix.conf .hlint.yaml
        .stylish-haskell.yaml .ocamlformat .perltidyrc .perlcriticrc .stylua.toml .solhint.json .sqlfluff .phpcs.xml*
        .phpunit.xml* .licenserc.y* .license-* .copier-answers.yml .cruft.json .yo-rc.json
    """,
    "plain settings of editors, and words for agents": """
        .editorconfig .projectile .kateconfig .watchmanconfig .cursorrules .windsurfrules
        .goosehints
    """,
}
"""Names that begin with a dot and ask nobody: data, not code, or code that runs elsewhere and after a review."""

SETTINGS_DIRECTORIES = frozenset({".config", "application support", "roaming"})
SETTINGS_OF_CLIENTS = frozenset({"claude", "code", "cursor", "goose", "opencode", "windsurf", "zed"})
"""Folders of clients below the user's settings, for those who allow their whole home directory."""

PRIVATE_STATE = frozenset({"sessions", "stats", "tmp"})
"""Folders below ``.onetool`` whose content belongs to single callers, who reach it by handle."""

type Names = tuple[str, ...]

KEPT_NAMES = 2048
"""Names whose rules are remembered: those of directories come with each path below them."""

_ROWS = {name.rstrip("/").lower(): (name, row) for row in TABLE for name in row.names}
_STARRED = {name: entry for name, entry in _ROWS.items() if "*" in name}
_CLIENT_FOLDERS = frozenset(name for name, (shown, row) in _ROWS.items() if row.why is CLIENTS and shown.endswith("/"))
_SHORT_NAME = re.compile(r"([^.~]{1,6})~\d")
_SHORT_FORMS = {name.lstrip(".").split(".")[0][:6]: name for name in _ROWS if not {"*", "/"}.intersection(name)}


@lru_cache(KEPT_NAMES)
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
        shown, row = _entry(name) or _entry(f"{name}/{below}") or ("", None)
        if row and (row.everywhere or at >= root) and not _holds_checkouts(name, below):
            return _words(shown, row.why)
    return ""


def _holds_checkouts(name: str, below: str) -> bool:
    # Checkouts that a client keeps for its own parallel work hold source, not settings.
    return name in _CLIENT_FOLDERS and below == "worktrees"


@lru_cache(KEPT_NAMES)
def _entry(name: str) -> tuple[str, NameRule] | None:
    starred = (entry for pattern, entry in _STARRED.items() if _fits(name, pattern))
    return _ROWS.get(name) or next(starred, None)


def _fits(name: str, pattern: str) -> bool:
    head, _, tail = pattern.partition("*")
    if not name.startswith(head) or not name.endswith(tail):  # nearly always
        return False
    return len(name) >= len(pattern) - 1 and name.count("/") == pattern.count("/")


class HarmlessNames:
    """The names that begin with a dot and ask nobody: those of the list, and the user's own."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        """Take *more* names, in which one ``*`` stands for any characters."""
        listed = (name for names in (*HARMLESS.values(), *more) for name in names.split())
        folded = {name.rstrip("/").lower() for name in listed}
        self._patterns = tuple(name for name in folded if "*" in name)
        self._names = folded.difference(self._patterns)

    def __contains__(self, name: str) -> bool:
        return name in self._names or any(_fits(name, pattern) for pattern in self._patterns)


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


class UnknownPlace(NamedTuple):
    """A place whose name begins with a dot and is on no list: its real path, and how a person reads it."""

    path: Names
    shown: str


class ProtectedPaths:
    """Answers, for a real path whose names are folded, why it may not be written or read; an empty answer allows it.

    What is ``hidden`` can be neither read nor written, but for what is ``shown`` below it; what is ``locked`` cannot be
    written, and is looked for before the first write. Of the ``roots``, in which programs may write at all, the
    innermost counts. Names that begin with a dot and are not ``harmless`` are written when the user agrees.
    """

    def __init__(
        self,
        roots: Iterable[Path],
        hidden: Iterable[Path],
        shown: Iterable[Path],
        locked: FindLocked,
        harmless: Iterable[str] = (),
    ) -> None:
        """Resolve the roots, because real places are compared; the others are resolved when a path is asked about."""
        self._more_harmless = tuple(harmless)
        self._roots, self._shown = tuple(map(_names, roots)), tuple(map(_names, shown))
        self._hidden_places = tuple(hidden)
        self._find_locked = locked

    @cached_property
    def _hidden(self) -> dict[Path, Names]:
        return {path: _names(path) for path in self._hidden_places}

    @cached_property
    def _locked(self) -> tuple[tuple[Names, LockedPath], ...]:
        return tuple((_names(entry.path), entry) for entry in self._find_locked())

    @cached_property
    def _harmless(self) -> HarmlessNames:
        return HarmlessNames(self._more_harmless)

    def _root_of(self, folded: Names) -> int:
        """Return how many names lead to the allowed directory that holds the path."""
        return max((len(names) for names in self._roots if folded[: len(names)] == names), default=0)

    def unknown_places(self, folded: Names) -> Iterator[UnknownPlace]:
        """Yield each place on the way to this path, itself included, by whose name nobody knows what reads it."""
        root = self._root_of(folded)
        for at, (name, below) in enumerate(pairwise((*folded[root:], "")), root + 1):
            if name.startswith(".") and name not in self._harmless and not _holds_checkouts(name, below):
                yield UnknownPlace(folded[:at], "/".join(folded[root:at]))

    def why_not_write(self, folded: Names) -> str:
        """Return why nothing may be written at this path."""
        if why := why_protected(folded, self._root_of(folded)):
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

    def is_open(self, folded: Names) -> bool:
        """Return whether neither this path nor any on the way to it needs a closer look before it is read."""
        return ".onetool" not in folded and not _is_below(folded, self._hidden.values())

    def is_hidden_file(self, status: os.stat_result) -> bool:
        """Return whether this file is a hidden one under another name, which only a hard link can be."""
        return status.st_nlink > 1 and any(_is_at(path, status) for path in self._hidden)


def _names(path: Path) -> Names:
    return tuple(map(fold, Path(os.path.realpath(path)).parts[1:]))


def _is_below(folded: Names, places: Iterable[Names]) -> bool:
    for place in places:  # noqa: SIM110 - every step of every path comes here
        if folded[: len(place)] == place:
            return True
    return False


def _is_at(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(status, path.stat())
    except OSError:
        return False

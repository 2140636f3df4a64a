"""Facts: what can be said of a project by looking at it, without running anything of it; documents may use them."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

MAX_FILES = 50_000
MAX_SECONDS = 2.0
SKIPPED = frozenset({"node_modules", "target", "dist", "build", "site", "vendor", "venv", "__pycache__"})
LANGUAGES = {
    "Bash": "sh bash", "C": "c h", "C#": "cs", "C++": "cpp cc cxx hpp", "CSS": "css scss less", "Dart": "dart",
    "Elixir": "ex exs", "Erlang": "erl", "Go": "go", "HTML": "html htm", "Haskell": "hs", "Java": "java",
    "JavaScript": "js jsx mjs cjs", "Julia": "jl", "Kotlin": "kt kts", "Lua": "lua", "Markdown": "md", "Nix": "nix",
    "OCaml": "ml mli", "PHP": "php", "Perl": "pl pm", "Python": "py pyi", "R": "r", "Ruby": "rb", "Rust": "rs",
    "SQL": "sql", "Scala": "scala", "Svelte": "svelte", "Swift": "swift", "Terraform": "tf", "TypeScript": "ts tsx",
    "Vue": "vue", "Zig": "zig",
}  # fmt: skip
BY_SUFFIX = {f".{suffix}": language for language, suffixes in LANGUAGES.items() for suffix in suffixes.split()}

_BRANCH = re.compile(r"ref: refs/heads/([^\s~^:?*\[\\]{1,200})\s*")


def facts_of(project: Path) -> dict[str, Any]:
    """Return the facts of a project; counting ends early in a very large one."""
    counts = _count(project).most_common(10)
    return {
        "name": project.name,
        "path": str(project),
        "branch": _branch(project),
        "languages": [{"name": name, "files": files} for name, files in counts],
    }


def _count(project: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    seen, end = 0, time.monotonic() + MAX_SECONDS
    for _, directories, files in os.walk(project):
        directories[:] = sorted(name for name in directories if not name.startswith(".") and name not in SKIPPED)
        seen += len(files) + len(directories)
        suffixes = (os.path.splitext(name)[1].lower() for name in files)  # noqa: PTH122 - a Path each would double the time
        counts.update(BY_SUFFIX[suffix] for suffix in suffixes if suffix in BY_SUFFIX)
        if seen > MAX_FILES or time.monotonic() > end:
            break
    return counts


def _branch(project: Path) -> str:
    """Return the branch that is checked out, as git's own file says: git itself would run what a project configures."""
    git = project / ".git"
    try:
        if git.is_file():  # a worktree, whose own directory is elsewhere
            with git.open(encoding="utf-8", errors="replace") as file:
                git = project / file.read(4096).removeprefix("gitdir:").strip().replace("\0", "")
        head = git / "HEAD"
        found = _BRANCH.fullmatch(head.read_bytes()[:300].decode(errors="replace") if head.is_file() else "")
    except OSError:
        return ""
    return found[1] if found else ""

"""The tools that know the project: its facts, and documents with the facts filled in.

Facts are what can be said of a project by looking at it, without running anything of it.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import TypedDict

from pydantic import Field

from mcp_core import Result, ToolArguments
from mcp_guide.document import GuideError, Name, answer
from mcp_guide.renderer import render_template
from mcp_guide.store import GuideEnvironment, Store
from mcp_guide.tools import ReadingArguments

MAX_FILES = 50_000
MAX_SECONDS = 2.0
MAX_LANGUAGES = 10
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


class Language(TypedDict):
    """A language and how many files are written in it."""

    name: str
    files: int


class ProjectFacts(TypedDict):
    """What is known of a project."""

    name: str
    path: str
    branch: str
    languages: list[Language]


class ProjectArguments(ReadingArguments):
    """No arguments."""


class RenderArguments(ReadingArguments):
    """Which document to render, with what."""

    category: Name = Field(description="The document's category")
    name: Name = Field(description="The document's name")
    values: dict[str, str | int | float | bool] = Field(
        default_factory=dict, max_length=50, description="Used in the document as {{ values.key }}"
    )


@ToolArguments.declare
def project(args: ProjectArguments) -> Result[ProjectFacts]:
    """Tell the project's name, path, git branch and languages by number of files.

    Returns:
        What documents can use as {{ project.name }} and the like.

    Example:
        project()
    """
    return answer(lambda: facts_of(GuideEnvironment.read().project))


@ToolArguments.declare
def render(args: RenderArguments) -> Result[str]:
    """Read one document with its Jinja2 template filled in: {{ project.* }} and {{ values.* }}.

    Returns:
        The text as it reads for this project.

    Example:
        render(category="style", name="python", values={"author": "Ada"})
    """
    return answer(lambda: _render(args, GuideEnvironment.read()))


def _render(args: RenderArguments, environment: GuideEnvironment) -> str:
    document = Store.of(environment).get(args.category, args.name)
    text, error = render_template(document["text"], {"project": facts_of(environment.project), "values": args.values})
    if error:
        instruction = "Give what is missing in values, or read the document with get."
        raise GuideError(f"{args.category}/{args.name}: {error}", "template_error", instruction)
    return text


# ---------------------------------------------------------------- facts


def facts_of(project: Path) -> ProjectFacts:
    """Return the facts of a project; counting ends early in a very large one."""
    counts = _count(project).most_common(MAX_LANGUAGES)
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
    try:
        head = _git_directory(project) / "HEAD"
        text = head.read_bytes()[:300].decode(errors="replace") if head.is_file() else ""
    except OSError:
        return ""
    found = _BRANCH.fullmatch(text)
    return found[1] if found else ""


def _git_directory(project: Path) -> Path:
    git = project / ".git"
    if git.is_file():
        with git.open(encoding="utf-8", errors="replace") as file:
            return project / file.read(4096).removeprefix("gitdir:").strip().replace("\0", "")
    return git

"""Look at the history of a git repository: status, log, diff, show, blame, branches; stage and commit."""

from __future__ import annotations

# ruff: noqa: E402 - a pack file opens with its name and its tools
pack = "git"

__all__ = ["blame", "branches", "commit", "diff", "log", "read", "show", "stage", "status"]
__ot_destructive__ = ["commit"]
__ot_read_only__ = ["blame", "branches", "diff", "log", "read", "show", "status"]
__ot_requires__ = {"programs": ["git"]}

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import NotRequired, TypedDict

from pydantic import BaseModel, ConfigDict, Field

from ot.execution.tool_context import current_tool_context
from ot_sdk.numbers import check_number, whole
from ot_tools import _git_history, _git_staging
from ot_tools._file_contents import is_there
from ot_tools._git_changes import Comparison, Difference, commit_id, common_ancestor, decode_text, empty_tree, pathspecs
from ot_tools._git_program import GitFailed, GitMissing
from ot_tools._git_repository import Repository, open_repository

MAX_LIMIT = 100_000
MAX_LINES = 100_000
MAX_CONTEXT = 1000
MAX_TEXT = 1000

WORDS = {
    ".": "",
    "?": "untracked",
    "A": "added",
    "C": "copied",
    "D": "deleted",
    "M": "modified",
    "R": "renamed",
    "T": "type",
    "U": "conflict",
}


class Config(BaseModel):
    """The settings ``tools.git``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    seconds: float = Field(
        default=30.0, gt=0, le=3600, allow_inf_nan=False, strict=False, description="Time for one call of git"
    )
    max_bytes: int = Field(default=20 << 20, ge=1000, description="Bytes that git may print in one call")


class StatusFile(TypedDict):
    """A file that is not as in the last commit; a side is empty where it has not changed."""

    path: str
    staged: str
    unstaged: str
    old_path: NotRequired[str]


class WorkTreeStatus(TypedDict):
    """The state of the work tree; upstream, ahead and behind only where the branch has an upstream."""

    branch: str
    commit: str
    upstream: NotRequired[str]
    ahead: NotRequired[int]
    behind: NotRequired[int]
    clean: bool
    files: list[StatusFile]


class FileChange(TypedDict):
    """A file that differs; the numbers count lines, and are None for binary data.

    The path is as other packs take it, and the name as git has it, from the top of the repository. The status is
    'added', 'modified', 'deleted', 'renamed', 'type' (such as a link in place of a file) or 'conflict'.
    """

    path: str
    name: str
    status: str
    added: int | None
    deleted: int | None
    old_path: NotRequired[str]
    patch: NotRequired[str]


class Commit(TypedDict):
    """A commit; its files only where they were asked for."""

    commit: str
    author: str
    email: str
    date: str
    subject: str
    body: str
    parents: list[str]
    files: NotRequired[list[FileChange]]


class BlameLine(TypedDict):
    """A line, and the commit that it comes from."""

    line: int
    text: str
    commit: str
    author: str
    email: str
    date: str
    subject: str


class BranchTip(TypedDict):
    """A branch, with its last commit."""

    name: str
    current: bool
    remote: bool
    commit: str
    author: str
    date: str
    subject: str
    upstream: str


class NotStaged(TypedDict):
    """A path that was left out, and why."""

    path: str
    why: str


class Staged(TypedDict):
    """What was staged, and what was not."""

    staged: list[str]
    left_out: list[NotStaged]


class Committed(TypedDict):
    """The new commit."""

    commit: str
    branch: str
    files: int


def status(*, repo: str = ".", untracked: bool = True, limit: int = 1000) -> WorkTreeStatus:
    """Tell which branch is checked out, and which files are changed, staged or new: all that is not committed.

    Args:
        repo: The repository: any path inside it. Paths that come back begin at the working directory, not there.
        untracked: Also list files that git does not know and does not ignore.
        limit: The most files to return; there may be more when as many come back.

    Returns:
        The branch (empty when none is checked out), its commit (empty before the first), and the files, each with what
        is staged and what is not: 'modified', 'added', 'deleted', 'renamed', 'type', 'conflict', 'untracked' or ''.

    Example:
        git.status()
    """
    check_number("limit", limit, 1)
    with _open(repo) as repository:
        branch, lines = _git_history.status_lines(repository, untracked, ())
        head, commit = branch.get("branch.head", ""), branch.get("branch.oid", "")
        files = [_status_file(repository, line) for line in whole(lines[: min(limit, MAX_LIMIT)], limit, MAX_LIMIT)]
    told: WorkTreeStatus = {
        "branch": "" if head == "(detached)" else head,
        "commit": "" if commit == "(initial)" else commit,
        "clean": not lines,
        "files": files,
    }
    if upstream := branch.get("branch.upstream"):
        told["upstream"] = upstream
    if ahead := branch.get("branch.ab"):
        told["ahead"], told["behind"] = (abs(int(count)) for count in ahead.split())
    return told


def log(
    *,
    repo: str = ".",
    revision: str = "HEAD",
    paths: str | list[str] | None = None,
    author: str = "",
    since: str = "",
    until: str = "",
    grep: str = "",
    merges: bool = True,
    files: bool = False,
    limit: int = 1000,
) -> list[Commit]:
    """List commits, the newest first: the history of a repository or of some files.

    Args:
        repo: The repository: any path inside it. Paths that come back begin at the working directory, not there.
        revision: Where to start: a branch, tag or commit; 'main..topic' lists what is in topic and not in main.
        paths: Only commits that change one of these files or directories.
        author: Only commits whose author's name or address holds this text, in any case.
        since: Only commits from then on: '2026-01-31', '2026-01-31T12:00' or '2 weeks ago'.
        until: Only commits up to then; a day alone counts whole.
        grep: Only commits whose message holds this text, in any case.
        merges: Also list merges.
        files: Also return the files that each commit changed, with the numbers of lines; a merge has none. Each has
            'path', as file.read takes it, and 'name', which begins at the top of the repository.
        limit: The most commits to return; there may be more when as many come back.

    Returns:
        The id, author, address, date, subject, body and parents of each commit, and with files=True its files.

    Example:
        git.log(since="1 month ago", files=True, limit=50)
    """
    check_number("limit", limit, 1)
    args = ["--fixed-strings", "--regexp-ignore-case", f"--max-count={min(limit, MAX_LIMIT)}"]
    args += [] if merges else ["--no-merges"]
    args += [f"--author={_text('author', author)}"] if author else []
    args += [f"--grep={_text('grep', grep)}"] if grep else []
    args += [f"--since={_git_history.point_in_time('since', since)}"] if since else []
    args += [f"--until={_git_history.point_in_time('until', until, end=True)}"] if until else []
    with _open(repo) as repository:
        if revision == "HEAD" and _is_new(repository):
            return []
        wanted = pathspecs(repository, paths or ())
        found = _git_history.commits(repository, *args, *_range(repository, revision), "--", *wanted)
        whole(found, limit, MAX_LIMIT)
        if files:
            _git_history.add_files(repository, found, wanted)
    return [_commit(commit, files=files) for commit in found]


def diff(
    *,
    base: str = "",
    target: str = "",
    repo: str = ".",
    merge_base: bool = False,
    staged: bool = False,
    paths: str | list[str] | None = None,
    stat: bool = False,
    context: int = 3,
    limit: int = 300,
) -> list[FileChange]:
    """Compare the work tree with what is staged, what is staged with the last commit, or two commits.

    Args:
        base: The commit, branch or tag to compare with; without it, what is staged (with staged=True the last commit).
            'main..topic' gives target, too, and 'main...topic' also merge_base=True. A path alone means paths.
        target: The commit, branch or tag that is compared; without it the work tree.
        repo: The repository: any path inside it. Paths that come back begin at the working directory, not there.
        merge_base: Compare with the common ancestor of base and target: only what was changed on target's side.
        staged: Compare what is staged instead of the work tree.
        paths: Only these files or directories.
        stat: Return no 'patch': a file's part of the diff, which file.patch takes (with path=repo where the repository
            is not the working directory).
        context: How many lines around each change.
        limit: The most files to return; there may be more when as many come back.

    Returns:
        The path (as file.read takes it), name (from the top of the repository), status ('added', 'modified',
        'deleted', 'renamed', 'type' or 'conflict', which has no patch), and numbers of added and deleted lines of each
        file.

    Example:
        git.diff(base="HEAD", stat=True)
    """
    check_number("limit", limit, 1)
    check_number("context", context, 0, MAX_CONTEXT)
    base, dots, tip = str(base).partition("...") if "..." in base else str(base).partition("..")
    if dots:
        base, target, merge_base = base or "HEAD", target or tip or "HEAD", merge_base or dots == "..."
    if merge_base and not base:
        raise ValueError("merge_base needs base: the branch that target, or the work tree, comes from")
    if target and (staged or not base):
        raise ValueError("target requires base and cannot be combined with staged=True")
    with _open(repo) as repository:
        if not target and not paths and _is_path(repository, base):
            base, paths = "", base
        commits = [commit_id(repository, side) for side in (base, target) if side]
        if merge_base:
            commits[0] = common_ancestor(repository, commits[0], target or "HEAD")
        sides = (*(("--cached",) if staged else ()), *commits)
        comparison = Comparison(repository, sides, tuple(pathspecs(repository, paths or ())), context)
        return [*map(_change, _changes(comparison, limit, stat=stat))]


def show(
    *,
    revision: str = "HEAD",
    repo: str = ".",
    paths: str | list[str] | None = None,
    stat: bool = False,
    limit: int = 300,
) -> Commit:
    """Show one commit: who, when, why, and what it changed against its first parent.

    Args:
        revision: The commit, branch or tag.
        repo: The repository: any path inside it. Paths that come back begin at the working directory, not there.
        paths: Only these files or directories.
        stat: Return no 'patch', which is a file's part of the diff.
        limit: The most files to return; there may be more when as many come back.

    Returns:
        The commit with its files.

    Example:
        git.show(revision="HEAD", stat=True)
    """
    check_number("limit", limit, 1)
    with _open(repo) as repository:
        (found,) = _git_history.commits(repository, "--max-count=1", commit_id(repository, revision), "--")
        before = found.parents[0] if found.parents else empty_tree(repository)
        comparison = Comparison(repository, (before, found.id), tuple(pathspecs(repository, paths or ())))
        found.files = _changes(comparison, limit, stat=stat)
    return _commit(found, files=True)


def read(*, path: str, revision: str = "HEAD", repo: str = "", encoding: str | None = "utf-8") -> str | bytes:
    """Return a file as it was at a revision, as git show REVISION:PATH does.

    Args:
        path: The file, as other tools take it; it need not exist any more.
        revision: The commit, branch or tag.
        repo: The repository, by any path inside it; that of the file when left out.
        encoding: How the bytes are to be read; None returns them as they are.

    Returns:
        The text of the file, or its bytes.

    Example:
        git.read(path="src/app.py", revision="HEAD~1")
    """
    with _open(repo or _directory_of(path)) as repository:
        commit, inside = commit_id(repository, revision), repository.inside(path)
        data = _git_history.file_at(repository, commit, inside)
    if data is None:
        raise FileNotFoundError(f"{path!r} is not a file at {revision!r}: git.show(revision=...) lists what changed")
    return data if encoding is None else data.decode(encoding)


def blame(*, path: str, repo: str = "", revision: str = "HEAD", start: int = 1, limit: int = 2000) -> list[BlameLine]:
    """Tell for each line of a file which commit and which author wrote it, and when.

    Args:
        path: The file.
        repo: The repository, by any path inside it; that of the file when left out.
        revision: The commit whose file is looked at; changes that are not committed do not count.
        start: The first line, from 1.
        limit: The most lines to return; there may be more when as many come back.

    Returns:
        The number and text of each line, and the id, author, address, date and subject of its commit.

    Example:
        git.blame(path="src/app.py", limit=100)
    """
    check_number("start", start, 1, MAX_LINES)
    check_number("limit", limit, 1)
    with _open(repo or _directory_of(path)) as repository:
        commit, inside = commit_id(repository, revision), repository.inside(path)
        lines = [*_git_history.blame(repository, commit, inside, start, min(limit, MAX_LINES))]
    return [
        {
            "line": line.line,
            "text": line.text,
            "commit": line.commit,
            "author": line.author,
            "email": line.email,
            "date": line.date,
            "subject": line.subject,
        }
        for line in whole(lines, limit, MAX_LINES)
    ]


def branches(*, repo: str = ".", remote: bool = False, limit: int = 200) -> list[BranchTip]:
    """List branches, those with the newest commits first.

    Args:
        repo: The repository: any path inside it.
        remote: Also list branches of remotes, as they were when they were last fetched.
        limit: The most branches to return; there may be more when as many come back.

    Returns:
        The name of each branch, whether it is checked out, its last commit, and its upstream.

    Example:
        git.branches()
    """
    check_number("limit", limit, 1)
    fields = (
        "%(refname)%00%(objectname)%00%(authorname)%00%(authordate:iso-strict)%00%(contents:subject)%00%(upstream)%00"
    )
    kinds = ("refs/heads/", *(("refs/remotes/",) if remote else ()))
    with _open(repo) as repository:
        told = repository.git.run(
            "for-each-ref", f"--count={min(limit, MAX_LIMIT)}", "--sort=-committerdate", f"--format={fields}", *kinds
        )
        head = repository.head
    rows = [row.lstrip("\n").split("\0") for row in decode_text(told).split("\0\n") if row]
    return [
        {
            "name": name.removeprefix("refs/heads/").removeprefix("refs/remotes/"),
            "current": name == head,
            "remote": name.startswith("refs/remotes/"),
            "commit": commit,
            "author": author,
            "date": date,
            "subject": subject,
            "upstream": upstream.removeprefix("refs/remotes/").removeprefix("refs/heads/"),
        }
        for name, commit, author, date, subject, upstream in whole(rows, limit, MAX_LIMIT)
    ]


def stage(*, paths: str | list[str], repo: str = ".") -> Staged:
    """Stage changed, new and deleted files for the next commit.

    Args:
        paths: The files, or directories with all that has changed in them and git does not ignore.
        repo: The repository: any path inside it.

    Returns:
        What was staged, and what was left out because programs may not write it, with the reason.

    Example:
        git.stage(paths=["notes.txt"])
    """
    with _open(repo, write=True) as repository:
        staged, left_out = _git_staging.stage(repository, [paths] if isinstance(paths, str) else paths)
    return {"staged": staged, "left_out": [{"path": left.path, "why": left.why} for left in left_out]}


def commit(*, message: str, repo: str = ".") -> Committed:
    """Commit what is staged, on the branch that is checked out; hooks are not run and nothing is signed.

    Args:
        message: What the commit changes and why: a line, then an empty one, then more.
        repo: The repository: any path inside it.

    Returns:
        The id of the commit, the branch, and how many files it changed.

    Example:
        git.commit(message="Fix the greeting")
    """
    with _open(repo, write=True) as repository:
        made, branch = _git_staging.commit(repository, message)
        (found,) = _git_history.commits(repository, "--max-count=1", made, "--")
        _git_history.add_files(repository, [found], ())
    return {"commit": made, "branch": branch, "files": len(found.files)}


@contextmanager
def _open(path: str, *, write: bool = False) -> Generator[Repository]:
    context = current_tool_context()
    config = Config.model_validate(dict(context.settings))
    try:
        with open_repository(context.guard, path, config.seconds, config.max_bytes, write=write) as repository:
            yield repository
    except GitFailed as error:  # a program knows the exceptions of Python only
        raise ValueError(str(error)) from None
    except GitMissing as error:
        raise RuntimeError(str(error)) from None


def _directory_of(path: str) -> str:
    """Return the nearest directory above *path* that is still there."""
    directory, guard = PurePosixPath(path).parent, current_tool_context().guard
    while directory != directory.parent and not is_there(guard, str(directory)):
        directory = directory.parent
    return str(directory)


def _is_path(repository: Repository, name: str) -> bool:
    """Return whether *name* is that of a file or directory, and not of a commit."""
    if not name or not is_there(repository.guard, name):
        return False
    try:
        commit_id(repository, name)
    except ValueError:
        return True
    return False


def _range(repository: Repository, revision: str) -> tuple[str, ...]:
    """Return the arguments that mean a revision, or all between two."""
    if not isinstance(revision, str):  # pyright: ignore[reportUnnecessaryIsInstance] - programs are not type-checked
        raise TypeError(f"revision must be text, got {revision!r:.100}")
    if "..." in revision:
        raise ValueError("three dots are not supported: write 'main..topic' for what is in topic and not in main")
    base, dots, tip = revision.rpartition("..")
    ends = (tip or "HEAD", base or "HEAD") if dots else (revision,)
    first, *without = (commit_id(repository, end) for end in ends)
    return first, *(f"^{id}" for id in without)


def _is_new(repository: Repository) -> bool:
    """Return whether the branch that is checked out has no commit yet."""
    found = repository.git.run("rev-parse", "--verify", "--quiet", "HEAD", accepted=(0, 1, 128))
    return not found and repository.head.startswith("refs/heads/")


def _text(name: str, text: str) -> str:
    if len(text) > MAX_TEXT or "\0" in text or "\n" in text:
        raise ValueError(f"{name} must be one line of at most {MAX_TEXT:,} characters")
    return text


def _status_file(repository: Repository, line: _git_history.StatusLine) -> StatusFile:
    staged, unstaged = WORDS.get(line.staged, line.staged), WORDS.get(line.unstaged, line.unstaged)
    told: StatusFile = {"path": repository.show_path(line.path), "staged": staged, "unstaged": unstaged}
    if line.old_path and repository.may_show(line.old_path):
        told["old_path"] = repository.show_path(line.old_path)
    return told


def _changes(comparison: Comparison, limit: int, *, stat: bool) -> list[Difference]:
    return whole(comparison.changes(min(limit, MAX_LIMIT), hunks=not stat), limit, MAX_LIMIT)


def _change(change: Difference) -> FileChange:
    told: FileChange = {
        "path": change.path,
        "name": change.name,
        "status": change.status,
        "added": change.added,
        "deleted": change.deleted,
    }
    if change.old_path:
        told["old_path"] = change.old_path
    if change.patch is not None:
        told["patch"] = change.patch
    return told


def _commit(commit: _git_history.LoggedCommit, *, files: bool) -> Commit:
    told: Commit = {
        "commit": commit.id,
        "author": commit.author,
        "email": commit.email,
        "date": commit.date,
        "subject": commit.subject,
        "body": commit.body,
        "parents": commit.parents,
    }
    if files:
        told["files"] = [*map(_change, commit.files)]
    return told

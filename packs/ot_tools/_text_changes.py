"""Changes the text of files: all is looked at before anything is written, and a file is written only as it was read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from ot.files.path_guard import PathGuard
from ot.files.run_writes import current_writes
from ot_tools._text_pages import text_to_search

CONTEXT = 3
SHOWN_PLACES = 5
MAX_PLACES = 10_000
MAX_LINES = 1_000_000
MAX_DIFF = 1 << 20
"""Characters of a diff that are returned; what comes after them is left out."""
BYTES_AT_ONCE, LINE_COST, PLACE_COST = 100, 1, 4
"""Bytes that are read, decoded and written for a cost of one; what each line and each place costs."""

State = tuple[int, str]
"""How many bytes a file holds, and their hash."""
Change = tuple[str, State | None, bytes | str]
"""A path, what its file held (None: it is new), and what it is to hold: bytes, or the path of a file with them."""


@dataclass(frozen=True)
class TextFile:
    """A file that a program may change, as it was when it was read; its lines end in a line feed alone."""

    path: str
    text: str
    data: bytes | None
    """None: there is no such file yet."""
    crlf: bool = False
    """Whether every line of the file ends in both carriage return and line feed."""

    @classmethod
    def read(cls, guard: PathGuard, path: str, max_bytes: int, spend: Callable[[float], None]) -> TextFile:
        """Return the file at *path*, which must be text and may be written; *spend* takes what changing it costs."""
        with guard.place_to_change(path, file=True) as (directory, name):
            spend(min(directory.require_changeable(name).st_size, max_bytes) / BYTES_AT_ONCE)
            with directory.open_file(name) as stream:
                try:
                    data = text_to_search(stream, max_bytes)
                    if (lines := data.count(b"\n")) > MAX_LINES:
                        raise ValueError(f"has {lines:,} lines, more than {MAX_LINES:,}: write it with file.write")
                    spend(lines * LINE_COST)
                    text = data.decode()
                except UnicodeDecodeError:
                    raise ValueError(
                        f"{path!r} is not UTF-8 text: read it with file.read(encoding=...) and write it with file.write"
                    ) from None
                except ValueError as error:
                    raise ValueError(f"{path!r} {error}") from None
        plain, crlf = without_returns(text)
        return cls(path, plain, data, crlf)

    def change_to(self, text: str, max_bytes: int, into: str) -> Change:
        """Return the change that makes *text* of the file; its bytes are written to the directory *into*, if any."""
        data = self.encode(text, max_bytes)
        before = None if self.data is None else state_of(self.data)
        if not into:
            return self.path, before, data
        file = Path(into, hashlib.sha256(self.path.encode()).hexdigest())
        file.write_bytes(data)
        return self.path, before, str(file)

    def encode(self, text: str, max_bytes: int) -> bytes:
        """Return *text* as it stands in this file."""
        try:
            data = (text.replace("\n", "\r\n") if self.crlf else text).encode()
        except UnicodeEncodeError:
            raise ValueError(f"{self.path!r} is not changed: the new text holds an unpaired surrogate") from None
        if len(data) > max_bytes:
            raise ValueError(
                f"{self.path!r} would have {len(data):,} bytes, more than {max_bytes:,} (tools.file.max_bytes)"
            )
        return data


def without_returns(text: str) -> tuple[str, bool]:
    """Return *text* with line feeds alone, and whether that changed it: only where all its lines end in both."""
    returns = text.count("\r\n")
    return (text.replace("\r\n", "\n"), True) if returns and returns == text.count("\n") else (text, False)


def state_of(data: bytes) -> State:
    """Return a hash of these bytes."""
    return len(data), hashlib.sha256(data).hexdigest()


def require_new(guard: PathGuard, path: str) -> None:
    """See that nothing is at *path*, and that a file may be made there."""
    try:
        guard.status(path)
    except FileNotFoundError:
        if why := guard.why_not(str(guard.real(path)), write=True):
            raise PermissionError(f"{path!r}: {why}") from None
        return
    raise FileExistsError(f"{path!r} exists, and the diff makes it as a new file")


def change_files(guard: PathGuard, changes: Sequence[Change]) -> None:
    """Give each path its new content, if it still holds the old one; undo all when one fails."""
    guard.require_agreed(path for path, _, _ in changes)
    current_writes().spend(sum(Path(to).stat().st_size if isinstance(to, str) else len(to) for _, _, to in changes))
    done: list[tuple[str, bytes | None]] = []
    try:
        for path, state, after in changes:
            before = _read_unchanged(guard, path, state)
            with guard.open_for_writing(path) as stream:
                stream.write(Path(after).read_bytes() if isinstance(after, str) else after)
            done.append((path, before))
    except BaseException:
        for path, before in reversed(done):
            _restore(guard, path, before)
        raise


def _read_unchanged(guard: PathGuard, path: str, state: State | None) -> bytes | None:
    """Return the file's content, checked to be unchanged."""
    try:
        with guard.open_for_reading(path) as stream:
            now = stream.read(state[0] + 1 if state else 1)
    except FileNotFoundError:
        now = None
    if (None if now is None else state_of(now)) != state:
        raise FileExistsError(f"{path!r} was changed meanwhile: read it again; nothing was changed")
    return now


def _restore(guard: PathGuard, path: str, before: bytes | None) -> None:
    if before is None:
        with guard.place_to_change(path, file=True) as (directory, name):
            directory.remove(name)
    else:
        with guard.open_for_writing(path) as stream:
            stream.write(before)


@dataclass(frozen=True)
class Replacement:
    """The places of a text that are to be replaced."""

    text: str
    old: str
    new: str
    places: tuple[int, ...]

    @classmethod
    def find(cls, file: TextFile, old: str, new: str, count: int | None) -> Replacement:
        """Find *old*, which must be there *count* times; with None once or more.

        Raises:
            ValueError: It is not, or nothing would change.
        """
        if not old:
            raise ValueError("old is empty: give the text to replace, or write the file with file.write")
        if file.crlf:
            old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
        if old == new:
            raise ValueError("old and new are the same text")
        if file.text.count(old) > MAX_PLACES:
            raise ValueError(f"{file.path!r} holds the old text more than {MAX_PLACES:,} times: give a longer one")
        places = tuple(_places(file.text, old))
        if not places:
            raise ValueError(f"{file.path!r} does not hold the old text{_near(file.text, old)}")
        if count is not None and len(places) != count:
            shown = ", ".join(str(_line(file.text, place)) for place in places[:SHOWN_PLACES])
            more = " and more" if len(places) > SHOWN_PLACES else ""
            raise ValueError(
                f"{file.path!r} holds the old text {len(places)} times, not {count} (lines {shown}{more}): "
                f"give more of the text around it, count={len(places)} or replace_all=True"
            )
        return cls(file.text, old, new, places)

    def result(self, max_bytes: int) -> str:
        """Return the text with all places replaced.

        Raises:
            ValueError: It would be too large, which is seen before it is made.
        """
        size = len(self.text) + len(self.places) * (len(self.new) - len(self.old))
        if size > max_bytes:
            raise ValueError(f"the text would have {size:,} characters, more than {max_bytes:,} (tools.file.max_bytes)")
        return self.text.replace(self.old, self.new)

    def unified_diff(self, path: str) -> str:
        """Return the changes in the form that ``patch`` takes; very long ones lose their end."""
        before, regions = split_lines(self.text), [*self._regions()]
        text = [f"--- a/{path}\n", f"+++ b/{path}\n"]
        shift, left = 0, MAX_DIFF
        for group in _near_each_other(regions):
            first, last = max(0, group[0].start - CONTEXT), min(len(before), group[-1].end + CONTEXT)
            body, at, grown = list[str](), first, 0
            for region in group:
                body += [f" {line}" for line in before[at : region.start]]
                body += [f"-{line}" for line in before[region.start : region.end]]
                body += [f"+{line}" for line in region.lines]
                at, grown = region.end, grown + len(region.lines) - (region.end - region.start)
            body += [f" {line}" for line in before[at:last]]
            size = last - first
            head = f"@@ -{_range(first, size)} +{_range(first + shift, size + grown)} @@\n"
            left -= len(head) + sum(map(len, body))
            if left < 0:  # in a form that no patch is read from: half of a change is not one
                text.append(f"@@ the rest of the diff is left out: it has more than {MAX_DIFF:,} characters @@\n")
                break
            text.append(head)
            text += (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in body)
            shift += grown
        return "".join(text)

    def _regions(self) -> Iterator[_Region]:
        """Yield the whole lines that change, each with the lines that stand there afterwards."""
        todo, number, counted = [*self.places], 0, 0
        while todo:
            start = self.text.rfind("\n", 0, todo[0]) + 1
            end, taken = self._line_end(todo[0] + len(self.old)), 1
            while taken < len(todo) and todo[taken] < end:
                end = self._line_end(todo[taken] + len(self.old))
                taken += 1
            number += self.text.count("\n", counted, start)
            counted, todo = start, todo[taken:]
            region = self.text[start:end]
            yield _Region.between(number, split_lines(region), split_lines(region.replace(self.old, self.new)))

    def _line_end(self, place: int) -> int:
        end = self.text.find("\n", place)
        return len(self.text) if end < 0 else end + 1


@dataclass(frozen=True)
class _Region:
    """Lines of a text, counted from 0, and what takes their place."""

    start: int
    end: int
    lines: list[str]

    @classmethod
    def between(cls, number: int, before: list[str], after: list[str]) -> _Region:
        """Return the region without the lines that stay as they are at its two ends."""
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
        rest, new = before[same:], after[same:]
        ends = zip(reversed(rest), reversed(new), strict=False)
        last = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
        return cls(number + same, number + len(before) - last, new[: len(new) - last])


def split_lines(text: str) -> list[str]:
    """Return the lines with their ends; only a line feed ends a line."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _near_each_other(regions: list[_Region]) -> Iterator[list[_Region]]:
    group: list[_Region] = []
    for region in regions:
        if group and region.start - group[-1].end > 2 * CONTEXT:
            yield group
            group = []
        group.append(region)
    if group:
        yield group


def _range(start: int, size: int) -> str:
    return f"{start + 1 if size else start},{size}"


def _places(text: str, old: str) -> Iterator[int]:
    place = text.find(old)
    while place >= 0:
        yield place
        place = text.find(old, place + len(old))


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _near(text: str, old: str) -> str:
    """Return in words where its first line stands with other spaces, which is the usual mistake."""
    wanted = old.strip().partition("\n")[0].strip()
    for number, line in enumerate(text.split("\n"), 1):
        if wanted and wanted in line:
            return f"; the nearest is line {number}, {line[:200]!r}: take the text as file.read returns it"
    return ": read it first with file.read"

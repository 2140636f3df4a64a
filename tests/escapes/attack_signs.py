"""The signs by which a repository attack is known to have taken effect."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from escapes.attacked_home import CANARY, AttackedHome
from escapes.repository_attack import Attack

type Picture = Mapping[str, tuple[int, bytes]]

STATE = (
    "logs",
    "stats",
    "ledger",
    "projects",
    "tmp",
    "packs",
    "homes",
    "servers",
    "seen",
    "spool",
    "runs",
    "undo",
    "backups",
    "trust.json",
    ".trust.json.lock",
    ".edit.lock",
)
"""What the server keeps for itself in the user's directory."""

RAW = re.compile(
    "(?!\x1b\\[[0-9;]*m)[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What can steer a terminal or turn its text round; colours are our own."""

MOST_BYTES = 1 << 24
REPLACES = re.compile(r"replac|stands in|in place of|instead of yours|overrid|yours of that name", re.IGNORECASE)


def picture_of(base: Path, attack: Attack) -> Picture:
    """Return all that lies outside of the project, but for what the server keeps for itself."""
    found: dict[str, tuple[int, bytes]] = {}
    for folder, folders, files in os.walk(base):
        here = Path(folder)
        if here == base:
            folders[:] = [name for name in folders if name not in (attack.work, "mark")]
        if here == base / "home" / ".onetool":
            folders[:] = [name for name in folders if name not in STATE]
            files = [name for name in files if name not in STATE]
        if here == base / "home":
            folders[:] = [name for name in folders if name not in (".npm", ".cache")]
        for name in [*folders, *files]:
            path = here / name
            found[path.relative_to(base).as_posix()] = _seen(path)
    return found


def _seen(path: Path) -> tuple[int, bytes]:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return 0, os.fsencode(path.readlink())
    return stat.S_IMODE(status.st_mode), path.read_bytes() if stat.S_ISREG(status.st_mode) else b""


def effects_of(attack: Attack, home: AttackedHome, before: Picture, received: str = "") -> list[str]:
    """Return every sign that the attack took effect."""
    return [
        *(f"code ran: {mark}" for mark in home.marks),
        *home.broke,
        *_changed_outside(attack, home, before),
        *_leaked(attack, home, received),
        *(
            f"raw {found.group()!r} on the screen: {_around(text, found)}"
            for text in home.said
            if (found := RAW.search(text))
        ),
        *_trusted_unasked(attack, home),
        *_own_signs(attack, home),
        *(f"sent: {wrong}" for wrong in attack.must_not_send if wrong in received),
    ]


def _around(text: str, found: re.Match[str]) -> str:
    return repr(text[max(0, found.start() - 60) : found.end() + 40])


def _changed_outside(attack: Attack, home: AttackedHome, before: Picture) -> Iterator[str]:
    after = picture_of(home.house.home.parent, attack)
    wanted = {f"home/{name}" for name in attack.asked.get("files", ())}
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) == after.get(name) or name in wanted:
            continue
        if name == "home/.onetool/onetool.yaml" and attack.asked and name in after:
            yield from _unwanted_settings(attack, before[name][1], after[name][1])
            continue
        what = "was made" if name not in before else "is gone" if name not in after else "was changed"
        (old, _), (new, data) = (picture.get(name, (0, b"")) for picture in (before, after))
        yield f"{name} {what}: {old:o} {new:o} {data[-200:]!r}"


def _unwanted_settings(attack: Attack, before: bytes, after: bytes) -> Iterator[str]:
    old, new = yaml.safe_load(before), yaml.safe_load(after)
    for name in attack.asked.get("servers", ()):
        new["servers"].pop(name, None)
    for name in attack.asked.get("allow", ()):
        new["policy"]["allow"].remove(name)
    for name in attack.asked.get("disabled", ()):
        new["servers"][name].pop("enabled", None)
    if old != new:
        yield f"the user's configuration became {new}"


def _leaked(attack: Attack, home: AttackedHome, received: str) -> Iterator[str]:
    yield from (f"a secret was shown: {text[-300:]!r}" for text in home.said if CANARY in text)
    if CANARY in received:
        yield f"a secret was received: {received}"
    for name, data in _files_of_project(home):
        if CANARY.encode() in data and name not in attack.may_hold:
            yield f"a secret is in the project's {name}"


def _trusted_unasked(attack: Attack, home: AttackedHome) -> Iterator[str]:
    book = home.house.user / "trust.json"
    projects = json.loads(book.read_text())["projects"] if book.exists() else {}
    if projects and not attack.trusts and not attack.asked.get("trust"):
        yield "the project is trusted, which nobody asked for"


def _own_signs(attack: Attack, home: AttackedHome) -> Iterator[str]:
    text = "\n".join(home.said)
    yield from (f"not shown: {wanted!r}" for wanted in map(home.filled, attack.must_show) if wanted not in text)
    for wanted in attack.must_say:
        pattern = REPLACES if wanted == "REPLACES" else re.compile(home.filled(wanted), re.MULTILINE)
        if not pattern.search(text):
            yield f"nothing says {wanted!r}"
    yield from (f"said: {wrong!r}" for wrong in map(home.filled, attack.must_not_say) if wrong in text)
    for place, wrong in attack.must_not_hold.items():
        for name, data in _files_of_project(home):
            if f"{name}/".startswith(f"{place}/") and wrong.encode() in data:
                yield f"the project's {name} holds {wrong!r}"


def _files_of_project(home: AttackedHome) -> Iterator[tuple[str, bytes]]:
    for path in sorted(home.house.cwd.rglob("*")):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_size < MOST_BYTES:
            yield path.relative_to(home.house.cwd).as_posix(), path.read_bytes()

"""Somebody who swaps links for files and directories, while tools work on them, gets nothing out and nothing in."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from escapes.house import House, everything, write
from mcp_wire import WireServer
from pace import PATIENCE


@contextlib.contextmanager
def swapping(put_inside: Callable[[], None], put_outside: Callable[[], None]) -> Generator[list[int]]:
    """Change a path to and fro in a thread while the block runs; the list counts how often."""
    swaps, done = [0], threading.Event()

    def swap() -> None:
        while not done.is_set():
            put_outside()
            put_inside()
            swaps[0] += 1

    attacker = threading.Thread(target=swap, daemon=True)
    attacker.start()
    try:
        yield swaps
    finally:
        done.set()
        attacker.join(PATIENCE)


def run_against_swaps(server: WireServer, swaps: list[int], program: str) -> str:
    """Run *program* until it has met many swaps, and return all that it said."""
    said = ""
    for _ in range(40):
        said += server.run(program).text
        if swaps[0] > 500 and "inside" in said and "Error" in said:
            break
    assert "inside" in said, "the file was never met in its rightful place"
    assert swaps[0] > 100
    return said


READ_OFTEN = """\
met = []
for _ in range(100):
    try:
        met.append(file.read(path={path!r}))
    except Exception as error:
        met.append(type(error).__name__)
sorted(set(met))"""

WRITE_OFTEN = """\
met = []
for n in range(100):
    try:
        file.write(path="door/dropped.txt", content="x", append=n % 2 == 0)
        met.append("inside")
    except Exception as error:
        met.append(type(error).__name__)
sorted(set(met))"""


CHANGE_OFTEN = """\
import glob, os, pathlib, shutil
met = set()
for n in range(12):
    for step in (
        lambda: file.write(path="door/sub/below.txt", content="inside"),
        lambda: file.search(pattern="canary|inside", path="door"),
        lambda: file.search(pattern="canary", path="door/sub"),
        lambda: rg.search(pattern="canary", path="door"),
        lambda: file.tree(path="door"),
        lambda: file.list(path="door", depth=3),
        lambda: file.glob(pattern="door/**/*"),
        lambda: os.listdir("door"),
        lambda: glob.glob("door/**", recursive=True),
        lambda: [path.read_text() for path in pathlib.Path("door").rglob("*.txt")],
        lambda: file.copy(source="door", target=f"copied/{n}"),
        lambda: shutil.copy("door/file.txt", f"copied/{n}.txt"),
        lambda: file.edit(path="door/file.txt", old="i", new="i"),
        lambda: file.copy(source="door/file.txt", target="door/copied.txt", overwrite=True),
        lambda: file.move(source="door/copied.txt", target="door/sub/moved.txt", overwrite=True),
        lambda: os.rename("door/sub/moved.txt", "door/moved.txt"),
        lambda: os.truncate("door/sub/below.txt", 0),
        lambda: os.utime("door/sub/below.txt", (1, 1)),
        lambda: file.delete(path="door/moved.txt"),
        lambda: os.remove("door/sub/below.txt"),
        lambda: file.delete(path="door/sub", recursive=True),
        lambda: shutil.rmtree("door/sub"),
        lambda: file.make_directory(path="door/sub"),
    ):
        try:
            met.add(str(step()))
        except Exception as error:
            met.add(type(error).__name__ + "Error")
sorted(met)"""
"""All that can be done with files, at a path below one that turns into a link and back."""


@pytest.fixture
def door(tmp_path: Path) -> Iterator[tuple[House, WireServer, Path, Path]]:
    """A server, and a directory and a link to the outside that take turns at the same path."""
    house = House.build(tmp_path)
    house.user_file("policy: {allow: ['file.*']}")
    for name in ("file.txt", "sub/below.txt", "sub/moved.txt", "moved.txt", "copied.txt"):
        write(house.outside / name, "canary-outside")
        os.utime(house.outside / name, (1_000_000_000, 1_000_000_000))
    inner, link = house.work / "inner", house.work / "link"
    write(inner / "file.txt", "inside")
    link.symlink_to(house.outside)
    with house.serve() as server:
        yield house, server, inner, link


def take_place(held: Path, path: Path) -> None:
    """Give *held* the name *path*, also where a write has just made a directory of that name."""
    while os.path.lexists(held):
        try:
            held.rename(path)
        except OSError:
            shutil.rmtree(path, ignore_errors=True)  # the server may be writing there just now


@pytest.mark.parametrize(
    "program",
    [READ_OFTEN.format(path="door/file.txt"), WRITE_OFTEN, CHANGE_OFTEN],
    ids=["reading", "writing", "walking and changing"],
)
def test_a_directory_that_turns_into_a_link_meanwhile_leads_nowhere(
    door: tuple[House, WireServer, Path, Path], program: str
) -> None:
    house, server, inner, link = door
    path, before = house.work / "door", everything(house.outside)
    inner.rename(path)

    def outside() -> None:
        path.rename(inner)
        take_place(link, path)

    def inside() -> None:
        path.rename(link)
        take_place(inner, path)

    with swapping(inside, outside) as swaps:
        said = run_against_swaps(server, swaps, program)
    assert "canary-outside" not in said
    assert b"canary-outside" not in b"".join(filter(None, everything(house.work).values()))
    assert everything(house.outside) == before
    assert {path.stat().st_mtime for path in house.outside.rglob("*.txt")} == {1_000_000_000}


def test_a_file_that_turns_into_a_link_meanwhile_is_not_read_through(
    door: tuple[House, WireServer, Path, Path],
) -> None:
    house, server, inner, _ = door
    path, spare = inner / "file.txt", inner / "spare"

    def outside() -> None:
        spare.symlink_to(house.outside / "file.txt")
        spare.replace(path)

    def inside() -> None:
        write(spare, "inside").replace(path)

    with swapping(inside, outside) as swaps:
        said = run_against_swaps(server, swaps, READ_OFTEN.format(path="inner/file.txt"))
    assert "canary-outside" not in said

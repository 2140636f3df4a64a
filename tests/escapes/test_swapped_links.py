"""No way round the guards: neither links that change under them, nor names, nor environments."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

import ot
import ot_packs
import ot_tools
from bed import SOURCE, write
from escapes.house import House, everything
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
    house = House.make(tmp_path)
    house.user_file("policy: {allow: ['file.*']}")
    for name in ("file.txt", "sub/below.txt", "sub/moved.txt", "moved.txt", "copied.txt"):
        write(house.outside / name, "canary-outside")
        os.utime(house.outside / name, (1_000_000_000, 1_000_000_000))
    inner, link = house.cwd / "inner", house.cwd / "link"
    write(inner / "file.txt", "inside")
    link.symlink_to(house.outside)
    with house.stdio() as server:
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
    path, before = house.cwd / "door", everything(house.outside)
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
    assert b"canary-outside" not in b"".join(filter(None, everything(house.cwd).values()))
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


PACK = "pack = 'evil'\ndef run():\n    return 'EVIL'\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, WireServer]]:
    """A trusted project in a repository, with links that lead where a program would like to be."""
    house = House.make(tmp_path_factory.mktemp("round"))
    house.project_file("aliases: {ls: file.list}\n")
    house.trust()
    (house.cwd / ".git" / "hooks").mkdir(parents=True)
    for name, target in {"shortcut": house.project, "gitlink": house.cwd / ".git", "exit": house.outside}.items():
        (house.cwd / name).symlink_to(target)
    with house.stdio() as server:
        yield house, server


def attempts(path: str, content: str = PACK) -> str:
    """Return a program that tries to write *path* in both ways, and says how it went."""
    return (
        "tries = []\n"
        "for append in (False, True):\n"
        "    try:\n"
        f"        file.write(path={path!r}, content={content!r}, append=append)\n"
        "        tries.append('WRITTEN')\n"
        "    except Exception as error:\n"
        "        tries.append(type(error).__name__)\n"
        "tries"
    )


@pytest.mark.parametrize(
    "path",
    [
        ".onetool/onetool.yaml",
        ".onetool/secrets.yaml",
        ".onetool/tools/evil/evil_tools.py",
        ".onetool/tmp/result-AAAAAAAAAAAAAAAAAAAAAA.meta.json",
        ".OneTool/tools/evil/evil_tools.py",
        ".onetool./onetool.yaml",
        "./.onetool//onetool.yaml",
        "sub/../.onetool/onetool.yaml",
        "sub/.onetool/onetool.yaml",
        "shortcut/onetool.yaml",
        "shortcut/tools/evil/evil_tools.py",
        ".git/hooks/pre-commit",
        ".git/config",
        ".GIT/config",
        "gitlink/hooks/post-checkout",
        "sub/.git",
        ".mcp.json",
        ".claude/settings.json",
        ".vscode/tasks.json",
        ".cursor/mcp.json",
        "../outside/dropped.txt",
        "{outside}/dropped.txt",
        "exit/dropped.txt",
        "exit/../dropped.txt",
        "~/.onetool/onetool.yaml",
        "~/.onetool/trust.json",
        "~/.bashrc",
        "/proc/self/cwd/.onetool/onetool.yaml",
        "/proc/self/root/{outside}/dropped.txt",
        "/dev/shm/onetool-dropped",
    ],
)
def test_a_tool_does_not_write_where_a_write_becomes_code_or_leaves_the_roots(
    served: tuple[House, WireServer], path: str
) -> None:
    house, server = served
    before, packs = everything(house.cwd.parent), server.run("ot.packs(info='list')").text
    reply = server.run(attempts(path.replace("{outside}", str(house.outside))))
    assert "WRITTEN" not in reply.text
    assert not reply.is_error
    assert everything(house.cwd.parent) == before
    assert server.run("ot.reload()").text == "OK: Configuration reloaded"
    assert server.run("ot.packs(info='list')").text == packs
    assert "trusted" in server.run("ot.health()['project']").text


def test_a_tool_still_writes_where_it_may(served: tuple[House, WireServer]) -> None:
    house, server = served
    assert server.run(attempts("notes/today.txt", "x")).text == '["WRITTEN","WRITTEN"]'
    assert (house.cwd / "notes" / "today.txt").read_text() == "xx"


def test_a_program_cannot_make_a_project_of_a_directory_that_has_none(tmp_path: Path) -> None:
    house = House.make(tmp_path)
    with house.stdio() as server:
        tries = [server.run(attempts(f".onetool/{name}")).text for name in ("onetool.yaml", "tools/evil/evil_tools.py")]
        assert all("WRITTEN" not in text for text in tries)
        assert not house.project.exists()
        server.run("ot.reload()")
        assert "none" in server.run("ot.health()['project']").text


@pytest.mark.parametrize(
    "path",
    [
        Path(ot_tools.__file__).parent / "onetool_escape.py",
        Path(ot_packs.__file__).parent / "rg" / "onetool_escape.py",
        Path(ot.__file__).parent / "onetool_escape.py",
        Path(sys.prefix) / "onetool_escape.pth",
    ],
    ids=["a bundled pack", "a bundled pack in a worker", "the server's code", "the server's environment"],
)
def test_the_server_s_own_code_cannot_be_written_even_where_its_directory_is_allowed(
    tmp_path: Path, path: Path
) -> None:
    house = House.make(tmp_path)
    house.user_file(f"security: {{roots: ['{path.parent}']}}\n")
    try:
        with house.stdio() as server:
            assert server.run(f"file.list(path={str(path.parent)!r})[0]['path']").is_error is False
            assert "WRITTEN" not in server.run(attempts(str(path))).text
        assert not path.exists()
    finally:
        path.unlink(missing_ok=True)


def test_a_module_that_a_program_writes_is_not_imported_by_the_server(tmp_path: Path) -> None:
    house = House.make(tmp_path)
    marker = house.outside / "imported"
    evil = f"open({str(marker)!r}, 'w').close()"
    modules = ("griffe", "yaml", "rapidfuzz", "json5", "file", "ot_tools", "_colorize")
    # Many shells of projects put the project's own directory on Python's path.
    path = os.pathsep.join([str(house.cwd), str(house.cwd / "src"), "", str(SOURCE)])
    with house.stdio(env={"PYTHONPATH": path}) as server:
        for module in modules:
            for folder in ("", "src/"):
                server.run(f"file.write(path='{folder}{module}.py', content={evil!r})")
        for command in ("ot.help(query='file.read')", "ot.help(query='find text')", "__format__ = 'yml'\n[1]"):
            assert not server.run(command).is_error, command
    assert (house.cwd / "griffe.py").exists()
    assert (house.cwd / "src" / "griffe.py").exists()
    assert not marker.exists()

"""No tool that writes files is a way to code, settings or places that are not the program's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ot
import ot_tools
from escapes.house import SOURCE, House, everything
from mcp_wire import WireServer

PACK = "pack = 'evil'\ndef run():\n    return 'EVIL'\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, WireServer]]:
    """A trusted project in a repository, with links that lead where a program would like to be."""
    house = House.build(tmp_path_factory.mktemp("round"))
    house.project_file("aliases: {ls: file.list}\n")
    house.trust()
    (house.work / ".git" / "hooks").mkdir(parents=True)
    for name, target in {"shortcut": house.project, "gitlink": house.work / ".git", "exit": house.outside}.items():
        (house.work / name).symlink_to(target)
    with house.serve() as server:
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
    before, packs = everything(house.work.parent), server.run("ot.packs(info='list')").text
    reply = server.run(attempts(path.replace("{outside}", str(house.outside))))
    assert "WRITTEN" not in reply.text
    assert not reply.is_error
    assert everything(house.work.parent) == before
    assert server.run("ot.reload()").text == "OK: Configuration reloaded"
    assert server.run("ot.packs(info='list')").text == packs
    assert "trusted" in server.run("ot.health()['project']").text


def test_a_tool_still_writes_where_it_may(served: tuple[House, WireServer]) -> None:
    house, server = served
    assert server.run(attempts("notes/today.txt", "x")).text == '["WRITTEN","WRITTEN"]'
    assert (house.work / "notes" / "today.txt").read_text() == "xx"


def test_a_program_cannot_make_a_project_of_a_directory_that_has_none(tmp_path: Path) -> None:
    house = House.build(tmp_path)
    with house.serve() as server:
        tries = [server.run(attempts(f".onetool/{name}")).text for name in ("onetool.yaml", "tools/evil/evil_tools.py")]
        assert all("WRITTEN" not in text for text in tries)
        assert not house.project.exists()
        server.run("ot.reload()")
        assert "none" in server.run("ot.health()['project']").text


@pytest.mark.parametrize(
    "path",
    [
        Path(ot_tools.__file__).parent / "onetool_escape.py",
        Path(ot.__file__).parent / "onetool_escape.py",
        Path(sys.prefix) / "onetool_escape.pth",
    ],
    ids=["a bundled pack", "the server's code", "the server's environment"],
)
def test_the_server_s_own_code_cannot_be_written_even_where_its_directory_is_allowed(
    tmp_path: Path, path: Path
) -> None:
    house = House.build(tmp_path)
    house.user_file(f"security: {{roots: ['{path.parent}']}}\n")
    try:
        with house.serve() as server:
            assert server.run(f"file.list(path={str(path.parent)!r})[0]['path']").is_error is False
            assert "WRITTEN" not in server.run(attempts(str(path))).text
        assert not path.exists()
    finally:
        path.unlink(missing_ok=True)


def test_a_module_that_a_program_writes_is_not_imported_by_the_server(tmp_path: Path) -> None:
    house = House.build(tmp_path)
    marker = house.outside / "imported"
    evil = f"open({str(marker)!r}, 'w').close()"
    modules = ("griffe", "yaml", "rapidfuzz", "json5", "file", "ot_tools", "_colorize")
    # Many shells of projects put the project's own directory on Python's path.
    path = os.pathsep.join([str(house.work), str(house.work / "src"), "", str(SOURCE)])
    with house.serve(env={"PYTHONPATH": path}) as server:
        for module in modules:
            for folder in ("", "src/"):
                server.run(f"file.write(path='{folder}{module}.py', content={evil!r})")
        for command in ("ot.help(query='file.read')", "ot.help(query='find text')", "__format__ = 'yml'\n[1]"):
            assert not server.run(command).is_error, command
    assert (house.work / "griffe.py").exists()
    assert (house.work / "src" / "griffe.py").exists()
    assert not marker.exists()

"""The README and the tutorial, played word for word in an empty home, from the install to a connected client."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console_blocks import typed_commands
from walkthrough.official_clients import ask_python, ask_typescript, entered, install_typescript
from walkthrough.walk import README, Walk, make_picture

pytestmark = pytest.mark.timeout(400)
ANSWER = "3 fixes are in your notes now"
MOST_SECONDS = 300
"""What the README and the tutorial may take together, on a machine that does nothing else."""
MOST_CONTROLS = 12
"""How many times the control a command may take that starts no server and installs nothing."""


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    """A newcomer who has installed OneTool as the README says, has a repository, and two servers in Claude Code."""
    begun = Walk(tmp_path_factory.mktemp("walk"))
    begun.prepare()
    install = typed_commands(README)[0]
    assert install.command == "uv tool install --quiet --compile-bytecode ."
    begun.play_readme(install)
    yield begun
    shutil.rmtree(begun.place / "tools")  # 200 MB


@pytest.fixture(scope="module")
def connected(walk: Walk) -> Walk:
    """The same, after the other commands of the README, typed at a terminal and answered with y."""
    walk.control()
    typed = typed_commands(README)[1:]
    assert [entry.command.split()[1] for entry in typed] == ["init", "check"]
    walk.play_readme(*typed)
    return walk


def test_the_readme_and_the_home_page_show_what_the_program_says(connected: Walk) -> None:
    shown = connected.show(make_picture.COMMAND, connected.place / "shop")
    for page in (README, (make_picture.ROOT / "docs/index.md").read_text(encoding="utf-8")):
        assert f"$ {make_picture.COMMAND}\n{shown}" in page
    assert "Fix dates before 1970" in (connected.home / "notes.jsonl").read_text()


@pytest.mark.anyio
async def test_the_python_client_runs_the_program_of_the_readme_and_is_asked(connected: Walk) -> None:
    (connected.home / "notes.jsonl").unlink(missing_ok=True)
    shop, file = connected.place / "shop", connected.home / ".claude.json"
    program = (shop / "fixes.py").read_text()
    with connected.step("clients", "the official Python client runs fixes.py"):
        reply = await ask_python(entered(file, shop, connected.environment), program, "accept")
    assert (reply.tools, reply.text, reply.is_error) == (["run"], ANSWER, False)
    assert ["notes.create_entities" in question for question in reply.questions] == [True]
    assert "Fix dates before 1970" in (connected.home / "notes.jsonl").read_text()


def test_the_typescript_client_is_asked_and_its_no_holds(connected: Walk, tmp_path: Path) -> None:
    (connected.home / "notes.jsonl").unlink(missing_ok=True)
    shop, file = connected.place / "shop", connected.home / ".claude.json"
    program = (shop / "fixes.py").read_text()
    with connected.step("clients", "the TypeScript SDK is installed"):
        script = install_typescript(tmp_path / "client")
    with connected.step("clients", "the official TypeScript client runs fixes.py"):
        reply = ask_typescript(script, file, program, "decline", shop, connected.environment)
    assert (reply.tools, reply.is_error, len(reply.questions)) == (["run"], True, 1)
    assert reply.text.startswith("PermissionError: notes.create_entities was not called")
    assert not (connected.home / "notes.jsonl").exists()


def test_the_first_program_of_the_tutorial_does_what_it_says(walk: Walk) -> None:
    walk.forget_settings()
    assert walk.play("docs/tutorial/first-program.md", walk.clone) >= 8


def test_the_tutorial_about_servers_does_what_it_says(walk: Walk) -> None:
    walk.forget_settings()
    assert walk.play("docs/tutorial/bring-your-servers.md", walk.place / "servers") >= 10
    assert '"Asia/Tokyo"' in (walk.home / "notes.jsonl").read_text()


def test_the_tutorial_of_the_first_pack_does_what_it_says(walk: Walk) -> None:
    walk.forget_settings()
    assert walk.play("docs/tutorial/first-pack.md", walk.place / "pack") >= 8


def test_all_of_it_takes_less_than_five_minutes(walk: Walk, record_property: Callable[[str, object], None]) -> None:
    walk.control()
    record_property("walkthrough", walk.table())
    assert walk.seconds < MOST_SECONDS * walk.slowness
    plain = [seconds for _, what, seconds in walk.steps if is_plain(what)]
    assert not plain or max(plain) < MOST_CONTROLS * max(walk.controls)


def is_plain(what: str) -> bool:
    """Return whether a step runs a program that needs no server and no worker."""
    return what.startswith("onetool run") and shlex.split(what)[2].startswith(("file.", "len(file.", "ot."))

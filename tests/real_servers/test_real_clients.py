"""The clients' own programs list OneTool after ``onetool connect``, and no more after ``onetool disconnect``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.command import OneTool
from real_servers.client_programs import PROGRAMS
from system_package import require_programs

pytestmark = pytest.mark.timeout(400)  # the programs may have to be installed first
LISTED = {"claude-code": "✔ Connected", "codex": "enabled", "gemini-cli": "serve --shared (stdio) - "}
"""What each says of OneTool. Claude Code starts it for that; Gemini CLI does too, but gives up on a busy machine."""


@pytest.fixture(scope="module", autouse=True)
def _programs() -> None:
    require_programs("npm", "node")

    async def install() -> None:
        async with asyncio.TaskGroup() as tasks:
            for program in PROGRAMS:
                tasks.create_task(program.install())

    asyncio.run(install())


@pytest.fixture
def said(home: Path) -> Callable[[], dict[str, str]]:
    """Ask all clients at once, as their user would."""

    async def ask() -> dict[str, str]:
        words = await asyncio.gather(*(program.listed(home) for program in PROGRAMS))
        return dict(zip((program.client for program in PROGRAMS), words, strict=True))

    return lambda: asyncio.run(ask())


def test_clients_list_onetool_once_it_is_connected_and_no_more_when_it_is_not(
    onetool: OneTool, said: Callable[[], dict[str, str]]
) -> None:
    names = [program.client for program in PROGRAMS]
    ended = onetool("connect", *names, "--yes")
    assert ended.code == 0, ended.err
    for name, words in said().items():
        (line,) = [line for line in words.splitlines() if "onetool" in line.split(":")[0]]
        assert LISTED[name] in line, words
        assert "Disabled" not in line, words
    # Claude Code has written its own settings into the file meanwhile, and they stay.
    before = (onetool.home / ".claude.json").read_text()
    assert onetool("disconnect", *names, "--yes").code == 0
    after = (onetool.home / ".claude.json").read_text()
    assert "onetool" not in after
    assert "firstStartTime" in before
    assert after.partition('"firstStartTime"')[2] == before.partition('"firstStartTime"')[2]
    for words in said().values():
        assert "onetool" not in words

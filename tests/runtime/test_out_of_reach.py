"""What a program cannot reach by itself, and what the error names instead."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.workspace import Workspace
from run_app import error_of, running_app

pytestmark = pytest.mark.anyio

WEB = '''
    """Pages of the web."""


    def fetch(*, url: str) -> str:
        """Fetch a web page by its URL."""
        return url
'''
SHELL = '''
    """A shell."""


    def run(*, command: str) -> str:
        """Run a shell command."""
        return command
'''
NETWORK = {
    "requests": "import requests\nrequests.get('https://example.com').json()",
    "httpx": "import httpx\nhttpx.get('https://example.com')",
    "urllib": "from urllib.request import urlopen\nurlopen('https://example.com').read()",
    "socket": "import socket\nsocket.socket().connect(('example.com', 80))",
}
PROCESSES = {
    "subprocess": "import subprocess\nsubprocess.run(['ls'], capture_output=True)",
    "os.system": "import os\nos.system('ls')",
    "os.popen": "import os\nos.popen('ls').read()",
}


@pytest.fixture(scope="module", params=["exact", "portable"])
async def with_tools(request: Any, tmp_path_factory: Any) -> AsyncIterator[Workspace]:
    engine = ExactEngine() if request.param == "exact" else PortableEngine()
    async with running_app(tmp_path_factory.mktemp("tools"), {"web": WEB, "shell": SHELL}, engine=engine) as app:
        yield app


@pytest.fixture(scope="module", params=["exact", "portable"])
async def without_tools(request: Any, tmp_path_factory: Any) -> AsyncIterator[Workspace]:
    engine = ExactEngine() if request.param == "exact" else PortableEngine()
    config = {"packs": {"disabled": ["brave", "context7", "package", "web"]}}
    async with running_app(tmp_path_factory.mktemp("none"), config=config, engine=engine) as app:
        yield app


@pytest.mark.parametrize("name", NETWORK)
async def test_the_network_is_named_with_the_tool_for_it(with_tools: Workspace, name: str) -> None:
    said = error_of(await with_tools.run(NETWORK[name]))
    assert "no network" in said
    assert "web.fetch(url: str)" in said


@pytest.mark.parametrize("name", PROCESSES)
async def test_processes_are_named_with_the_tool_for_them(with_tools: Workspace, name: str) -> None:
    said = error_of(await with_tools.run(PROCESSES[name]))
    if with_tools.engine.name == "exact" or name == "subprocess":
        assert "a program starts no processes" in said
        assert "shell.run(command: str)" in said


@pytest.mark.parametrize("name", [*NETWORK])
async def test_where_no_tool_does_it_that_is_said(without_tools: Workspace, name: str) -> None:
    said = error_of(await without_tools.run(NETWORK[name]))
    assert "no network" in said
    assert "no tool of this workspace does it" in said


async def test_a_question_of_a_program_fails_aloud(without_tools: Workspace) -> None:
    assert "a program cannot ask" in error_of(await without_tools.run("name = input('name? ')\nname"))


async def test_a_missing_package_is_named_with_what_the_user_can_do(tmp_path_factory: Any) -> None:
    async with running_app(tmp_path_factory.mktemp("package"), engine=ExactEngine()) as app:
        said = error_of(await app.run("import some_package\nsome_package.go()"))
    assert "the package 'some_package' is not installed" in said
    assert "engines.exact.packages" in said


async def test_a_tool_that_fails_on_the_network_is_no_program_that_has_none(tmp_path_factory: Any) -> None:
    failing = WEB.replace("return url", "raise ConnectionError('Temporary failure in name resolution')")
    async with running_app(tmp_path_factory.mktemp("failing"), {"web": failing}, engine=ExactEngine()) as app:
        assert "no network" not in error_of(await app.run("web.fetch(url='http://example.com')"))

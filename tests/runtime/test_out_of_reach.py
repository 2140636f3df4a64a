"""What a program cannot reach by itself, and what the error names instead."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.out_of_reach import NEAREST
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
NEEDY = """
    def f() -> int:
        import six
        return six


    def net() -> str:
        import urllib.request
        return str(urllib.request.urlopen("http://127.0.0.1:9/"))
"""
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
    assert "web.fetch(url=\"https://...\") or web.fetch(url=...): ot.help(query='web.fetch') shows how" in said


@pytest.mark.parametrize("name", PROCESSES)
async def test_processes_are_named_with_the_tool_for_them(with_tools: Workspace, name: str) -> None:
    said = error_of(await with_tools.run(PROCESSES[name]))
    assert "programs cannot start processes" in said
    assert 'in this workspace use file.list(path=".") or file.tree(): ' in said
    said = error_of(await with_tools.run(PROCESSES[name].replace("ls", "xyz -a")))
    assert "shell.run(command=...)" in said


@pytest.mark.parametrize(
    ("program", "tools"),
    [
        ("import pandas\npandas.read_csv('a.csv')", 'data.read(table="sales.csv")'),
        ("from openpyxl import load_workbook", 'documents.to_markdown(path="report.pdf")'),
        ("import subprocess\nsubprocess.run(['git', 'log'])", "use git.log(limit=20) or "),
        ("import os\nos.system('git blame a.py')", 'use git.blame(path="...") or git.log(limit=20)'),
        ("import subprocess\ncommand = ['/usr/bin/git', 'log']\nsubprocess.check_output(command)", "git.log(limit=20)"),
        ("import os\nos.system('grep -r x .')", 'rg.search(pattern="..."'),
        ("import os\nos.popen('find . -name x')", "file.glob("),
        ("import subprocess\nsubprocess.run('curl https://example.com', shell=True)", "web.fetch(url="),
        ("import subprocess\nsubprocess.run(['sqlite3', 'shop.db', 'select 1'])", 'data.tables(database="shop.db")'),
        ("import sqlite3\nsqlite3.connect('missing.db').execute('select 1')", 'data.tables(database="shop.db")'),
        ("x = 1\n!ls -l", 'a program is Python; in this workspace use file.list(path=".")'),
        ("%cat notes.txt", 'file.read(path="...")'),
    ],
)
async def test_the_pack_that_does_the_same_is_named_by_its_tools(
    with_tools: Workspace, program: str, tools: str
) -> None:
    said = error_of(await with_tools.run(program))
    assert "in this workspace use " in said
    assert tools in said


async def test_a_pack_that_is_not_there_is_not_named(without_tools: Workspace) -> None:
    said = error_of(await without_tools.run("import subprocess\nsubprocess.run(['curl', 'https://example.com'])"))
    assert "programs cannot start processes: ot.help(query='words of the task') finds what there is" in said
    assert "web.fetch" not in said


@pytest.mark.parametrize("name", [*NETWORK])
async def test_where_no_tool_does_it_that_is_said(without_tools: Workspace, name: str) -> None:
    said = error_of(await without_tools.run(NETWORK[name]))
    assert "no network" in said
    assert "no tool of this workspace does it" in said


async def test_a_question_of_a_program_fails_aloud(without_tools: Workspace) -> None:
    said = error_of(await without_tools.run("name = input('name? ')\nname"))
    assert "programs cannot ask for input" in said
    assert "workspace" not in said


@pytest.mark.parametrize(
    "program",
    [
        "import subprocess\nsubprocess.run(['make', 'all'])",
        "import yaml\nyaml.safe_load('a: 1')",
        "import numpy",
        "import boto3",
        "!pip install pandas",
        "%timeit 1",
    ],
)
async def test_what_no_tool_is_known_to_do_is_not_said_to_be_impossible(with_tools: Workspace, program: str) -> None:
    assert "no tool" not in error_of(await with_tools.run(program.replace("make", "shell")))
    assert "package.info" not in error_of(await with_tools.run(program))


async def test_every_call_that_is_named_gives_what_its_tool_takes(tmp_path: Path) -> None:
    calls = [ast.parse(call, mode="eval").body for row in NEAREST.values() for call in row]
    async with running_app(tmp_path) as app:
        for call in calls:
            assert isinstance(call, ast.Call)
            parameters = app.picture.registry.tool(*ast.unparse(call.func).split(".")).parameters
            given = {keyword.arg for keyword in call.keywords}
            assert {known.name for known in parameters if known.required} <= given, ast.unparse(call)
            assert given <= {known.name for known in parameters}, ast.unparse(call)


@pytest.mark.parametrize(
    ("program", "instead"),
    [
        ("import yaml", "json and tomllib"),
        ("import numpy as np", "statistics"),
        ("from dateutil import parser", "fromiso"),
    ],
)
async def test_a_package_that_python_can_do_without_is_named_with_what_it_has(
    needy: Workspace, program: str, instead: str
) -> None:
    assert instead in error_of(await needy.run(program)).splitlines()[-1]


async def test_a_database_that_is_changed_is_opened_in_memory(needy: Workspace) -> None:
    said = error_of(await needy.run("import sqlite3\nsqlite3.connect('a.db').execute('create table t(x)')"))
    assert "deserialize" in said
    assert "data.query" not in said


async def test_a_missing_package_is_named_with_what_the_user_can_do(tmp_path_factory: Any) -> None:
    async with running_app(tmp_path_factory.mktemp("package"), engine=ExactEngine()) as app:
        said = error_of(await app.run("import some_package\nsome_package.go()"))
    assert "the package 'some_package' is not installed" in said
    assert "engines.exact.packages" in said


@pytest.fixture(scope="module")
async def needy(tmp_path_factory: Any) -> AsyncIterator[Workspace]:
    """A workspace with packs in workers whose own code lacks a package, and cannot reach the network."""
    place = tmp_path_factory.mktemp("needy")
    packs = {"needy": NEEDY, "early": "import requests\n\n\ndef f() -> int:\n    return 1\n"}
    for name, text in packs.items():
        folder = place / "user" / "tools" / name
        folder.mkdir(parents=True)
        (folder / f"{name}_tools.py").write_text(textwrap.dedent(text))
    lacking = "def f():\n    raise RuntimeError(\"Traceback ... No module named 'requests'\")\n"
    async with running_app(place, {"says": lacking}, engine=ExactEngine()) as app:
        yield app


@pytest.mark.parametrize(("pack", "package"), [("needy", "six"), ("early", "requests")])
async def test_a_pack_that_lacks_a_package_is_told_where_to_list_it(needy: Workspace, pack: str, package: str) -> None:
    for reply in (await needy.run(f"{pack}.f()"), await needy.call(pack, "f", {}, needy.own_caller)):
        said, cure = error_of(reply), "list it in its '# /// script' header (dependencies)"
        assert said.endswith(f"the pack '{pack}' needs '{package}': {cure}")
        assert "engines.exact.packages" not in said
        assert "no network" not in said


async def test_the_text_of_a_tool_that_names_a_missing_module_gets_no_hint_for_programs(needy: Workspace) -> None:
    said = error_of(await needy.run("says.f()"))
    assert said == "RuntimeError: Traceback ... No module named 'requests'\n  line 1: says.f()"


@pytest.mark.scenario("004-19")
async def test_a_service_that_is_away_is_not_the_programs_fault(needy: Workspace, tmp_path: Path) -> None:
    said = error_of(await needy.run("needy.net()"))
    assert said.endswith("service unavailable: needy.net; it is not the program's fault")
    assert "no network" not in said
    config = {"servers": {"away": {"url": "http://127.0.0.1:9/mcp"}}}
    async with running_app(tmp_path, config=config) as app:
        said = error_of(await app.run("away.x()"))
    assert said.endswith("service unavailable: away; it is not the program's fault")


async def test_a_program_that_goes_on_and_fails_by_itself_is_not_excused(needy: Workspace) -> None:
    program = "try:\n    needy.net()\nexcept Exception:\n    pass\n1 / 0"
    assert error_of(await needy.run(program)) == "ZeroDivisionError: division by zero\n  line 5: 1 / 0"


async def test_a_tool_that_fails_on_the_network_is_no_program_that_has_none(tmp_path_factory: Any) -> None:
    failing = WEB.replace("return url", "raise ConnectionError('Temporary failure in name resolution')")
    async with running_app(tmp_path_factory.mktemp("failing"), {"web": failing}, engine=ExactEngine()) as app:
        assert "no network" not in error_of(await app.run("web.fetch(url='http://example.com')"))

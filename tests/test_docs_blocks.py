"""Every block of the documentation is run or checked by a test, or says why not."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import sqlite3
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from docs_blocks import Block, blocks
from ot.cli.commands import build_app
from ot.config.sections import read_settings
from ot.runtime.engines.engine import Engine
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.workspace import Workspace
from run_app import running_app

TESTS = Path(__file__).parent
PLAYED = {
    "README.md": "walkthrough/test_walkthrough.py",
    "docs/reference/bench.md": "real_servers/test_bench_page.py",
    "docs/how-to/write-a-plugin.md": "release/test_plugins_installed.py",
    "docs/how-to/connect-a-client.md": "test_connect_page.py",
    "docs/how-to/look-things-up-on-the-web.md": "test_web_page.py",
    "docs/how-to/look-up-packages-and-the-web.md": "ot_tools/test_look_up_packages_page.py",
    "docs/how-to/openapi.md": "test_openapi_page.py",
    "docs/how-to/packs-on-other-hosts.md": "test_packs_on_other_hosts_page.py",
    "docs/how-to/query-data.md": "test_query_data_page.py",
    "docs/how-to/read-documents.md": "test_read_documents_page.py",
    "docs/how-to/remember-and-ask-a-model.md": "test_remember_and_ask_page.py",
    "docs/how-to/run-in-ci.md": "test_ci_page.py",
    "docs/how-to/schedule-runs.md": "test_schedule_page.py",
    "docs/how-to/search-code.md": "test_search_code_page.py",
    "docs/how-to/share-one-server.md": "test_shared_server_page.py",
    "docs/how-to/test-a-pack.md": "test_pack_pages.py",
    "docs/how-to/use-from-agent-frameworks.md": "test_agent_frameworks_page.py",
    "docs/how-to/work-on-code-history.md": "test_code_history_page.py",
    "docs/how-to/write-typed-tools.md": "test_pack_pages.py",
    "docs/reference/library.md": "test_library_page.py",
    "docs/reference/ot-pack.md": "test_ot_page.py",
    "docs/reference/ot-sdk.md": "ot_sdk/test_sdk_page.py",
    "docs/tutorial/bring-your-servers.md": "walkthrough/test_walkthrough.py",
    "docs/tutorial/first-pack.md": "walkthrough/test_walkthrough.py",
    "docs/tutorial/first-program.md": "walkthrough/test_walkthrough.py",
    "docs/tutorial/one-tool-four-ways.md": "test_one_tool_four_ways.py",
}
"""Pages whose commands and programs a test plays from top to bottom."""
STORED = '[{"name": str(n), "results": [{"name": "a"}], "users": {"odd.key": [n]}} for n in range(900)]'
PACKS = {"everything": 'def echo(*, message: str) -> str:\n    """Say it again."""\n    return message\n'}


def not_played(*languages: str) -> list[Block]:
    """Return the blocks that no test of a whole page plays and that do not say why."""
    return [block for block in blocks(*languages) if block.page not in PLAYED and not block.why_not]


def is_program(block: Block) -> bool:
    """Whether a block is a program for `run`, and not part of a pack's file."""
    return not block.title and not re.search(r"^def |^import ot_sdk|^ot_sdk\.", block.text, re.MULTILINE)


def test_a_page_that_is_played_is_named_by_its_test() -> None:
    for page, test in PLAYED.items():
        assert Path(page).stem in (TESTS / test).read_text(encoding="utf-8"), page


def test_every_command_with_its_output_is_played_or_says_why_not() -> None:
    assert [str(block) for block in not_played("console")] == []


@pytest.mark.parametrize("block", not_played("sh"), ids=str)
def test_a_command_that_is_shown_to_be_typed_is_one_that_exists(block: Block) -> None:
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] == "onetool":
            parsed(words[1:])


def parsed(words: list[str]) -> None:
    """Read a command line as onetool would, without carrying it out."""
    command: Any = typer.main.get_command(build_app(next(iter(words), "")))
    context = command.make_context("onetool", words[:1], resilient_parsing=True)
    while words and hasattr(command, "get_command"):
        name, *words = words
        found = command.get_command(context, name)
        assert found is not None, f"there is no command {name}"
        command = found
    with command.make_context("onetool", words, parent=context):
        pass


@pytest.mark.parametrize("block", not_played("yaml"), ids=str)
def test_a_configuration_that_is_shown_is_one_that_is_read(block: Block) -> None:
    found = yaml.safe_load(block.text)
    if "secrets" not in block.title and not str(block.page).endswith("configuration.md"):
        read_settings(found)


@pytest.mark.parametrize("block", not_played("json", "toml"), ids=str)
def test_json_and_toml_that_is_shown_is_well_formed(block: Block) -> None:
    if block.language == "toml":
        tomllib.loads(block.text)
    else:
        read = [json.loads(part) for part in re.split(r"\n(?=\{)", block.text.strip())]
        assert read


@pytest.mark.parametrize("block", [block for block in not_played("python") if not is_program(block)], ids=str)
def test_a_piece_of_a_pack_is_defined(block: Block, tmp_path: Path) -> None:
    if block.text.startswith("ot_sdk."):
        compile(block.text, str(block), "exec")
    else:
        (tmp_path / "piece.py").write_text(block.text, encoding="utf-8")
        runpy.run_path(str(tmp_path / "piece.py"))


@pytest.mark.anyio
@pytest.mark.parametrize("engine", ["exact", "portable"])
@pytest.mark.parametrize("block", [block for block in not_played("python") if is_program(block)], ids=str)
async def test_a_program_that_is_shown_runs(
    block: Block, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: Engine = ExactEngine() if engine == "exact" else PortableEngine()
    async with running_app(tmp_path, PACKS, {"policy": {"allow": ["*"]}}, engine=made) as workspace:
        write_files(tmp_path / "work", block.page)
        monkeypatch.chdir(tmp_path / "work")  # the guide's documents are those of the process's directory
        handle = await stored(workspace) if "handle=" in block.text else ""
        reply = await workspace.run(block.text.replace('handle="..."', f"{handle=}"))
        refused = engine == "portable" and "the portable engine cannot run this" in reply.texts[-1]
        assert refused or not reply.is_error, reply.texts


async def stored(workspace: Workspace) -> str:
    """Return the handle of a result that is too large to be shown."""
    reply = await workspace.run('{"results": ' + STORED + ', "users": {"odd.key": [1, 2]}}')
    return json.loads(reply.texts[-1])["handle"]


def write_files(directory: Path, page: str) -> None:
    """Write what the programs of the pages read."""
    (directory / "src").mkdir()
    (directory / "src" / "app.py").write_text("print('hello')\n", encoding="utf-8")
    (directory / "config.json").write_text('{"port": 8000}', encoding="utf-8")
    sqlite3.connect(directory / "shop.db").execute("create table products (name text)").connection.close()
    for block in blocks("markdown"):
        if block.page == page and block.title:
            (directory / block.title).parent.mkdir(parents=True)
            (directory / block.title).write_text(block.text, encoding="utf-8")

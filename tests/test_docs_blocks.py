"""The documentation: its blocks run, its pages are listed, and its links lead somewhere."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import sqlite3
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from checkout import ROOT
from docs_blocks import Block, blocks
from ot.cli.commands import build_app
from ot.config.sections import read_settings
from ot.runtime.engines.engine import Engine
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.workspace import Workspace
from run_app import running_app

TEAM = "plugins/onetool-team/tests"
PLAYED = {
    "README.md": "walkthrough/test_walkthrough.py",
    "docs/reference/bench.md": "real_servers/test_bench_page.py",
    "docs/how-to/write-a-plugin.md": "release/test_plugins_installed.py",
    "docs/how-to/connect-a-client.md": "test_how_to_pages.py",
    "docs/how-to/look-things-up-on-the-web.md": "test_web_page.py",
    "docs/how-to/look-up-packages-and-the-web.md": "ot_tools/test_look_up_packages_page.py",
    "docs/how-to/openapi.md": "test_how_to_pages.py",
    "docs/how-to/packs-on-other-hosts.md": f"{TEAM}/test_packs_on_other_hosts_page.py",
    "docs/how-to/query-data.md": "test_web_page.py",
    "docs/how-to/read-documents.md": "test_pages_of_packs.py",
    "docs/how-to/remember-and-ask-a-model.md": "test_pages_of_packs.py",
    "docs/how-to/record-and-replay.md": "test_how_to_pages.py",
    "docs/how-to/run-in-ci.md": "test_how_to_pages.py",
    "docs/how-to/save-a-program.md": "test_how_to_pages.py",
    "docs/how-to/schedule-runs.md": "test_schedule_page.py",
    "docs/how-to/search-code.md": "test_pages_of_packs.py",
    "docs/how-to/share-one-server.md": "test_how_to_pages.py",
    "docs/how-to/test-a-pack.md": "test_generated_pages.py",
    "docs/how-to/use-from-agent-frameworks.md": "test_how_to_pages.py",
    "docs/how-to/work-on-code-history.md": "test_pages_of_packs.py",
    "docs/how-to/write-typed-tools.md": "test_generated_pages.py",
    "docs/reference/library.md": "test_how_to_pages.py",
    "docs/reference/ot-pack.md": "test_how_to_pages.py",
    "docs/reference/ot-sdk.md": "ot_sdk/test_sdk_pack.py",
    "docs/tutorial/bring-your-servers.md": "walkthrough/test_walkthrough.py",
    "docs/tutorial/first-pack.md": "walkthrough/test_walkthrough.py",
    "docs/tutorial/first-program.md": "walkthrough/test_walkthrough.py",
    "docs/tutorial/one-tool-four-ways.md": "test_how_to_pages.py",
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
        file = ROOT / test if test.startswith(TEAM) else ROOT / "tests" / test
        assert Path(page).stem in file.read_text(encoding="utf-8"), page


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


DOCS = ROOT / "docs"
MOST_WORDS = 1500
"""Of a page outside the reference, with its tables and code blocks."""


def pages_in(nav: Any) -> Iterator[str]:
    """Yield every page that a navigation names, at any depth."""
    if isinstance(nav, str):
        yield nav
        return
    for entry in nav.values() if isinstance(nav, dict) else nav:
        yield from pages_in(entry)


def navigation() -> list[dict[str, Any]]:
    """Return the navigation of zensical.toml."""
    return tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]


def listed_pages() -> list[str]:
    """Return the pages that zensical.toml lists."""
    return list(pages_in(navigation()))


def records() -> list[Path]:
    """Return the decisions, by their number."""
    return sorted(DOCS.glob("decisions/[0-9]*.md"))


def title_of(page: Path) -> str:
    """Return the text of a page's first heading."""
    return page.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")


def test_the_navigation_lists_every_page_but_decisions_once_and_no_other() -> None:
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if page not in records()}
    listed = listed_pages()
    unlisted, missing = sorted(pages - set(listed)), sorted(set(listed) - pages)
    assert not unlisted, "zensical.toml must list these pages"
    assert not missing, "zensical.toml lists pages that do not exist, or decisions, which decisions/index.md lists"
    assert len(set(listed)) == len(listed)


def test_the_index_of_decisions_lists_each_by_its_own_title() -> None:
    index = (DOCS / "decisions" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^(\d+\. )\[(.+)\]\((.+)\)$", index, re.MULTILINE)
    assert [f"{number}{title} {file}" for number, title, file in listed] == [
        f"{title_of(record)} {record.name}" for record in records()
    ]


def test_the_index_of_how_tos_has_the_groups_of_the_navigation() -> None:
    (how_tos,) = (entry["How-to"] for entry in navigation() if "How-to" in entry)
    index, *groups = how_tos
    listed = re.findall(r"^(?:## (.+)|- \[.+?\]\((.+?)\).*)$", (DOCS / index).read_text(encoding="utf-8"), re.MULTILINE)
    named = [
        [title, *(page.removeprefix("how-to/") for page in pages_in(pages))]
        for each in groups
        for title, pages in each.items()
    ]
    assert [title or page for title, page in listed] == [name for group in named for name in group]


def test_the_home_page_shows_the_program_of_the_readme() -> None:
    programs = [
        re.findall(r"```python title=.*?```", page.read_text(encoding="utf-8"), re.DOTALL)
        for page in (DOCS / "index.md", ROOT / "README.md")
    ]
    assert programs[0] == programs[1]
    assert programs[0]


def test_a_page_outside_the_reference_is_short() -> None:
    pages = [page for page in DOCS.rglob("*.md") if not page.is_relative_to(DOCS / "reference")]
    words = {page.relative_to(DOCS).as_posix(): len(page.read_text(encoding="utf-8").split()) for page in pages}
    too_long = {page: count for page, count in words.items() if count > MOST_WORDS}
    assert pages
    assert not too_long, "shorten these pages, or move their tables to the reference"


def test_decisions_are_numbered_without_gaps_and_titled_by_their_number() -> None:
    numbers = range(1, len(records()) + 1)
    assert records()
    assert [f"{number:04d}" for number in numbers] == [record.name[:4] for record in records()]
    assert [f"{number}. " for number in numbers] == [re.sub(r"(?<=\. ).*", "", title_of(each)) for each in records()]


def test_a_decision_says_why_what_and_at_what_price() -> None:
    for record in records():
        headings = re.findall(r"^## (.+)$", record.read_text(encoding="utf-8"), re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequence"], record.name


def test_every_link_of_llms_txt_leads_to_a_page() -> None:
    text = (DOCS / "llms.txt").read_text(encoding="utf-8")
    links: list[str] = re.findall(r"\]\(([^)]+)\)", text)
    pages = {page.removesuffix("index.md").removesuffix(".md").rstrip("/") for page in listed_pages()}
    assert text.startswith("# OneTool\n\n> ")
    assert len(links) >= 20
    assert not [link for link in links if link.rstrip("/") not in pages or not link.endswith("/")]


@pytest.mark.parametrize("name", ["README.md", "AGENTS.md", "CONTRIBUTING.md", "skills/onetool/SKILL.md"])
def test_every_link_of_a_page_outside_the_site_leads_somewhere(name: str) -> None:
    page = ROOT / name
    links: list[str] = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    assert not [link for link in links if "://" not in link and not is_there(page, link)]


def is_there(page: Path, link: str) -> bool:
    """Return whether a file is there, and the heading in it that the link names."""
    path, _, anchor = link.partition("#")
    target = page.parent / path
    if not anchor:
        return target.exists()
    headings: list[str] = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    return anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}

"""The guide as a pack, for each kind of client, and what it says of a project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from guide_process import answer_of
from mcp_core import program_function
from mcp_core.consent import WARNING
from mcp_guide import project_facts
from mcp_guide.project_facts import facts_of
from mcp_guide.renderer import render_template
from mcp_guide.server import server_with
from mcp_guide.tools.tool_document import get
from ot.execution.caller import Answer, Caller, Question
from ot.registry.tool_definitions import ToolDefinitions
from run_app import error_of, running_app, value_of

pytestmark = pytest.mark.anyio

STARTS = """\
import anyio, sys
from pathlib import Path
from ot.workspace import Workspace
from ot.config.paths import Paths

async def start():
    app = Workspace.alone(Paths.of(Path(sys.argv[1]), Path(sys.argv[1]) / "user"))
    try:
        await app.start()
        reply = await app.run("1 + 1")
        loaded = [name for name in sys.modules if name.startswith(("mcp_guide", "mcp_core"))]
        found = await app.run("guide.documents()")
        print(reply.texts, loaded, found.texts, "mcp_guide.pack" in sys.modules, "fastmcp" in sys.modules)
    finally:
        await app.aclose()

anyio.run(start)
"""


async def test_a_tool_gives_a_program_and_a_classic_client_the_same_value(project: Path, tmp_path: Path) -> None:
    arguments = {"category": "style", "name": "python"}
    async with Client(server_with({"get": get})._mcp_server) as client:
        _, classic = await answer_of(client, "get", arguments)
    async with running_app(tmp_path) as app:
        program = json.loads(value_of(await app.run('guide.get(category="style", name="python")')))
    assert classic["value"] == program
    assert program["title"] == "Python style"


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"category": "../x", "name": "y"}, "category: String should match pattern"),
        ({"category": "style", "name": 3}, "name: Input should be a valid string"),
        ({"category": "style", "name": "a\0"}, "name: must not contain a NUL character"),
        ({"category": "style", "name": "y"}, "there is no document 'y' in style"),
    ],
    ids=range(4),
)
async def test_both_are_refused_with_the_same_words(
    project: Path, tmp_path: Path, given: dict[str, Any], error: str
) -> None:
    async with Client(server_with({"get": get})._mcp_server) as client:
        failed, classic = await answer_of(client, "get", given)
    async with running_app(tmp_path) as app:
        program = error_of(await app.run(f"guide.get(**{given!r})"))
    assert failed
    assert error in classic["error"]
    assert error in program


@pytest.mark.scenario("000-24")
@pytest.mark.parametrize(
    ("function", "given", "error"),
    [
        ("get", {"name": 3}, "guide.get() name: Input should be a valid string. Expected: guide.get(name: str, "),
        ("search", {"query": "x", "limit": 0}, "guide.search() limit: Input should be greater than or equal to 1. "),
    ],
)
async def test_wrong_arguments_of_a_typed_tool_are_told_with_its_name_and_signature_on_every_route(
    project: Path, tmp_path: Path, function: str, given: dict[str, Any], error: str
) -> None:
    async with running_app(tmp_path) as app:
        program = error_of(await app.run(f"guide.{function}(**{given!r})"))
        called = (await app.call("guide", function, given)).text
        caught = f"try:\n    guide.{function}(**{given!r})\nexcept TypeError as error:\n    found = str(error)\nfound"
        assert value_of(await app.run(caught)).startswith(error)
    assert program.startswith(f"TypeError: {error}")
    assert error in called
    assert f"Expected: guide.{function}(" in called


async def test_a_program_creates_and_removes_with_the_exact_word_alone(project: Path, tmp_path: Path) -> None:
    file = project / ".guide/how-to/x.md"
    call = 'guide.{}(category="how-to", name="x"{}, consent="{}")'
    async with running_app(tmp_path, config={"policy": {"allow": ["guide.*"]}}) as app:
        for word in ("create_document", "YES", ""):
            assert "consent: Input should be" in error_of(await app.run(call.format("create", ', text="x"', word)))
        assert not file.exists()
        value_of(await app.run(call.format("create", ', text="x"', "CREATE_DOCUMENT")))
        assert file.read_text() == "x"
        assert "consent" in error_of(await app.run(call.format("remove", "", "CREATE_DOCUMENT")))
        value_of(await app.run(call.format("remove", "", "REMOVE_DOCUMENT")))
    assert not file.exists()


async def test_a_program_s_own_word_does_not_replace_the_user_s(project: Path, tmp_path: Path) -> None:
    command = 'guide.create(category="how-to", name="x", text="x", consent="CREATE_DOCUMENT")'
    async with running_app(tmp_path) as app:
        assert "guide.create was not called: it asks first" in error_of(await app.run(command))
    assert not (project / ".guide/how-to/x.md").exists()


async def test_nobody_is_asked_about_a_call_whose_word_is_wrong(project: Path, tmp_path: Path) -> None:
    asked: list[Question] = []

    async def ask(question: Question) -> Answer:
        asked.append(question)
        return Answer("decline")

    given = {"category": "how-to", "name": "x", "text": "x"}
    async with running_app(tmp_path) as app:
        caller = Caller("somebody", ask=ask)
        wrong = await app.call("guide", "create", given | {"consent": "yes"}, caller)
        assert "consent: Input should be 'CREATE_DOCUMENT'" in wrong.text and asked == []
        await app.call("guide", "create", given | {"consent": "CREATE_DOCUMENT"}, caller)
    assert [question.tool for question in asked] == ["guide.create"]


@pytest.mark.scenario("003-25")
async def test_help_tells_of_the_guide_s_tools(project: Path, tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        text = value_of(await app.run('ot.help(query="guide.create")'))
        tools = {tool.name: tool for tool in app.picture.registry.pack("guide").tools.values()}
        defined = {tool.name: tool.description for tool in ToolDefinitions.choose(app.picture.registry, ["guide"]).all}
    warning = WARNING.format(name="consent", word="CREATE_DOCUMENT")
    assert warning in text
    assert warning in defined["guide_create"]  # what `serve --packs` and chat tell a model
    assert "consent: Literal['CREATE_DOCUMENT']" in text
    assert "description: When it is of use" in text
    assert sorted(name for name, tool in tools.items() if tool.destructive) == ["create", "remove"]
    assert sorted(name for name, tool in tools.items() if not tool.read_only) == ["create", "remove"]


def test_nothing_of_the_guide_is_imported_before_its_first_use(project: Path, home: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.startswith('(\'2\',) [] (\'{"documents":[{"category":"git"')
    assert done.stdout.endswith("True False\n")


def fill(project: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    return project


def test_the_facts_are_name_path_branch_and_languages_by_files(tmp_path: Path) -> None:
    project = fill(
        tmp_path / "shop",
        {
            "a.py": "", "b/c.py": "", "web/x.ts": "", "README": "", ".hidden/x.rs": "", "node_modules/x.js": "",
            ".git/HEAD": "ref: refs/heads/feature/x\n",
        },
    )  # fmt: skip
    assert facts_of(project) == {
        "name": "shop",
        "path": str(project),
        "branch": "feature/x",
        "languages": [{"name": "Python", "files": 2}, {"name": "TypeScript", "files": 1}],
    }


def test_the_branch_of_a_worktree_is_found_and_a_strange_head_is_none(tmp_path: Path) -> None:
    fill(
        tmp_path, {"main/.git/worktrees/w/HEAD": "ref: refs/heads/w\n", "w/.git": "gitdir: ../main/.git/worktrees/w\n"}
    )
    assert facts_of(tmp_path / "w")["branch"] == "w"
    fill(tmp_path, {"secret/HEAD": "root:x:0\n", "evil/.git": f"gitdir: {tmp_path}/secret\n", "no/.git": "\0"})
    assert facts_of(tmp_path / "evil")["branch"] == facts_of(tmp_path / "no")["branch"] == ""
    (tmp_path / "pipe/.git").mkdir(parents=True)
    os.mkfifo(tmp_path / "pipe/.git/HEAD")
    assert facts_of(tmp_path / "pipe")["branch"] == ""


def test_counting_ends_in_a_very_large_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, {f"d{number}/{name}.py": "" for number in range(5) for name in "ab"})
    monkeypatch.setattr(project_facts, "MAX_FILES", 6)
    assert facts_of(tmp_path)["languages"] == [{"name": "Python", "files": 2}]


def test_a_document_is_read_with_facts_and_values_filled_in(project: Path) -> None:
    (project / ".guide/style/python.md").write_text("{{ project.name }} {{ values.who }}{% if 0 %}x{% endif %}\n")
    assert program_function(get)(name="python", values={"who": "Ada"})["text"] == "shop Ada\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{{ values.who }}", "has no attribute 'who'"),
        ("run: ${{ secrets.KEY }}", "UndefinedError: 'secrets' is undefined"),
    ],
)
def test_a_template_that_cannot_be_filled_in_is_read_as_it_is_and_says_why(project: Path, text: str, why: str) -> None:
    (project / ".guide/style/python.md").write_text(text)
    found = program_function(get)(name="python")
    assert found["text"] == text
    assert why in found["unrendered"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{ ().__class__.__bases__ }}", "SecurityError"),
        ("{{ project.x }}", "UndefinedError"),
        ("{% for %}", "TemplateSyntaxError"),
        ("{% include '/etc/passwd' %}", "TypeError"),
        ("{{ 'x' * 2000000 }}", "more than 1 MiB"),
        ("{{ 'x' * 10000000000 }}", "too much memory"),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "too much time or memory"),
    ],
    ids=range(7),
)
def test_a_template_reaches_nothing_and_takes_little(text: str, words: str) -> None:
    values: dict[str, Any] = {"project": {}, "values": {}}
    rendered, error = render_template(text, values)
    assert rendered == ""
    assert words in error

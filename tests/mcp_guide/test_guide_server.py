"""The guide server as clients see it: a real process, the official client, both eras."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client as FastClient
from fastmcp.client.messages import MessageHandler
from mcp import Client, MCPError

from guide_process import COMMAND, ERAS, answer_of, guide_client
from mcp_core import ToolArguments
from mcp_core.tool_decorator import PREFIX
from mcp_guide import main, tools
from mcp_guide.pack import TOOLS
from mcp_guide.server import server_with
from mcp_wire import WireServer

pytestmark = pytest.mark.anyio

NAMES = ["create", "documents", "get", "remove", "search"]


@pytest.fixture(params=ERAS)
async def client(
    request: pytest.FixtureRequest, project: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Client]:
    """The official client of a server in memory."""
    monkeypatch.setenv(PREFIX, "guide")
    server = server_with({name: inspect.unwrap(tool) for name, tool in vars(TOOLS).items()})
    async with Client(server._mcp_server, mode=ERAS[request.param]) as client:  # pyright: ignore[reportArgumentType] - two of its values
        yield client


def in_python(code: str, **variables: str) -> str:
    """Return what *code* prints in an interpreter that has imported nothing."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


@pytest.mark.scenario("003-22", "003-14", "003-25")
async def test_every_declared_tool_is_offered_with_its_whole_description(client: Client) -> None:
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert sorted(listed) == [f"guide_{name}" for name in NAMES]
    search, create = listed["guide_search"], listed["guide_create"]
    assert "- `limit` (`int`, optional, default `10`)" in (search.description or "")
    assert "REQUIRES EXPLICIT USER INSTRUCTION" in (create.description or "")
    assert "REQUIRES" not in (search.description or "")
    assert search.input_schema["properties"]["query"]["description"] == "Words of the task"
    assert (search.input_schema["required"], search.input_schema["additionalProperties"]) == (["query"], False)
    assert create.annotations
    assert search.annotations
    assert (create.annotations.destructive_hint, create.annotations.read_only_hint) == (True, False)
    assert (search.annotations.destructive_hint, search.annotations.read_only_hint) == (False, True)


async def test_documents_are_listed_read_with_facts_and_searched(client: Client) -> None:
    failed, found = await answer_of(client, "guide_documents", None)
    assert (failed, [info["category"] for info in found["value"]["documents"]]) == (False, ["git", "style"])
    _, found = await answer_of(client, "guide_documents", {"category": "git"})
    assert [document["title"] for document in found["value"]["documents"]] == ["How to commit"]
    _, found = await answer_of(client, "guide_get", {"name": "python"})
    assert found["value"]["text"].startswith("# Python\nLines have at most 4 letters.")
    _, found = await answer_of(client, "guide_search", {"query": "how do I commit?", "limit": 1})
    assert [hit["name"] for hit in found["value"]] == ["commits"]


async def test_the_guide_s_definitions_of_tools_are_short(client: Client) -> None:
    tools = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools
    ]
    assert len(json.dumps(tools)) < 4800


async def test_titles_are_announced_and_resources_listed(client: Client) -> None:
    assert "\n- git/commits: How to commit\n- style/python: Python style" in (client.instructions or "")
    listed = (await client.list_resources()).resources
    assert [(str(found.uri), found.title) for found in listed] == [
        ("guide://git/commits", "How to commit"),
        ("guide://style/python", "Python style"),
    ]
    assert listed[1].description == "How Python is written here."


async def test_a_client_is_told_when_documents_have_come_or_gone(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    class Told(MessageHandler):
        async def on_resource_list_changed(self, message: Any) -> None:
            told.append(message.method)

    monkeypatch.setenv(PREFIX, "")
    server = server_with({"get": inspect.unwrap(TOOLS.get), "create": inspect.unwrap(TOOLS.create)})
    async with FastClient(server, message_handler=Told()) as client:
        document = {"category": "git", "name": "branches", "text": "x", "consent": "CREATE_DOCUMENT"}
        await client.call_tool("create", document)
        assert len(await client.list_resources()) == 3
        await client.call_tool("get", {"name": "branches"})
        assert told == []
        (project / ".guide/git/branches.md").unlink()
        await client.call_tool("get", {"name": "python"})
        assert len(await client.list_resources()) == 2
        assert told == ["notifications/resources/list_changed"]


@pytest.mark.scenario("003-24")
async def test_a_document_is_created_and_removed_only_with_the_exact_word(client: Client, project: Path) -> None:
    document = {"category": "how-to", "name": "release"}
    for word in ("create_document", "yes", None):
        failed, found = await answer_of(client, "guide_create", document | {"text": "Tag it.", "consent": word})
        assert (failed, found["error_type"]) == (True, "invalid_arguments")
        assert found["error"] == "consent: Input should be 'CREATE_DOCUMENT'"
    assert not (project / ".guide/how-to").exists()
    failed, found = await answer_of(
        client, "guide_create", document | {"text": "Tag it.", "consent": "CREATE_DOCUMENT"}
    )
    assert (failed, found["value"]) == (False, "created")
    assert (project / ".guide/how-to/release.md").read_text() == "Tag it."
    failed, found = await answer_of(client, "guide_create", document | {"text": "x", "consent": "CREATE_DOCUMENT"})
    assert (failed, found["error_type"]) == (True, "exists")
    assert "Ask the user" in found["instruction"]
    failed, found = await answer_of(client, "guide_remove", document | {"consent": "CREATE_DOCUMENT"})
    assert (failed, (project / ".guide/how-to/release.md").exists()) == (True, True)
    failed, found = await answer_of(client, "guide_remove", document | {"consent": "REMOVE_DOCUMENT"})
    assert (failed, (project / ".guide/how-to").exists()) == (False, False)


async def test_a_document_is_a_resource(client: Client) -> None:
    templates = (await client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == ["guide://{category}/{name}"]
    (content,) = (await client.read_resource("guide://git/commits")).contents
    assert getattr(content, "text", "") == "# How to commit\nSmall, with a reason."
    for uri in ("guide://git/nothing", "guide://git/..%2f..%2fetc", "guide://%2e%2e/passwd"):
        with pytest.raises(MCPError):
            await client.read_resource(uri)
    assert (await answer_of(client, "guide_documents", {}))[0] is False


async def test_unknown_tools_and_failures_leave_the_server_alive(client: Client, project: Path) -> None:
    for name in ("guide_nothing", "", "get; rm"):
        try:
            assert (await client.call_tool(name, {})).is_error
        except MCPError as error:
            assert "nknown" in str(error) or "not found" in str(error)
    (project / ".guide/style/python.md").write_bytes(b"\xff")
    failed, found = await answer_of(client, "guide_get", {"category": "style", "name": "python"})
    assert (failed, found["error_type"]) == (True, "not_text")


@pytest.mark.parametrize("era", ERAS)
async def test_the_command_serves_the_guide_over_its_pipes(project: Path, home: Path, era: str) -> None:
    async with guide_client(project, home, era) as client:
        assert sorted(tool.name for tool in (await client.list_tools()).tools) == [f"guide_{name}" for name in NAMES]
        document = {"category": "how-to", "name": "release"}
        failed, found = await answer_of(
            client, "guide_create", document | {"text": "Tag.", "consent": "CREATE_DOCUMENT"}
        )
        assert (failed, found["value"]) == (False, "created")
        assert (project / ".guide/how-to/release.md").read_text() == "Tag."
        (content,) = (await client.read_resource("guide://how-to/release")).contents
        assert getattr(content, "text", "") == "Tag."
        failed, found = await answer_of(client, "guide_get", document | {"extra": 1})
        assert (failed, found["error"]) == (True, "extra: Extra inputs are not permitted")


@pytest.mark.scenario("003-23", "003-20")
async def test_the_example_and_another_prefix_are_there_when_asked_for(project: Path, home: Path) -> None:
    async with guide_client(project, home, "modern", **{PREFIX: "house", main.EXAMPLES: "true"}) as client:
        names = sorted(tool.name for tool in (await client.list_tools()).tools)
        assert names == sorted(f"house_{name}" for name in [*NAMES, "greet"])
        _, found = await answer_of(client, "house_greet", {"name": "Ada"})
        assert found["value"] == "Hello, Ada!"


@pytest.mark.scenario("003-23")
@pytest.mark.parametrize("asked", [True, False])
def test_the_example_s_module_is_not_even_imported_unless_asked_for(asked: bool) -> None:
    code = (
        "import sys; from mcp_guide.tools import import_tools;"
        f"import_tools(include_examples={asked}); print('mcp_guide.tools.tool_example' in sys.modules)"
    )
    assert in_python(code) == str(asked)


@pytest.mark.scenario("003-21")
def test_importing_tool_modules_declares_their_tools() -> None:
    code = (
        "import asyncio; from mcp_core import ToolArguments as T;"
        "before = asyncio.run(T.get_declared_tools());"
        "from mcp_guide.tools import import_tools; import_tools(include_examples=False);"
        "print(before, *sorted(asyncio.run(T.get_declared_tools())), asyncio.run(T.get_declared_tools()))"
    )
    assert in_python(code) == " ".join(["{}", *NAMES, "{}"])


@pytest.mark.scenario("003-10")
def test_a_second_server_of_a_process_registers_nothing_twice() -> None:
    code = (
        "import asyncio; from mcp_guide.server import build_server\n"
        "async def count():\n"
        "    servers = [await build_server() for _ in range(2)]\n"
        "    print([len(await server.list_tools()) for server in servers])\n"
        "asyncio.run(count())"
    )
    assert in_python(code, HOME="/nowhere") == f"[{len(NAMES)}, 0]"


@pytest.mark.scenario("003-19")
def test_the_prefix_is_set_before_a_server_exists() -> None:
    code = (
        "import os, sys; from mcp_guide import main;"
        "main._configure_environment();"
        "print(os.environ['MCP_TOOL_PREFIX'], 'mcp_guide.server' in sys.modules)"
    )
    assert in_python(code) == "guide False"


@pytest.mark.scenario("003-20")
@pytest.mark.parametrize("prefix", ["house", ""])
async def test_a_prefix_that_is_set_stays(project: Path, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX, prefix)
    main._configure_environment()
    assert os.environ[PREFIX] == prefix
    server = server_with({"get": inspect.unwrap(TOOLS.get)})
    assert [tool.name for tool in await server.list_tools()] == [f"{prefix}_get" if prefix else "get"]


@pytest.mark.scenario("003-27")
def test_tool_modules_are_called_tool_something() -> None:
    (folder,) = tools.__path__
    modules = [file.stem for file in Path(folder).glob("*.py") if file.stem != "__init__"]
    assert modules
    assert not [name for name in modules if not name.startswith("tool_")]
    declaring = [file for file in Path(folder).parent.rglob("*.py") if "ToolArguments.declare" in file.read_text()]
    assert [file.name for file in declaring if file.parent != Path(folder)] == []


@pytest.mark.scenario("003-26")
def test_documentation_names_tools_without_prefix() -> None:
    descriptions = [ToolArguments.build_tool_description(tool) for tool in vars(TOOLS).values()]
    pages = Path(__file__).parents[2].glob("docs/**/*guide*.md")
    sources = Path(main.__file__).parent.rglob("*.py")
    texts = [*descriptions, *(file.read_text() for file in [*sources, *pages])]
    assert len(texts) > len(NAMES) + 5
    assert not [text for text in texts if re.search(rf"\bguide_({'|'.join(NAMES)})\b", text)]


def test_standard_output_holds_the_protocol_alone_and_calls_are_traced(project: Path, home: Path) -> None:
    environment = {"HOME": str(home), "MCP_GUIDE_LOG": "TRACE"}
    with WireServer.start([COMMAND], cwd=project, env=environment) as server:
        reply = server.request("tools/call", {"name": "guide_documents", "arguments": {}})
        assert not reply.is_error
        for arguments in ([], "x", 1):
            assert server.request("tools/call", {"name": "guide_get", "arguments": arguments}).is_error
        assert server.stdout_junk == []
        log = server.stderr_text()
    assert "TRACE mcp_core.tool_decorator: Tool called: guide_documents" in log
    assert "DEBUG mcp_core.tool_decorator: Tool guide_documents completed successfully" in log

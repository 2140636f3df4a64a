"""Other words of the bundled packs' tools: aliases that programs may call, and words that only lead to a tool."""

from __future__ import annotations

from collections import Counter

import pytest

from ot.build import BUNDLED, IN_WORKERS
from ot.errors import UnknownTool
from ot.introspect import ot_pack
from ot.registry.bundled_extensions import bundled_extensions
from ot.registry.other_words import (
    PARAMETERS,
    TOOLS,
    letters_of,
    other_parameter,
    tool_of_alias,
    tools_for_word,
    words_of_tasks,
)
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack, ToolRegistry


def tool(pack: str, name: str, *parameters: str) -> Tool:
    return Tool(pack, name, tuple(Parameter(parameter) for parameter in parameters))


@pytest.mark.parametrize(
    ("alias", "meant"),
    [
        ("file.read_file", "read"),
        ("file.readFile", "read"),
        ("data.sql", "query"),
        ("memory.save", "write"),
        ("rg.grep", "search"),
        ("web.get", "fetch"),
        ("code.outline", "symbols"),
        ("documents.read", "to_markdown"),
        ("package.latest_version", "latest"),
    ],
)
def test_an_alias_stands_for_a_tool_of_its_pack(alias: str, meant: str) -> None:
    pack, _, name = alias.partition(".")
    assert tool_of_alias(pack, name) == meant


def test_words_that_mean_something_else_only_lead_to_tools() -> None:
    assert tool_of_alias("file", "find") == tool_of_alias("file", "rglob") == ""
    assert tools_for_word("file", "find")[:2] == ["file.glob", "file.search"]
    assert tools_for_word("data", "pandas") == ["data.query"]
    assert tools_for_word("file", "no such word") == []


def test_every_word_is_of_a_tool_and_a_parameter_that_bundled_packs_have() -> None:
    packs = [*BUNDLED.packs(), *(extension.pack() for extension in bundled_extensions(IN_WORKERS))]
    tools = [found for pack in packs for found in pack.tools.values()]
    names = {found.full_name for found in tools} | {f"ot.{name}" for name in vars(ot_pack.OtPack)}
    assert set(TOOLS) <= names
    assert {name for name in words_of_tasks() if not name.startswith("proj.")} <= names
    taken = {parameter.name for found in tools for parameter in found.parameters} | {"handle"}
    assert set(PARAMETERS) <= taken


def test_no_alias_has_two_meanings_in_a_pack() -> None:
    names = Counter(
        (name.partition(".")[0], letters_of(word))
        for name, words in TOOLS.items()
        for word in (*words.aliases.split(), name.partition(".")[2])
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_the_registry_knows_aliases_of_bundled_packs_alone() -> None:
    read = [tool("file", "read")]
    assert ToolRegistry([Pack("file", "local", lambda: read, bundled=True)]).tool("file", "cat") is read[0]
    with pytest.raises(UnknownTool):
        ToolRegistry([Pack("file", "proxy", lambda: read)]).tool("file", "cat")
    with pytest.raises(UnknownTool):
        ToolRegistry([Pack("file", "local", lambda: [], bundled=True)]).tool("file", "cat")


def test_an_alias_is_not_listed_and_hides_no_tool() -> None:
    both = [tool("file", "read"), tool("file", "cat")]
    registry = ToolRegistry([Pack("file", "local", lambda: both, bundled=True)])
    assert registry.tool("file", "cat").name == "cat"
    assert [found.name for found in ToolRegistry([registry.pack("file")]).tools()] == ["cat", "read"]


def test_a_parameter_of_a_bundled_pack_has_other_words() -> None:
    assert other_parameter(tool("data", "tables", "database"), "path") == "database"
    assert other_parameter(tool("data", "read", "table", "sheet", "database"), "path") == "table"
    assert other_parameter(tool("memory", "write", "text", "tags"), "content") == "text"
    assert other_parameter(tool("git", "show", "revision", "repo"), "ref") == "revision"
    assert other_parameter(tool("file", "write", "path", "content"), "text") == "content"
    assert other_parameter(tool("file", "read", "path"), "filePath") == "path"
    edit = tool("file", "edit", "path", "old", "new")
    assert [other_parameter(edit, word) for word in ("old_string", "newString", "colour")] == ["old", "new", None]


def test_a_parameter_keeps_its_own_name_and_other_packs_have_no_other_words() -> None:
    assert other_parameter(tool("git", "blame", "path", "repo"), "path") is None
    assert other_parameter(tool("git", "log", "repo", "paths"), "path") == "paths"
    assert other_parameter(tool("shop", "orders", "path"), "file") is None

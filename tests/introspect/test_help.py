"""Help: an overview, a thing in full, or what fits some words."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ot.config.models import Config
from ot.errors import ToolUnavailable
from ot.introspect.help import MAX_HITS, OVERVIEW, HelpPages, Query, compact_signature, show_help
from ot.introspect.search import Catalogue, Hits, Kind
from ot.output.formats import serialize_result
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack, ToolRegistry
from run_app import BRAVE, error_of, run_in, running_app, value_of

DOC = """Search the web for pages.

Args:
    query: Words.

Returns:
    The hits.

Example:
    web.search(query="x")
"""
WEB = [
    Tool("web", "search", (Parameter("query", "keyword", "str"),), "list", DOC),
    Tool("web", "fetch", doc="Fetch one page of the web."),
]
FILE = [Tool("file", "search", doc="Find lines."), Tool("file", "read", doc="Read a file.")]
CONFIG = Config.model_validate(
    {
        "aliases": {"ws": "web.search", "gone": "nothing.there"},
        "snippets": {"fetch_all": {"body": "1", "description": "Fetch many pages."}},
        "prompts": {"packs": {"web": "Ask the web last."}},
    }
)


def unreadable() -> list[Tool]:
    raise ToolUnavailable("broken", "broken.py:1: invalid syntax")


def registry(*more: Pack) -> ToolRegistry:
    return ToolRegistry([Pack("web", "local", lambda: WEB, bundled=True), Pack("file", "local", lambda: FILE), *more])


def ask(query: Query, info: str = "min", *more: Pack, config: Config = CONFIG) -> Any:
    known = registry(*more)

    def find(words: Query, most: Mapping[Kind, int]) -> Hits:
        return Catalogue(known, config).find(words, most=most)

    return show_help(known, config, find, query, info)


@pytest.mark.scenario("001-43")
@pytest.mark.parametrize("query", ["", "  ", "\n"])
def test_without_a_query_there_is_an_overview(query: str) -> None:
    assert ask(query) == OVERVIEW
    for name in ("tools", "packs", "aliases", "snippets", "help"):
        assert f"ot.{name}(" in OVERVIEW
    assert all(f'"{level}"' in OVERVIEW for level in ("list", "min", "full"))
    assert "Compose:" in OVERVIEW
    assert "Tips:" in OVERVIEW


@pytest.mark.scenario("001-44")
def test_a_tool_s_name_gives_its_page() -> None:
    expected = """\
# web.search
Search the web for pages.

web.search(query: str) -> list

Args:
  query: Words.

Returns: The hits.

Example:
  web.search(query="x")
"""
    assert expected == ask("web.search") == ask(" web.search() ") == ask('web.search(query="x")')


def test_a_tool_that_says_little_still_has_an_example() -> None:
    many = Parameter("items", "keyword", "list[str]")
    bare = Tool("x", "y", (Parameter("a", "keyword", "str"), many, Parameter("n", "keyword", "int", "3")), "dict")
    page = ask("x.y", "min", Pack("x", "proxy", lambda: [bare]))
    assert "Example:\n  x.y(a='...', items=[])" in page
    assert "x.y(a: str, items: list[str], n: int = 3) -> dict\n" in page
    assert "Args:" not in page
    assert page.count("dict") == 1


@pytest.mark.scenario("001-52")
def test_in_full_a_tool_s_page_says_all_that_is_known() -> None:
    doc = "Drop it.\n\nIt cannot be undone.\n\nArgs:\n    what: The thing.\n"
    tool = Tool(
        "x", "drop", (Parameter("what"),), "str", doc, source="proxy:x", timeout=5, destructive=True, read_only=False
    )
    page = ask("x.drop", "full", Pack("x", "proxy", lambda: [tool]))
    for text in ("It cannot be undone.", "what: The thing.", "-> str", "Source: proxy:x", "destructive: yes"):
        assert text in page
    assert "read-only: no" in page
    assert "time limit: 5 s" in page


@pytest.mark.scenario("001-45")
def test_a_pack_s_name_gives_how_it_is_used_and_its_tools() -> None:
    expected = """\
# web
web.search(query="x")

Ask the web last.

Tools:
- web.fetch(): Fetch one page of the web.
- web.search(query: str) -> list: Search the web for pages.
"""
    assert expected == ask("web") == ask("web", "full")


def test_a_pack_that_cannot_be_used_says_why() -> None:
    broken = Pack("broken", "local", unreadable)
    assert ask("broken", "min", broken) == "# broken\nThis pack cannot be used: broken.py:1: invalid syntax"
    assert "broken" in ask("broken.x", "min", broken)["packs"][0]["name"]


@pytest.mark.scenario("001-47")
def test_an_alias_gives_its_target_and_how_to_use_it() -> None:
    page = ask("ws")
    assert page.startswith("# ws\nAlias of web.search\n")
    assert "Use: ws(query='...') means web.search(query='...')" in page
    assert ask("gone").endswith("There is no tool nothing.there: the alias cannot be used.")


@pytest.mark.scenario("001-53")
@pytest.mark.parametrize(
    ("pack", "slug"),
    [
        ("brave", "brave-search"),
        ("code", "code-search"),
        ("db", "database"),
        ("ground", "grounding-search"),
        ("llm", "transform"),
        ("web", "web-fetch"),
        ("excel", "excel"),
    ],
)
def test_pages_say_where_the_documentation_is_if_the_setting_names_a_site(pack: str, slug: str) -> None:
    made = Pack(pack, "local", lambda: [Tool(pack, "f")], bundled=True)
    config = Config(docs_url="https://onetool.beycom.online/reference/tools/{doc_slug}/")
    for query in (pack, f"{pack}.f"):
        page = ask(query, "min", made, config=config)
        assert page.endswith(f"Docs: https://onetool.beycom.online/reference/tools/{slug}/")
        assert "Docs:" not in ask(query, "min", made)


@pytest.mark.parametrize("source", ["local", "proxy"])
def test_the_pages_of_others_packs_and_servers_name_no_address_of_ours(source: str) -> None:
    theirs = Pack("web", source, lambda: WEB)
    for query in ("web", "web.search"):
        assert "https://" not in ask(query, "full", theirs, config=Config(docs_url="https://docs.test/{doc_slug}"))


# ---------------------------------------------------------------- searching


@pytest.mark.scenario("001-48")
def test_words_give_hits_grouped_by_kind_with_signatures() -> None:
    found = ask("web fetch")
    assert found["tools"][0] == {
        "name": "web.fetch",
        "signature": "()",
        "description": "Fetch one page of the web.",
    }
    assert found["packs"] == ["web"]
    assert found["snippets"] == [{"name": "$fetch_all", "description": "Fetch many pages."}]
    assert ask("web search")["aliases"] == ["ws -> web.search"]
    assert ask("web search")["tools"][0]["signature"] == "(query: str) -> list"


@pytest.mark.scenario("001-50")
def test_names_alone_when_that_was_asked() -> None:
    expected = {"tools": ["web.search", "web.fetch"], "packs": ["web"], "snippets": ["$fetch_all"], "aliases": ["ws"]}
    assert ask("web", "list") == expected


def test_everything_about_the_hits_when_that_was_asked() -> None:
    assert ask("find lines", "full")["tools"][0]["signature"] == "file.search()"
    assert ask("search", "full")["tools"][0]["example"] == 'web.search(query="x")'


@pytest.mark.scenario("001-49")
@pytest.mark.parametrize("query", ["web.serch", "serach the wbe", "Websearch"])
def test_a_misspelt_query_finds_the_tool(query: str) -> None:
    assert ask(query, "list")["tools"][0] == "web.search"


@pytest.mark.scenario("001-49")
def test_the_best_match_comes_first() -> None:
    docs = {"clean": "Remove a scaffold.", "scaffold": "Write a scaffold.", "undo": "Scaffold in reverse, as before."}
    tools = [Tool("make", name, doc=doc) for name, doc in docs.items()]
    found = ask("scaffoldl", "list", Pack("make", "local", lambda: tools))
    assert found == {"tools": ["make.scaffold", "make.clean", "make.undo"]}


@pytest.mark.scenario("001-51")
def test_a_pack_is_answered_with_the_names_of_its_tools_and_a_brief_description_each() -> None:
    lines = ask("web", "min").splitlines()
    for tool in WEB:
        assert any(line.startswith(f"- {tool.full_name}") and line.endswith(tool.description) for line in lines)
    assert ask("web") == ask("web", "min")


def test_several_queries_are_answered_together() -> None:
    found = ask(["fetch a page", "find lines", "zebra"])
    assert [hit["name"] for hit in found["tools"]][:2] == ["web.fetch", "file.search"]
    assert found["unmatched"] == ["zebra"]
    assert ask([]) == OVERVIEW


def test_a_pack_without_tools_is_shown_when_it_is_named_with_what_to_do() -> None:
    waiting = Pack("slack", "proxy", unreadable, pending=True)
    (shown,) = [hit for hit in ask("search slack messages", "min", waiting)["packs"] if hit["name"] == "slack"]
    assert shown["do"] == 'ot.help(query="slack") asks it for its tools'
    (shown,) = ask("slack zzz", "min", Pack("slack", "proxy", unreadable))["packs"]
    assert shown["broken"] == "broken.py:1: invalid syntax"
    assert "ot.health()" in shown["do"]
    (shown,) = ask("zzz slack", "min", Pack("slack", "local", unreadable))["packs"]
    assert "repair its file" in shown["do"]


def test_words_that_fit_nothing_are_named() -> None:
    assert ask("search zebra")["unmatched"] == ["zebra"]
    assert "unmatched" not in ask("search web")


@pytest.mark.scenario("001-54")
def test_a_search_that_finds_nothing_says_where_to_look() -> None:
    text = ask("zzzzqqqq" * 100)
    assert text.startswith("No matches for 'zzzzqqqq")
    assert text.endswith("Nearest packs: file, web. Browse with ot.tools() or ot.packs().")
    assert len(text) < 200


def test_a_search_that_finds_nothing_names_the_three_nearest_packs() -> None:
    more = [Pack(name, "proxy", lambda: WEB) for name in ("slack", "notion", "weather")]
    assert "Nearest packs: weather, " in ask("xxeatherxx", "min", *more, config=Config())


def test_no_more_than_the_best_hits_are_shown() -> None:
    many = Pack("many", "local", lambda: [Tool("many", f"search_{n}") for n in range(100)])
    assert len(ask("search", "list", many)["tools"]) == MAX_HITS["tools"]


def test_a_hit_is_short_however_much_the_tool_says() -> None:
    parameters = tuple(Parameter(f"option_{n}", "keyword", "str", "''") for n in range(100))
    wordy = Tool("x", "wordy", (*parameters, Parameter("must", "keyword", "int")), doc="Word " * 1000)
    (hit,) = ask("wordy", "min", Pack("x", "proxy", lambda: [wordy]))["tools"]
    assert hit["signature"].startswith('(must: int, option_0: str = "", ')
    assert hit["signature"].endswith(", ...)")
    assert len(serialize_result(hit)) < 500


def test_the_longest_parameters_are_left_out_first_and_the_limit_last() -> None:
    texts = [
        Parameter(f"p{n}", "keyword", f"Literal[{', '.join(repr('x' * n) for _ in range(n))}]", "1") for n in (2, 7, 3)
    ]
    tool = Tool("x", "wordy", (*texts, Parameter("limit", "keyword", "int", "1"), Parameter("q", "keyword", "str")))
    assert (
        compact_signature(tool)
        == f"(q: str, p2: {texts[0].annotation} = 1, p3: {texts[2].annotation} = 1, limit: int = 1, ...)"
    )
    long = Tool("x", "long", (Parameter("q", "keyword", "s" * 200), Parameter("limit", "keyword", "int", "1")))
    assert compact_signature(long) == f"(q: {'s' * 200}, ...)"


@pytest.mark.anyio
async def test_the_page_of_every_bundled_pack_begins_with_a_call_that_changes_nothing(tmp_path: Any) -> None:
    async with running_app(tmp_path) as app:
        for name, pack in app.picture.registry.packs.items():
            first = HelpPages({}, "").pack(pack).splitlines()[1]
            if any("Example:" in tool.doc for tool in pack.tools.values()):
                called = first.partition("(")[0].removeprefix(f"{name}.")
                assert pack.tools[called].read_only is not False, first


def test_an_unknown_level_is_refused_even_where_it_is_not_used() -> None:
    with pytest.raises(ValueError, match="info must be one of"):
        ask("", "everything")


# ---------------------------------------------------------------- from a program


@pytest.mark.anyio
async def test_every_tool_s_example_is_a_program_that_names_it(tmp_path: Any) -> None:
    async with running_app(tmp_path) as app:
        for name in app.tool_names():
            example = app.tool_help(name).partition("\nExample:\n")[2].partition("\nDocs:")[0]
            assert name in example, f"{name} has no example of itself"
            assert ast.parse("\n".join(line.strip() for line in example.splitlines()))


@pytest.mark.anyio
async def test_what_the_overview_says_is_true(tmp_path: Any) -> None:
    calls = re.findall(r"\bot\.\w+\((?:[^()]*)\)", OVERVIEW)
    assert len(calls) >= 7
    async with running_app(tmp_path) as app:
        app.goes_on = True
        for call in calls:
            reply = await app.run(call)
            if "handle=" in call:
                assert "not found" in error_of(reply)
            elif "id=" in call:
                assert "no run" in error_of(reply)
            else:
                assert value_of(reply), call


@pytest.mark.anyio
@pytest.mark.scenario("001-46")
async def test_a_snippet_s_page_is_its_definition_and_an_example(tmp_path: Path) -> None:
    config = {"snippets": {"b_q": {"body": 'f("{{ q }}")', "description": "Ask.", "params": {"q": {}}}}}
    async with running_app(tmp_path, config=config) as app:
        page = value_of(await app.run("ot.help(query='$b_q')"))
        for text in ("name: b_q", "description: Ask.", "params:", "body: |-", "# $b_q q=<q>", 'f("<q>")'):
            assert text in page
        assert value_of(await app.run("ot.help(query='$b_q', info='list')")) == "$b_q"
        unknown = value_of(await app.run("ot.help(query='$b_p x=1')"))
        assert unknown == "No snippet '$b_p'. Snippets: b_q"
        assert "No snippet '$'" in value_of(await app.run("ot.help(query=' $ ')"))


@pytest.mark.anyio
async def test_a_search_knows_the_packs_of_the_picture(tmp_path: Path) -> None:
    text = value_of(await run_in(tmp_path, "ot.help(query='brave web')", packs={"brave": BRAVE}))
    assert text.startswith("tools:\n- {name: brave.web_search, signature: '(query: str, count: int = 2) -> list'")


def test_the_first_two_hits_have_more_room_than_the_others() -> None:
    optional = tuple(Parameter(f"parameter_{n}", "keyword", "str", "''") for n in range(5))
    many = [Tool("mail", f"send_{n}", optional, doc="Send a letter.") for n in range(3)]
    first, second, third = ask("send a letter", "min", Pack("mail", "proxy", lambda: many))["tools"]
    assert first["signature"] == second["signature"] == compact_signature(many[0])
    assert third["signature"].count("parameter_") < first["signature"].count("parameter_")
    assert third["signature"].endswith(", ...)")

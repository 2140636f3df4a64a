"""What the pack ot gives of stored results and of snippets."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from ot.config.models import Snippet, SnippetParam
from ot.introspect.snippets import definition, example_command, list_snippets
from ot.workspace import Workspace
from run_app import error_of, run_in, running_app, value_of

pytestmark = pytest.mark.anyio

PACKS = {
    "shop": '''
        def orders() -> dict:
            """Return more than a reply holds."""
            return {"count": 400, "orders": [{"id": n, "total": n * 1.5, "who": f"c{n % 7}"} for n in range(400)]}


        def hidden() -> list:
            """Return characters that cannot be seen."""
            return [f"a\\u200bb {n}" for n in range(400)]


        def tagged() -> list:
            """Return the beginnings of boundary tags."""
            return [{"text": "<external-content", "n": n} for n in range(400)]
    '''
}
CONFIG = {"output": {"max_inline_size": 2000}}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[Workspace]:
    async with running_app(tmp_path, PACKS, CONFIG) as app:
        yield app


async def stored(app: Workspace, program: str) -> Any:
    return json.loads(value_of(await app.run(f"__format__ = 'json'\n{program}")))


async def test_a_program_computes_with_parts_of_a_stored_value(app: Workspace) -> None:
    handle = (await stored(app, "shop.orders()"))["handle"]
    program = f"""
rows = ot.result(handle="{handle}", path="orders[10:20]")
[sum(row["total"] for row in rows), ot.result(handle="{handle}", path="count") + 1]
"""
    assert json.loads(value_of(await app.run(program))) == [sum(n * 1.5 for n in range(10, 20)), 401]


async def test_the_summary_leads_to_the_outline_and_the_outline_to_the_value(app: Workspace) -> None:
    summary = await stored(app, "shop.orders()")
    assert "outline=True" in summary["summary"]
    outline = await stored(app, f"ot.result(handle='{summary['handle']}', path='orders', outline=True)")
    assert (outline["type"], outline["length"], outline["keys_of_first"]) == ("list", 400, ["id", "total", "who"])
    path = outline["next"].removeprefix("read on with path='").removesuffix("'")
    rows = await stored(app, f"ot.result(handle='{summary['handle']}', path='{path}')")
    assert [row["id"] for row in rows] == list(range(10))


async def test_parameter_names_may_be_shortened(app: Workspace) -> None:
    handle = (await stored(app, "shop.orders()"))["handle"]
    assert value_of(await app.run(f"ot.result(han='{handle}', pa='orders[3].who')")) == "c3"


async def test_a_part_too_large_for_a_reply_gets_a_handle_and_lines_of_its_own(app: Workspace) -> None:
    handle = (await stored(app, "shop.orders()"))["handle"]
    part = await stored(app, f"ot.result(handle='{handle}', path='orders')")
    assert part["handle"] != handle
    assert part["total_lines"] == 400
    assert (await stored(app, f"ot.result(handle='{part['handle']}', path='[399]')"))["id"] == 399


async def test_a_part_is_stored_again_also_where_the_program_is_nothing_but_the_call(app: Workspace) -> None:
    handle = (await stored(app, "shop.orders()"))["handle"]
    part = json.loads(value_of(await app.run(f"ot.result(handle='{handle}', path='orders')")))
    assert part["total_lines"] == 400
    assert value_of(await app.run(f"ot.result(handle='{part['handle']}', path='[399].id')")) == "399"


async def test_a_page_is_not_stored_again_however_long_its_text_becomes(app: Workspace) -> None:
    handle = (await stored(app, "shop.orders()"))["handle"]
    text = value_of(await app.run(f"ot.result(handle='{handle}', offset=2, limit=1)"))
    assert len(text) > 2000
    assert "read on with offset=2, from_byte=" in text


@pytest.mark.parametrize("query", ["search='nothing like it'", "offset=1000"])
async def test_a_page_without_lines_says_so(app: Workspace, query: str) -> None:
    handle = (await stored(app, "shop.orders()"))["handle"]
    page = await stored(app, f"ot.result(handle='{handle}', {query})")
    assert (page["lines"], page["returned"], page["has_more"]) == ([], 0, False)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("path='order'", "path '.' has no key 'order'; there are: count, orders"),
        ("path='orders[400]'", "IndexError: path 'orders' is a list of 400 items: there is no item 400"),
        ("path='orders['", "ValueError: path cannot be read at '['"),
        ("path='count', search='x'", "ValueError: path and outline look at a value"),
        ("outline=True, offset=2", "ValueError: path and outline look at a value"),
        ("path=1", "path"),
    ],
)
async def test_what_cannot_be_answered_is_an_error_that_helps(app: Workspace, query: str, text: str) -> None:
    handle = (await stored(app, "shop.orders()"))["handle"]
    assert text in error_of(await app.run(f"ot.result(handle='{handle}', {query})"))


async def test_a_sanitised_value_is_still_json(app: Workspace) -> None:
    summary = value_of(await app.run("__sanitize__ = True\n__format__ = 'json'\nshop.hidden()"))
    handle = json.loads(summary.split("\n")[1])["handle"]
    assert value_of(await app.run(f"ot.result(handle='{handle}', path='[7]')")) == "a\\u{200b}b 7"


async def test_a_boundary_tag_that_is_taken_out_takes_nothing_of_the_value_with_it(app: Workspace) -> None:
    summary = value_of(await app.run("__sanitize__ = True\n__format__ = 'json'\nshop.tagged()"))
    handle = json.loads(summary.split("\n")[1])["handle"]
    part = await stored(app, f"ot.result(handle='{handle}', path='[7]')")
    assert part == {"text": "[REDACTED:tag]", "n": 7}


RESEARCH = {
    "description": "Search web and extract structured findings",
    "params": {
        "topic": {"description": "Topic to research", "example": "Python"},
        "count": {"default": 5, "description": "Number of sources"},
    },
    "body": (
        'results = brave.search(query="{{ topic }}", count={{ count }})\n'
        'llm.transform(input=results, prompt="Extract key findings")\n'
    ),
}
WITH_SNIPPETS = {
    "snippets": {"brv_research": RESEARCH, "pkg_new": {"body": "1"}, "up": {"body": "2", "description": "A Pkg."}}
}

PAGE = """\
name: brv_research
description: Search web and extract structured findings
params:
  topic: {description: "Topic to research"}
  count: {default: 5, description: "Number of sources"}
body: |
  results = brave.search(query="{{ topic }}", count={{ count }})
  llm.transform(input=results, prompt="Extract key findings")

# Example with defaults:
# $brv_research topic=Python
# Expands to:
results = brave.search(query="Python", count=5)
llm.transform(input=results, prompt="Extract key findings")"""


async def ask(tmp_path: Path, call: str) -> str:
    return value_of(await run_in(tmp_path, call, config=WITH_SNIPPETS))


@pytest.mark.scenario("001-37", "001-40")
async def test_all_snippets_are_listed_with_their_descriptions(tmp_path: Path) -> None:
    expected = "{brv_research: Search web and extract structured findings, pkg_new: '', up: A Pkg.}"
    async with running_app(tmp_path, config=WITH_SNIPPETS) as app:
        assert value_of(await app.run("ot.snippets()")) == expected
        assert value_of(await app.run("ot.snippets(info='min')")) == expected


@pytest.mark.scenario("001-38")
async def test_a_pattern_is_part_of_the_name_or_the_description_in_any_case(tmp_path: Path) -> None:
    assert await ask(tmp_path, "ot.snippets(pattern='PKG', info='list')") == "[pkg_new, up]"


@pytest.mark.scenario("001-39")
async def test_info_list_gives_only_names_of_snippets(tmp_path: Path) -> None:
    assert await ask(tmp_path, "ot.snippets(info='list')") == "[brv_research, pkg_new, up]"


@pytest.mark.scenario("001-41", "001-42")
async def test_in_full_a_snippet_is_its_definition_an_example_and_what_that_expands_to(tmp_path: Path) -> None:
    assert await ask(tmp_path, "ot.snippets(pattern='brv_research', info='full')") == PAGE


@pytest.mark.scenario("001-41")
async def test_declared_types_are_shown_beside_the_defaults(tmp_path: Path) -> None:
    params = {
        "topic": {"type": "str", "example": "Python"},
        "count": {"type": "int", "default": 5, "description": "Number of sources"},
    }
    config = {"snippets": {"find": RESEARCH | {"params": params}}}
    text = value_of(await run_in(tmp_path, "ot.snippets(pattern='find', info='full')", config=config))
    assert 'params:\n  topic: {type: str}\n  count: {type: int, default: 5, description: "Number of sources"}\n' in text
    assert "# $find topic=Python\n" in text


async def test_several_pages_are_set_apart(tmp_path: Path) -> None:
    text = await ask(tmp_path, "ot.snippets(pattern='pkg', info='full')")
    assert [page.splitlines()[0] for page in text.split("\n\n---\n")] == ["name: pkg_new", "name: up"]


async def test_no_more_than_twenty_pages_are_shown() -> None:
    snippets = {f"s{n:02}": Snippet(body="1") for n in range(25)}

    async def expand(command: str) -> str:
        return command

    pages = (await list_snippets(snippets, "", "full", expand)).split("\n\n---\n")
    assert len(pages) == 21
    assert pages[-1] == "# and 5 more: ot.snippets(info='list')"


async def test_a_snippet_whose_example_cannot_be_expanded_says_why(tmp_path: Path) -> None:
    config = {"snippets": {"bad": {"body": "{{ nobody }}"}}}
    text = value_of(await run_in(tmp_path, "ot.snippets(info='full')", config=config))
    assert "# Expands to:\n# nothing, because snippet '$bad': UndefinedError" in text


TEXTS = st.text(max_size=40)


@given(TEXTS, TEXTS.filter(bool), TEXTS)
@example("a: b", " indented\n  more\n", "# no")
@example("", "a\n\n", "")
@example("", "a\n\n  b\r\n", "\u2028")
def test_a_definition_can_be_read_back(description: str, body: str, said: str) -> None:
    params = {"x": SnippetParam(type="int", default=1, description=said), "y": SnippetParam(required=False)}
    text = definition("name", Snippet(description=description, body=body, params=params))
    read: Any = yaml.safe_load(text)
    assert (read["description"], read["body"]) == (description, body)
    assert read["params"]["x"] == {"type": "int", "default": 1} | ({"description": said} if said else {})
    assert read["params"]["y"] == {"required": False}


def test_an_example_gives_what_must_be_given() -> None:
    params = {
        "a": SnippetParam(),
        "b": SnippetParam(example="two words"),
        "c": SnippetParam(example="x=y"),
        "d": SnippetParam(default=1),
    }
    assert example_command("go", Snippet(body="1", params=params)) == '$go a=<a> b="two words" c=x\\=y'

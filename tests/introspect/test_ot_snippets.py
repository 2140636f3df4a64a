"""Lists of snippets, and the page of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from ot.config.models import Snippet, SnippetParam
from ot.introspect.snippets import definition, example_command, list_snippets
from run_app import run_in, running_app, value_of

pytestmark = pytest.mark.anyio

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
CONFIG = {
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
    return value_of(await run_in(tmp_path, call, config=CONFIG))


@pytest.mark.scenario("001-37", "001-40")
async def test_all_snippets_are_listed_with_their_descriptions(tmp_path: Path) -> None:
    expected = "{brv_research: Search web and extract structured findings, pkg_new: '', up: A Pkg.}"
    async with running_app(tmp_path, config=CONFIG) as app:
        assert value_of(await app.run("ot.snippets()")) == expected
        assert value_of(await app.run("ot.snippets(info='min')")) == expected


@pytest.mark.scenario("001-38")
async def test_a_pattern_is_part_of_the_name_or_the_description_in_any_case(tmp_path: Path) -> None:
    assert await ask(tmp_path, "ot.snippets(pattern='PKG', info='list')") == "[pkg_new, up]"


@pytest.mark.scenario("001-39")
async def test_names_alone(tmp_path: Path) -> None:
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

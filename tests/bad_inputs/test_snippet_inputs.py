"""Snippets called badly, and snippets written badly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from bad_inputs.bad_inputs_corpus import Item, each_item, items, text
from faults.watched import CONFIG, Watched

CALLED: dict[str, str] = {
    "snippets-05": "hello ",
    "snippets-08": """hello x" + str(open('/etc/passwd').read()) + \"""",
    "snippets-09": "hello {{7*7}}",
    "snippets-10": "hello {% raw %}",
    "snippets-11": "hello a=b",
    "snippets-12": 'hello "',
}
"""Calls whose values are odd and stay values; all others are errors."""

OF_THE_HOST = ("root:", "uid=", "<class ", "Popen", "module", "Traceback", "site-packages")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A server whose configuration holds every bad body, each under its own name."""
    bodies = {name(item): {"body": item["body"]} for item in items("snippets") if "body" in item}
    config = yaml.safe_load(CONFIG)
    config["snippets"] |= bodies
    with Watched.started(tmp_path_factory.mktemp("watched"), yaml.safe_dump(config)) as watched:
        yield watched


def name(item: Item) -> str:
    return item["id"].replace("-", "_")


@each_item("snippets", having="input")
def test_a_value_given_to_a_snippet_stays_a_value(server: Watched, item: Item) -> None:
    reply = server.run(text(item))
    if item["id"] in CALLED:
        assert (False, CALLED[item["id"]]) == (reply.is_error, reply.text)
    else:
        assert "SnippetError" == reply.meta["error"]


@each_item("snippets", having="gen")
def test_a_snippet_called_with_a_lot_is_refused_at_once(server: Watched, item: Item) -> None:
    reply = server.run(text(item))
    assert reply.is_error
    assert "LimitExceeded" != reply.meta["error"]


@each_item("snippets", having="body")
def test_a_body_reaches_nothing_and_ends_in_time(server: Watched, item: Item) -> None:
    reply = server.run(f"${name(item)}")
    assert reply.is_error
    assert [] == [sign for sign in OF_THE_HOST if sign in reply.text]

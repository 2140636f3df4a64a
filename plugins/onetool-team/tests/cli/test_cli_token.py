"""onetool token, as an operator types it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from cli.command import OneTool
from onetool_team.auth.static_tokens import StaticTokens
from onetool_team.auth.token_file import read_token_file
from onetool_team.settings import Http

pytestmark = pytest.mark.anyio


def http_settings(onetool: OneTool) -> Http:
    return Http.model_validate(yaml.safe_load((onetool.user / "onetool.yaml").read_text())["http"])


async def test_the_printed_token_is_known_by_the_printed_entry(onetool: OneTool):
    ended = onetool("token", "ci", "--group", "robots", "--group", "night")
    assert ended.code == 0 and len(ended.out.split()) == 1
    entry = yaml.safe_load(ended.err[ended.err.index("http:") :])
    found = await StaticTokens(Http.model_validate(entry["http"]).tokens).identify(ended.out.strip())
    assert (found.principal, found.groups) == ("token|ci", {"robots", "night"})
    assert not (onetool.user / "onetool.yaml").exists(), "nothing is written unless it is asked for"


async def test_a_written_token_is_known_by_the_configuration_which_keeps_its_comments(onetool: OneTool):
    onetool.user.mkdir()
    file = onetool.user / "onetool.yaml"
    file.write_text("# ours\nhttp:\n  public_url: https://tools.example.com  # behind the balancer\n")
    told = json.loads(onetool("token", "ann@example.com", "--scope", "admin", "--write", "--json").out)
    assert (await StaticTokens(http_settings(onetool).tokens).identify(told["token"])).scopes == {"run", "admin"}
    assert "# ours" in file.read_text() and "# behind the balancer" in file.read_text()
    everything = [path.read_text(errors="replace") for path in onetool.home.rglob("*") if path.is_file()]
    assert not [text for text in everything if told["token"] in text], "the token itself is in no file"


async def test_a_name_is_not_given_a_second_token_unless_it_replaces_the_first(onetool: OneTool):
    first = onetool("token", "ci", "--group", "robots", "--write").out.strip()
    refused = onetool("token", "ci", "--write")
    assert (refused.code, refused.out) == (1, "") and "--replace" in refused.err
    assert (await StaticTokens(http_settings(onetool).tokens).identify(first)).name == "ci"
    second = onetool("token", "ci", "--write", "--replace").out.strip()
    tokens = StaticTokens(http_settings(onetool).tokens)
    assert (await tokens.identify(second)).groups == {"robots"}, "what it may do stays the same"
    with pytest.raises(Exception, match="unknown"):
        await tokens.identify(first)


async def test_where_there_is_a_file_of_tokens_a_new_one_is_written_there(onetool: OneTool):
    onetool.user.mkdir()
    config = "http:\n  tokens_file: people.txt\n"
    (onetool.user / "onetool.yaml").write_text(config)
    told = json.loads(onetool("token", "ann", "--group", "staff", "--write", "--json").out)
    assert told["file"] == str(onetool.user / "people.txt")
    found = await StaticTokens(read_token_file(onetool.user / "people.txt")).identify(told["token"])
    assert (found.name, found.groups) == ("ann", {"staff"})
    assert onetool("token", "ann", "--write").code == 1
    assert (onetool.user / "onetool.yaml").read_text() == config


@pytest.mark.parametrize("words", [("a|b",), ("ci", "--scope", "root"), ("",), ()])
def test_what_the_settings_would_refuse_is_refused_before_anything_is_printed(onetool: OneTool, words: Any):
    ended = onetool("token", *words)
    assert (ended.code, ended.out) == (2, "")

"""What clients without a token are told: where to get one."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from onetool_team.auth.resource_metadata import challenge, metadata_answers, resource_url
from onetool_team.identity import TokenRefused
from onetool_team.settings import AccessTokens, Http
from ot.proxied.auth.challenge import challenge_fields, missing_scope

HTTP = Http(public_url="https://tools.example.com", oauth=AccessTokens(issuer="https://idp.example.com"))


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"])
def test_the_document_is_at_both_places(path: str):
    answer = TestClient(metadata_answers(HTTP)[path].app).get(path)
    assert answer.json() == {
        "resource": "https://tools.example.com/mcp",
        "authorization_servers": ["https://idp.example.com"],
        "scopes_supported": ["run", "admin"],
        "bearer_methods_supported": ["header"],
        "resource_name": "OneTool",
    }


def test_behind_a_path_the_document_is_where_rfc_9728_puts_it():
    http = HTTP.model_copy(update={"public_url": "https://example.com/tools/"})
    path = "/.well-known/oauth-protected-resource/tools/mcp"
    answer = TestClient(metadata_answers(http)[path].app).get(path)
    assert answer.json()["resource"] == resource_url(http) == "https://example.com/tools/mcp"
    where = challenge_fields({"www-authenticate": challenge(http)})["resource_metadata"]
    assert where == "https://example.com/.well-known/oauth-protected-resource/tools/mcp"


def test_a_challenge_leads_to_the_document_and_tells_an_error_only_of_a_token():
    without = challenge_fields({"www-authenticate": challenge(HTTP)})
    assert without == {
        "realm": "onetool",
        "scope": "run",
        "resource_metadata": "https://tools.example.com/.well-known/oauth-protected-resource/mcp",
    }
    lacking = {"www-authenticate": challenge(HTTP, refusal=TokenRefused("lacks 'run'", "insufficient_scope"))}
    assert missing_scope(lacking) == "run"
    assert challenge_fields(lacking)["error_description"] == "lacks 'run'"


def test_nothing_that_a_token_says_breaks_out_of_a_challenge():
    text = challenge(HTTP, refusal=TokenRefused('a" \r\nSet-Cookie: x=1, scope="admin\\ \N{SNOWMAN}'))
    assert text.isascii() and text.isprintable() and text.count('"') == 10
    assert challenge_fields({"www-authenticate": text})["scope"] == "run"


def test_without_an_authorization_server_there_is_none_to_lead_to():
    http = Http(public_url="https://tools.example.com")
    assert metadata_answers(http) == {}
    assert challenge(http) == 'Bearer realm="onetool"'
    assert resource_url(Http(), "http://127.0.0.1:8000") == "http://127.0.0.1:8000/mcp"

"""What clients without a token are told: where to get one."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from ot.config.team_settings import AccessTokens, Http
from ot.servers.auth.challenge import challenge_fields
from ot.team.auth.resource_metadata import challenge_parameters, metadata_answers, resource_url

HTTP = Http(public_url="https://tools.example.com", oauth=AccessTokens(issuer="https://idp.example.com"))


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"])
def test_the_document_is_at_both_places(path: str):
    assert TestClient(metadata_answers(HTTP)[path]).get(path).json() == {
        "resource": "https://tools.example.com/mcp",
        "authorization_servers": ["https://idp.example.com"],
        "scopes_supported": ["run", "admin"],
        "bearer_methods_supported": ["header"],
        "resource_name": "OneTool",
    }


def test_behind_a_path_the_document_is_where_the_standard_puts_it_and_the_challenge_says():
    http = HTTP.model_copy(update={"public_url": "https://example.com/tools/"})
    answers = metadata_answers(http)
    path = "/.well-known/oauth-protected-resource/tools/mcp"
    assert TestClient(answers[path]).get(path).json()["resource"] == resource_url(http)
    assert resource_url(http) == "https://example.com/tools/mcp"
    fields = challenge_fields({"www-authenticate": f"Bearer {challenge_parameters(http)}"})
    assert fields == {"resource_metadata": f"https://example.com{path}"}


def test_without_an_authorization_server_there_is_none_to_lead_to():
    http = Http(public_url="https://tools.example.com")
    assert (metadata_answers(http), challenge_parameters(http)) == ({}, "")
    assert resource_url(Http(), "http://127.0.0.1:8000") == "http://127.0.0.1:8000/mcp"

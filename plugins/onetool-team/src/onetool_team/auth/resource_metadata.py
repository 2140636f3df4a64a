"""Tells clients how to get a token: protected resource metadata (RFC 9728), and challenges that lead to it."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import JSONResponse

from onetool_team.auth.granted_scopes import ADMIN, RUN
from onetool_team.http.routes import Route
from onetool_team.identity import TokenRefused
from onetool_team.settings import Http

WELL_KNOWN = "/.well-known/oauth-protected-resource"
MCP_PATH = "/mcp"
UNQUOTABLE = re.compile(r'[^\x20-\x7e]|["\\]')


def resource_url(http: Http, address: str = "") -> str:
    """Return what clients call this server, and tokens name as their audience; nothing where it is unknown."""
    base = (http.public_url or address).rstrip("/")
    return f"{base}{MCP_PATH}" if base else ""


def metadata_answers(http: Http, address: str = "") -> dict[str, Route]:
    """Return what answers with the document of RFC 9728, by path; nothing without an authorization server to name."""
    if http.oauth is None:
        return {}
    document = {
        "resource": resource_url(http, address),
        "authorization_servers": [http.oauth.issuer],
        "scopes_supported": [RUN, ADMIN],
        "bearer_methods_supported": ["header"],
        "resource_name": "OneTool",
    }
    answer: Any = JSONResponse(document, headers={"cache-control": "max-age=3600"})
    # The standard's own place, what clients try that do not follow the challenge, and the bare one.
    own = WELL_KNOWN + urlsplit(resource_url(http, address)).path
    return dict.fromkeys((own, WELL_KNOWN + MCP_PATH, WELL_KNOWN), Route(answer, ("GET",)))


def challenge(http: Http, address: str = "", refusal: TokenRefused | None = None) -> str:
    """Return the text of ``WWW-Authenticate``; without a *refusal* there was no token, and no error to tell."""
    parts = ['realm="onetool"']
    if refusal:
        why = UNQUOTABLE.sub("'", str(refusal))[:200]
        parts += [f'error="{refusal.error}"', f'error_description="{why}"']
    if http.oauth:
        parts += [f'scope="{RUN}"', f'resource_metadata="{_metadata_url(http, address)}"']
    return f"Bearer {', '.join(parts)}"


def _metadata_url(http: Http, address: str) -> str:
    resource = urlsplit(resource_url(http, address))
    return f"{resource.scheme}://{resource.netloc}{WELL_KNOWN}{resource.path}"

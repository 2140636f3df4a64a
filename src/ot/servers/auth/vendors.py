"""Where some vendors let their users register an OAuth app, since their servers register none by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

PAGES = {
    "githubcopilot.com": "at https://github.com/settings/developers (or use a personal access token in a header)",
    "github.com": "at https://github.com/settings/developers (or use a personal access token in a header)",
    "slack.com": "at https://api.slack.com/apps",
}


def where_to_register(url: str, documents: Sequence[str]) -> str:
    """Return where to go for a client id of the server at *url*; it may have named *documents* itself."""
    host = urlsplit(url).hostname or ""
    known = [page for domain, page in PAGES.items() if host == domain or host.endswith(f".{domain}")]
    return known[0] if known else f"with the vendor (see {documents[0]})" if documents else "with the vendor"

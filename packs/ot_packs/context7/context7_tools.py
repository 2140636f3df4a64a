# /// script
# requires-python = ">=3.12"
# dependencies = ["httpx2>=2.16,<3"]
# ///
"""Find current documentation and code examples of a library (Context7)."""

from __future__ import annotations

# ruff: noqa: E402 - a pack file opens with its name and its tools
pack = "context7"

__all__ = ["doc", "search"]
__ot_read_only__ = ["doc", "search"]
__ot_requires__ = {"optional_secrets": ["CONTEXT7_API_KEY"]}

import re
from dataclasses import dataclass
from typing import Any, TypedDict

from arguments import check_text
from service_client import (
    ServiceClient,
    WebService,
    asking,
    check_key,
    check_timeout,
    check_url,
    list_at,
    number_at,
    rows_at,
    text_at,
)

import ot_sdk
from ot_sdk.numbers import check_number

KEY = "CONTEXT7_API_KEY"
KEY_HINT = (
    f"Put a key into ~/.onetool/secrets.yaml ({KEY}: ...) or take a wrong one out; https://context7.com gives one"
)
LIBRARY = re.compile(r"/[\w.~-]+/[\w.~-]+([/@][\w.~+-]+)?", re.ASCII)
VERSION = re.compile(r"[\w.~+-]{1,60}", re.ASCII)
MAX_QUERY = 1000
MAX_MOVES = 3


@dataclass(frozen=True)
class Config:
    """The settings ``tools.context7``."""

    url: str = "https://context7.com/api/v2"
    """Where Context7's API is."""
    timeout: float = 25.0
    """Seconds for one call, repeated requests included."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, and an address that is not Context7's."""
        check_url("url", self.url, ["context7.com"])
        check_timeout("timeout", self.timeout)


class KnownLibrary(TypedDict):
    """A library whose documentation Context7 holds; ``trust`` is 0 to 10, ``score`` 0 to 100, or None."""

    id: str
    title: str
    description: str
    versions: list[str]
    snippets: int
    trust: float | None
    score: float | None
    updated: str


class DocSnippet(TypedDict):
    """A piece of documentation; ``code`` is empty where it is prose only."""

    title: str
    text: str
    code: str
    language: str
    source: str


class LibraryDoc(TypedDict):
    """What the documentation of a library says to a question."""

    library: str
    snippets: list[DocSnippet]


async def search(*, query: str, question: str = "", limit: int = 10) -> list[KnownLibrary]:
    """Find a library, and its id, among those whose documentation can be asked.

    Args:
        query: The library's name, such as 'fastapi'.
        question: What it is wanted for; libraries that fit come first.
        limit: The most libraries to return, 1 to 50.

    Returns:
        The id that context7.doc takes, title, description, versions and ratings of each library, best first.

    Example:
        context7.search(query="fastapi", question="background tasks", limit=3)
    """
    check_text("query", query, MAX_QUERY)
    if question:
        check_text("question", question, MAX_QUERY)
    check_number("limit", limit, 1, 50)
    async with asking(_service()) as api:
        return (await _libraries(api, query, question or query))[:limit]


async def doc(*, library: str, query: str, version: str = "", limit: int = 10) -> LibraryDoc:
    """Read what a library's documentation says about something, with code examples.

    Args:
        library: An id from context7.search, such as '/fastapi/fastapi'; a name is looked up, and its best match taken.
        query: What to read about; a whole question finds more than a word.
        version: The version to read about, one of those that context7.search returns; otherwise the newest.
        limit: The most snippets to return, 1 to 50.

    Returns:
        The id of the library, and snippets with title, text, code, its language and source.

    Example:
        context7.doc(library="fastapi", query="how to run background tasks", limit=3)
    """
    check_text("library", library, 200)
    check_text("query", query, MAX_QUERY)
    check_number("limit", limit, 1, 50)
    if version and not VERSION.fullmatch(check_text("version", version, 60)):
        raise ValueError(f"version must be like 'v1.2.3', got {version!r}")
    if library.startswith("/") and not LIBRARY.fullmatch(library):
        raise ValueError(f"library must be like '/owner/name' or '/owner/name/version', got {library!r}")
    async with asking(_service()) as api:
        name = library if library.startswith("/") else await _best(api, library, query)
        if version:
            name = f"{'/'.join(name.split('@')[0].split('/')[:3])}/{version}"
        return await _documentation(api, name, query, limit)


# ---------------------------------------------------------------- asking


def _config() -> Config:
    return ot_sdk.config()


def _service() -> WebService:
    settings = _config()
    try:
        key = check_key(KEY, ot_sdk.secret(KEY).reveal())
    except ot_sdk.SecretNotGranted:
        key = ""  # it answers without one too, to fewer questions an hour
    return WebService(
        name="Context7",
        pack=pack,
        url=settings.url,
        timeout=settings.timeout,
        max_bytes=8 << 20,
        key=key,
        key_hint=KEY_HINT,
        headers={"authorization": f"Bearer {key}"} if key else {},
    )


async def _libraries(api: ServiceClient, name: str, question: str) -> list[KnownLibrary]:
    found = await api.json("libs", "search", params=[("libraryName", name), ("query", question)])
    rows = found if isinstance(found, list) else rows_at(found, "results")
    return [_library(row) for row in rows_at({"rows": rows}, "rows") if text_at(row, "id")]


async def _best(api: ServiceClient, name: str, question: str) -> str:
    for library in await _libraries(api, name, question):
        if LIBRARY.fullmatch(library["id"]):
            return library["id"]
    raise LookupError(f"Context7 has no library {name!r}: try other words with context7.search")


async def _documentation(api: ServiceClient, name: str, query: str, limit: int) -> LibraryDoc:
    for _ in range(MAX_MOVES):
        answer = await api.get("context", params=[("libraryId", name), ("query", query), ("type", "json")])
        if answer.status == 202:
            raise RuntimeError(f"Context7 is still reading the documentation of {name!r}: ask again in some minutes")
        found = api.parse(answer)
        if answer.status < 300:
            return {"library": name, "snippets": _snippets(found)[:limit]}
        name = text_at(found, "redirectUrl")
        if not LIBRARY.fullmatch(name):
            break
    raise RuntimeError("Context7 says that the library has moved, but not to a usable address")


# ---------------------------------------------------------------- answers


def _library(row: dict[str, Any]) -> KnownLibrary:
    return {
        "id": text_at(row, "id"),
        "title": text_at(row, "title") or text_at(row, "name"),
        "description": text_at(row, "description"),
        "versions": [version for version in list_at(row, "versions") if isinstance(version, str)],
        "snippets": int(number_at(row, "totalSnippets") or 0),
        "trust": number_at(row, "trustScore"),
        "score": number_at(row, "benchmarkScore"),
        "updated": text_at(row, "lastUpdateDate")[:10],
    }


def _snippets(found: Any) -> list[DocSnippet]:
    code = [_code(row, example) for row in rows_at(found, "codeSnippets") for example in rows_at(row, "codeList")]
    prose: list[DocSnippet] = [
        {
            "title": text_at(row, "breadcrumb"),
            "text": text_at(row, "content"),
            "code": "",
            "language": "",
            "source": text_at(row, "pageId"),
        }
        for row in rows_at(found, "infoSnippets")
    ]
    return [*code, *prose]


def _code(row: dict[str, Any], example: dict[str, Any]) -> DocSnippet:
    return {
        "title": text_at(row, "codeTitle"),
        "text": text_at(row, "codeDescription"),
        "code": text_at(example, "code"),
        "language": text_at(example, "language") or text_at(row, "codeLanguage"),
        "source": text_at(row, "codeId"),
    }

"""An API to add, from its OpenAPI document."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ot.cli.adding import ServerToAdd
from ot.registry.schema_types import as_schema

if TYPE_CHECKING:
    from ot.config.paths import Paths
    from ot.proxied.internal_addresses import AddressRule
    from ot.proxied.openapi.documents import ApiDocument

PLAIN_NAMES = re.compile(r"(?:open-?api|swagger|api|spec|schema|index|v?\d+)(?:[-_.].*)?", re.IGNORECASE)
"""What documents are called everywhere: it names no API."""


def read_api(named: Callable[[str], str], source: str, base: str, paths: Paths, *, use_global: bool) -> ServerToAdd:
    """Return the API whose document is at *source*, which is read now; *named* makes its name of a guess.

    Raises:
        ValueError: The document is unavailable or malformed, or does not say where the API is, or nobody agrees to it.
    """
    from ot.cli.terminal.event_loop import run_async
    from ot.config.load import load_config
    from ot.proxied.internal_addresses import AddressRule
    from ot.proxied.openapi.document_text import base_address, is_address
    from ot.proxied.openapi.documents import ApiDocuments, fetch_document

    if not source:
        raise ValueError("write openapi:FILE or openapi:ADDRESS")
    place = source if is_address(source) else str(Path(source).expanduser().absolute())
    internal_hosts = load_config(paths).config.security.internal_hosts
    rule = AddressRule((place,) if is_address(place) else (), internal_hosts)
    document: ApiDocument = run_async(fetch_document(place, rule=rule))
    name = named(_name(place, document.data))
    url = base or base_address(document.data, place)
    if not url:
        raise ValueError("the document does not give the API's address: pass it with --base ADDRESS")
    if not base and (doubt := run_async(_doubt(url, place, rule))):
        _require_consent(url, doubt)
    if is_address(place):
        from ot.proxied.catalogue_files import FOLDER

        ApiDocuments(paths.global_dir / FOLDER).keep(name, place, document)
    written = place if use_global or is_address(place) else _below_project(place, paths)
    advice = [f"Calls go to {_hide_secrets(url)}.", *_advice(document.data)]
    return ServerToAdd(name, {"openapi": written, "url": url}, tuple(advice))


async def _doubt(url: str, place: str, rule: AddressRule) -> str:
    """Return why calls may not be meant to go to *url*, which the document at *place* names, or nothing."""
    from httpx2 import URL, InvalidURL

    from ot.proxied.http_replies import origin_of
    from ot.proxied.openapi.document_text import is_address
    from ot.proxied.reply_faults import Refused

    try:
        here, there = origin_of(URL(place)) if is_address(place) else "", origin_of(URL(url))
    except InvalidURL as error:
        raise ValueError(f"the document says that the API is at {_hide_secrets(url)}: {error}") from None
    if here == there:
        return ""
    try:
        await rule.check(URL(url))
    except Refused as error:
        return str(error).partition(";")[0]
    return f"the document is at {here}" if here else ""


def _require_consent(url: str, doubt: str) -> None:
    """Check that the person at the terminal wants calls to go to *url*, or raise ValueError."""
    from ot.cli.terminal import confirm

    said = f"the document says that the API is at {_hide_secrets(url)}, but {doubt}"
    if not sys.stdin.isatty():
        raise ValueError(
            f"{said}. If calls, and the headers of the server, should go there, add --base {_hide_secrets(url)}"
        )
    if not confirm(f"{said[0].upper()}{said[1:]}. Send calls and their headers there?", "add"):
        raise ValueError("give the address of the API with --base ADDRESS")


def _hide_secrets(url: str) -> str:
    """Return *url* without what may be secret."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _below_project(place: str, paths: Paths) -> str:
    """Return the path as a project's settings have it: from the .onetool directory on, if it is there."""
    from ot.config.paths import FOLDER

    directory = paths.cwd / FOLDER
    path = Path(place)
    return path.relative_to(directory).as_posix() if path.is_relative_to(directory) else place


def _name(place: str, document: Mapping[str, Any]) -> str:
    """Return a name for the server: that of its file, where it says something, of its host, or its title."""
    from ot.cli.adding.typed_words import guess_name
    from ot.config.clients.server_entry import own_name

    if urlsplit(place).hostname:
        return guess_name([place])
    stem = PurePath(place).stem
    title = str(as_schema(document.get("info")).get("title") or "")
    return own_name((title if title and PLAIN_NAMES.fullmatch(stem) else stem).lower())


def _advice(document: Mapping[str, Any]) -> list[str]:
    wanted = _credentials(document)
    return [f"It wants credentials, in one of these forms: {', '.join(wanted)}"] if wanted else []


def _credentials(document: Mapping[str, Any]) -> list[str]:
    """Return the headers that the API wants, as far as its document says."""
    schemes = as_schema(as_schema(document.get("components")).get("securitySchemes"))
    found: list[str] = []
    for scheme in map(as_schema, schemes.values()):
        match scheme:
            case {"type": "http", "scheme": str(kind)} if kind.lower() in ("bearer", "basic"):
                found.append(f"--header 'Authorization: {kind.title()} ...'")
            case {"type": "apiKey", "in": "header", "name": str(header)}:
                found.append(f"--header '{header}: ...'")
            case {"type": "apiKey", "in": "query", "name": str(query)}:
                found.append(f"--base 'ADDRESS?{query}=...'")
            case {"type": "oauth2" | "openIdConnect"}:
                found.append("--header 'Authorization: Bearer ...'")
            case _:
                pass
    return list(dict.fromkeys(found))

"""ApiDocuments: OpenAPI documents from files and addresses, each kept as JSON in the user's directory."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2

from ot.files.private_file import read_regular
from ot.proxied.catalogue_files import read_or_forget, server_file, write_json
from ot.proxied.guarded_client import GuardedClient
from ot.proxied.internal_addresses import AddressRule
from ot.proxied.openapi.document_text import is_address, parse_document
from ot.proxied.reply_faults import Refused
from ot.registry.clean_text import clean_line
from ot.registry.schema_types import as_schema
from ot.version import installed_version
from ot_sdk.redaction import Redactor

logger = logging.getLogger(__name__)

MAX_BYTES = 48 << 20
FETCH_SECONDS = 20.0
FRESH_SECONDS = 86_400.0
MAX_REDIRECTS = 5
MAX_WORDS = 400
NOTHING_SECRET = Redactor()


@dataclass(frozen=True)
class ApiDocument:
    """A document, and what changes when its text does."""

    digest: str
    data: Mapping[str, Any]

    @property
    def version(self) -> str:
        """What changes when other tools are made of it: another release may, of the same document."""
        return f"{self.digest[:16]}-{installed_version()}"


class ApiDocuments:
    """What was read is kept: a start needs no network, and YAML, which is slow to read, is read once."""

    def __init__(self, directory: Path) -> None:
        """Keep one file a server in *directory*."""
        self._directory = directory

    async def read(
        self, server: str, source: str, rule: AddressRule | None = None, redactor: Redactor = NOTHING_SECRET
    ) -> ApiDocument:
        """Return the document of *server*; one from an address is fetched once a day, or used as it was kept.

        Without a *rule*, the user wrote *source*. What *redactor* knows is taken out of it before it is kept.

        Raises:
            ValueError: It is unavailable or malformed; the text says how.
        """
        kept, read_at = await anyio.to_thread.run_sync(self._read_kept, server, source)
        if kept and is_address(source) and 0 <= time.time() - read_at < FRESH_SECONDS:
            return kept
        try:
            document = await fetch_document(source, kept, rule, redactor)
        except ValueError as error:
            if kept is None or not is_address(source):
                raise
            logger.warning("%s: its document is used as it was kept: %s", server, error)
            document = kept
        if is_address(source) or document is not kept:
            await anyio.to_thread.run_sync(self.keep, server, source, document)
        return document

    def keep(self, server: str, source: str, document: ApiDocument) -> None:
        """Remember the document as of now."""
        content = {"digest": document.digest, "document": document.data, "read_at": time.time()}
        try:
            write_json(self._file(server, source), content)
        except (OSError, ValueError) as error:
            logger.warning("%s: its document could not be kept: %s", server, error)

    def _read_kept(self, server: str, source: str) -> tuple[ApiDocument | None, float]:
        match read_or_forget(self._file(server, source)):
            case {"digest": str(digest), "document": data, "read_at": float(read_at)} if as_schema(data):
                return ApiDocument(digest, as_schema(data)), read_at
            case _:
                return None, 0.0

    def _file(self, server: str, source: str) -> Path:
        return server_file(self._directory, server, "openapi", source)


async def fetch_document(
    source: str,
    known: ApiDocument | None = None,
    rule: AddressRule | None = None,
    redactor: Redactor = NOTHING_SECRET,
) -> ApiDocument:
    """Return the document as it is now at its *source*: the *known* one when it is the same.

    Raises:
        ValueError: It is unavailable or malformed; the text says how.
    """
    if is_address(source):
        data = redactor.data(await _download(source, rule or AddressRule((source,))))
    else:
        data = await anyio.to_thread.run_sync(_read_file, Path(source))
    digest = hashlib.sha256(data).hexdigest()
    if known and known.digest == digest:
        return known
    return ApiDocument(digest, await anyio.to_thread.run_sync(parse_document, data))


# ---------------------------------------------------------------- where it comes from


def _read_file(path: Path) -> bytes:
    try:
        data = read_regular(path, MAX_BYTES, follow=True).data
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise ValueError(f"{path} is larger than {MAX_BYTES >> 20} MiB")
    return data


async def _download(source: str, rule: AddressRule) -> bytes:
    """Return the content at the address, without sending the server's headers: that may be another host."""
    try:
        async with GuardedClient(rule, timeout=FETCH_SECONDS) as client:
            return await _follow(client, client.build_request("GET", source))
    except (httpx2.HTTPError, httpx2.InvalidURL, Refused) as error:
        said = str(error) or type(error).__name__
        raise ValueError(f"its document is unavailable: {source}: {clean_line(said, MAX_WORDS)}") from None


async def _follow(client: GuardedClient, request: httpx2.Request) -> bytes:
    for _ in range(MAX_REDIRECTS):
        response = await client.send(request, stream=True)
        try:
            if response.next_request is None:
                return await _body(response)
            request = response.next_request  # it is looked at as the first was
        finally:
            await response.aclose()
    raise ValueError(f"its document is unavailable: {request.url} redirects more than {MAX_REDIRECTS} times")


async def _body(response: httpx2.Response) -> bytes:
    if not response.is_success:
        where = f"HTTP {response.status_code} from {response.request.url}"
        raise ValueError(f"its document is unavailable: {where}; save it to a file and add that")
    return await _read_limited(response)


async def _read_limited(response: httpx2.Response) -> bytes:
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > MAX_BYTES:
            raise ValueError(f"its document is larger than {MAX_BYTES >> 20} MiB")
    return bytes(data)

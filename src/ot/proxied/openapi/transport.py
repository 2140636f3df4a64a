"""OpenApiTransport: a server in this process whose tools are the operations of an OpenAPI document."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread
from fastmcp.client.transports.base import ClientTransport, SessionKwargs, TransportOptions
from fastmcp.client.transports.memory import FastMCPTransport
from mcp import ClientSession

from ot.proxied.catalogue_files import CatalogueFiles
from ot.proxied.definitions import ServerDefinitions
from ot.proxied.internal_addresses import AddressRule
from ot.proxied.openapi.api_client import api_client
from ot.proxied.openapi.documents import ApiDocument, ApiDocuments
from ot.proxied.openapi.operations import Operations
from ot.proxied.spec import ServerSpec
from ot.proxied.transports import PassingSession

if TYPE_CHECKING:
    import httpx2
    from fastmcp import FastMCP


class OpenApiTransport(ClientTransport):
    """Reads the document with each connection; what its operations look like is taken from the catalogue."""

    over = False
    """It has no connection of its own that could be lost."""

    def __init__(self, spec: ServerSpec, callbacks: SessionKwargs) -> None:
        """Offer the operations of the document of *spec*."""
        self.definitions = ServerDefinitions()
        """What its operations look like."""
        self._spec = spec
        self._callbacks = callbacks

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session_kwargs: Any
    ) -> AsyncGenerator[ClientSession]:
        """Yield a session."""
        spec = self._spec
        kwargs: Any = {**session_kwargs, **self._callbacks}
        documents = ApiDocuments(Path(spec.kept_in))
        document = await documents.read(spec.name, spec.openapi, AddressRule(*spec.rule), spec.redactor())
        options = TransportOptions(session_class=cast("Any", partial(PassingSession, spec)))
        async with api_client(spec) as client:
            server, self.definitions = await anyio.to_thread.run_sync(_build, spec, document, client)
            async with FastMCPTransport(server).connect_session(transport_options=options, **kwargs) as session:
                yield session


def _build(
    spec: ServerSpec, document: ApiDocument, client: httpx2.AsyncClient
) -> tuple[FastMCP[Any], ServerDefinitions]:
    """Return the server and its definitions; in a thread, for the imports alone take a second."""
    from fastmcp import FastMCP  # noqa: PLC0415

    from ot.proxied.openapi.tools import OperationTools  # noqa: PLC0415

    operations = Operations(document.data, spec.headers, client.params)
    tools = OperationTools(operations, client)
    known = CatalogueFiles(Path(spec.kept_in)).read(spec.identity)
    if known is None or known.server_info.get("version") != document.version:
        about = {"name": spec.name, "version": document.version}
        made, left_out = tools.definitions()
        known = ServerDefinitions(made, server_info=about, listed_at=time.time(), left_out=left_out)
    return FastMCP(spec.name, version=document.version, providers=[tools]), known

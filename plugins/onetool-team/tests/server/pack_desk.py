"""A workspace whose packs another one uses over HTTP, both in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fastmcp import FastMCP

from onetool_team.packs.pack_tools import PackTools
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.server.mcp_server import OneUser, build_server
from ot.workspace import Workspace
from proxied.desk import http_server
from run_app import paths_in, running_app

ALLOWED = {"policy": {"allow": ["*"]}}


@dataclass(frozen=True)
class PackDesk:
    """Both ends, and the server between them."""

    there: Workspace
    here: Workspace
    server: FastMCP


@asynccontextmanager
async def pack_desk(
    directory: Path,
    packs: Mapping[str, str],
    *,
    names: Sequence[str] = ("weather",),
    there: Mapping[str, Any] = ALLOWED,
    here: Mapping[str, Any] = ALLOWED,
) -> AsyncGenerator[PackDesk]:
    """Yield a desk where *packs* are used as the servers *names*; *there* and *here* are the configurations."""
    served = [*packs, *there.get("servers", {})]
    async with running_app(directory, packs, there) as offering:
        await offering.definitions_of(served)
        server = build_server(OneUser(offering), "1", offer=partial(PackTools, served))
        async with http_server(server) as (url, _):
            (directory / "here").mkdir()
            config = {**here, "servers": {name: {"url": url} for name in names}}
            using = Workspace.alone(paths_in(directory / "here", config), engine=PortableEngine())
            try:
                yield PackDesk(offering, using, server)
            finally:
                await using.aclose()

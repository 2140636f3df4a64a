"""What the tests of APIs share: documents, and doors to servers that are made of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ot.proxied.spec import ServerSpec
from proxied.desk import Door, door_to, served
from proxied.openapi.loopback_apis import KEY, Shop

HERE = Path(__file__).parent
SHOP = HERE / "shop.yaml"
DESK = HERE / "desk_api.json"


def api_spec(document: Path | str, url: str, kept_in: Path, **settings: Any) -> ServerSpec:
    """Return the spec of a server that is made of *document*."""
    return ServerSpec("api", "api", url=url, openapi=str(document), kept_in=str(kept_in), **settings)


@asynccontextmanager
async def address_of(app: Any) -> AsyncGenerator[str]:
    """Yield the origin of an app on loopback."""
    async with served(app, lifespan="off") as url:
        yield url.removesuffix("/mcp")


@asynccontextmanager
async def door_to_api(app: Any, document: Path, kept_in: Path, path: str = "", **settings: Any) -> AsyncGenerator[Door]:
    """Yield a door to the API of *document*, which is *app* on loopback."""
    async with address_of(app) as url, door_to(api_spec(document, url + path, kept_in, **settings)) as door:
        yield door


@asynccontextmanager
async def door_to_shop(shop: Shop, kept_in: Path, **settings: Any) -> AsyncGenerator[Door]:
    """Yield a door to the shop for a customer with a key."""
    settings.setdefault("headers", {"X-Shop-Key": KEY})
    async with door_to_api(shop.app, SHOP, kept_in, "/v1", **settings) as door:
        yield door


def tool_of(door: Door, name: str) -> dict[str, Any]:
    """Return the definition of the tool *name* as it was listed."""
    (found,) = [tool for tool in door.lists[-1].tools if tool["name"] == name]
    return dict(found)

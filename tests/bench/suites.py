"""A workspace with one small server for the bench, and tasks for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ot.bench.suite import BenchSuite, BenchTask
from ot.config.paths import Paths

SHOP = '''
from fastmcp import FastMCP
mcp = FastMCP("shop")

@mcp.tool(annotations={"readOnlyHint": True})
def price(item: str) -> int:
    """Return the price of an item of the shop."""
    return {"tea": 3, "salt": 1, "saffron": 90}[item]

@mcp.tool(annotations={"readOnlyHint": True})
def items() -> list[str]:
    """List the items of the shop."""
    return ["tea", "salt", "saffron"]

@mcp.tool
def buy(item: str) -> str:
    """Buy an item."""
    return f"bought {item}"

mcp.run(show_banner=False)
'''
ALL_PRICES = BenchTask(
    name="dearest",
    ask="Which item of the shop is dearest?",
    answer="saffron",
    find=("items of the shop", "price of an item"),
    calls=(
        ({"shop.items": {}},),
        ({"shop.price": {"item": "tea"}}, {"shop.price": {"item": "salt"}}, {"shop.price": {"item": "saffron"}}),
    ),
    program=("max((shop.price(item=item), item) for item in shop.items())",),
    code_mode=(
        """
found = []
for item in (await call_tool("shop_items", {}))["result"]:
    price = await call_tool("shop_price", {"item": item})
    found.append((price["result"], item))
return max(found)
""",
    ),
)
BUY = BenchTask(name="buy", ask="Buy tea.", answer="bought", calls=(({"shop.buy": {"item": "tea"}},),))
SUITE = BenchSuite(tasks=(ALL_PRICES,))


def shop(place: Path) -> Paths:
    """Write a configuration with the shop, and return where it is."""
    server, home = place / "shop.py", place / ".onetool"
    server.write_text(SHOP)
    home.mkdir()
    settings = {"servers": {"shop": {"command": sys.executable, "args": [str(server)]}}}
    (home / "onetool.yaml").write_text(json.dumps(settings | {"logs": {"level": "WARNING"}}))
    return Paths.of(place, home)

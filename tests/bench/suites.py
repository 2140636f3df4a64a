"""A workspace with one small server for the bench, and tasks for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.four_ways.suite import BenchSuite, BenchTask

from ot.config.paths import Paths

SERVER = Path(__file__).with_name("shop_server.py")
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
    home = place / ".onetool"
    home.mkdir()
    settings = {"servers": {"shop": {"command": sys.executable, "args": ["-IS", str(SERVER)]}}}
    (home / "onetool.yaml").write_text(json.dumps(settings | {"logs": {"level": "WARNING"}}))
    return Paths.of(place, home)

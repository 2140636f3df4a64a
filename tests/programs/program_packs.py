"""Two small packs for the programs: ``shop`` answers at once, ``web`` is awaited.

Run as a script it is plain CPython's side: a JSON list of programs on standard input, their answers on standard output.
It needs nothing but the standard library, so that it can run isolated.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import enum
import inspect
import io
import json
import sys
from typing import Any

CITIES = ("Berlin", "Paris", "Oslo", "Rome")
STATES = ("paid", "open", "cancelled")
PRODUCTS = ("lamp", "desk", "chair", "mug", "rug")
TEXTS = {
    "poem": "The sun is up\nthe sea is wide\n\nThe wind is low\nand so is the tide",
    "log": "\n".join(
        f"2026-03-{day:02d}T{hour:02d}:15:00Z {level} {part}: {words}"
        for day, hour, level, part, words in [
            (1, 9, "INFO", "api", "started in 120 ms"), (1, 10, "ERROR", "db", "timeout after 3000 ms"),
            (2, 7, "WARN", "api", "slow request /orders took 900 ms"),
            (2, 8, "ERROR", "api", "status 500 for /orders/7"),
            (3, 23, "INFO", "db", "vacuum took 4500 ms"), (3, 23, "ERROR", "db", "timeout after 5000 ms"),
        ]
    ),
    "sales.csv": "region,month,amount,note\nnorth,2026-01,1200.50,\"first, good\"\nsouth,2026-01,800,\n"
    "north,2026-02,950.25,ok\nsouth,2026-02,1100,\"said \"\"yes\"\"\"\neast,2026-02,,missing\n",
    "page": "<html><body><h1>News</h1><a href='/a?x=1&y=2'>One</a> <a href='https://b.example/b'>Two &amp; three</a>"
    "<p>Call 030-1234 or mail Ann@Example.org, bob@example.com</p></body></html>",
    "ini": "# settings\nname = demo\nport=8080\ndebug = true\n\n[paths]\nroot = /srv\ncache=/var/cache\n",
}  # fmt: skip


class Shop:
    """A pack with orders, customers, texts and a tool that fails now and then."""

    def __init__(self) -> None:
        self._tried: dict[str, int] = {}
        self._kept: dict[str, Any] = {}

    def orders(self, page: int = 1, size: int = 7) -> dict[str, Any]:
        found = [self.order(id=number) for number in range(1, 24)]
        last = page * size >= len(found)
        return {
            "items": found[(page - 1) * size : page * size],
            "next": None if last else page + 1,
            "total": len(found),
        }

    def order(self, id: int) -> dict[str, Any]:
        if not 1 <= id <= 23:
            raise KeyError(f"no order {id}")
        lines = [
            {
                "product": PRODUCTS[(id + step) % 5],
                "quantity": (id * (step + 2)) % 4 + 1,
                "price": 2.5 * ((id + step) % 6 + 1),
            }
            for step in range(id % 3 + 1)
        ]
        return {
            "id": id, "customer": id % 5 + 1, "state": STATES[id % 3], "city": CITIES[id % 4],
            "placed": f"2026-0{id % 3 + 1}-{id:02d}T0{id % 10}:30:00", "lines": lines,
        }  # fmt: skip

    def customer(self, id: int) -> dict[str, Any]:
        names = {1: "Ann Lee", 2: "Bob Ray", 3: "Cy Ünal", 4: "Dee O'Neil", 5: "Eve"}
        if id not in names:
            raise ValueError(f"unknown customer {id}")
        return {
            "id": id,
            "name": names[id],
            "email": f"{names[id].split()[0].lower()}@example.org" if id != 5 else None,
        }

    def text(self, name: str) -> str:
        return TEXTS[name]

    def readings(self, sensor: str) -> list[float | None]:
        start = len(sensor)
        return [None if step == 5 else round(start + ((step * 37) % 11) / 4, 2) for step in range(12)]

    def tree(self) -> dict[str, Any]:
        leaf = {"name": "c.txt", "size": 5}
        return {"name": "root", "children": [
            {"name": "a", "children": [leaf, {"name": "d", "children": [{"name": "e.py", "size": 40}]}]},
            {"name": "b.md", "size": 12}, {"name": "f", "children": []},
        ]}  # fmt: skip

    def flaky(self, key: str, fails: int = 2) -> str:
        self._tried[key] = self._tried.get(key, 0) + 1
        if self._tried[key] <= fails:
            raise ConnectionError(f"{key}: try {self._tried[key]} failed")
        return f"{key} after {self._tried[key]}"

    def keep(self, key: str, value: Any) -> int:
        self._kept[key] = value
        return len(self._kept)

    def kept(self, key: str) -> Any:
        return self._kept.get(key)


class Web:
    """A pack of coroutines."""

    async def fetch(self, url: str) -> dict[str, Any]:
        await asyncio.sleep(0.001 * (len(url) % 3))
        if "missing" in url:
            raise FileNotFoundError(f"404 {url}")
        return {"url": url, "status": 200, "body": url.rsplit("/", 1)[-1] * 3, "size": len(url)}

    async def search(self, query: str, limit: int = 3) -> list[dict[str, Any]]:
        return [{"title": f"{query} {number}", "url": f"https://x.example/{query}/{number}"} for number in range(limit)]

    async def score(self, text: str) -> float:
        return sum(map(ord, text)) % 100 / 100


def encode(value: Any) -> Any:
    """Return *value* as JSON that keeps types and the order of dicts."""
    if isinstance(value, dict):
        return ["dict", [[encode(key), encode(item)] for key, item in value.items()]]
    if isinstance(value, set | frozenset):
        return [type(value).__name__, sorted((encode(item) for item in value), key=repr)]
    if isinstance(value, list | tuple):
        return ["tuple" if isinstance(value, tuple) else "list", [encode(item) for item in value]]
    if isinstance(value, enum.Enum):
        return encode(value.value)  # it leaves a program as plain data
    return [type(value).__name__, repr(value)]


def run(source: str) -> dict[str, Any]:
    """Return what CPython makes of *source*: its value or the error's kind and text, and what it printed."""
    printed = io.StringIO()
    names: dict[str, Any] = {"__name__": "__main__", "shop": Shop(), "web": Web()}
    with contextlib.redirect_stdout(printed):
        try:
            answer = {"value": encode(_value(source, names))}
        except BaseException as error:  # noqa: BLE001 - whatever a program raises is its answer
            answer = {"error": [type(error).__name__, str(error)]}
    return {**answer, "printed": printed.getvalue()}


def _value(source: str, names: dict[str, Any]) -> Any:
    tree = ast.parse(source)
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("_value", ast.Store())], last.value), last)
    code = compile(
        ast.fix_missing_locations(tree), "<program>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, names))
    else:
        exec(code, names)
    return names.get("_value")


if __name__ == "__main__":
    sys.stdout.write(json.dumps([run(source) for source in json.load(sys.stdin)]))

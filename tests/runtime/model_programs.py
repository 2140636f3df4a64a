"""The programs that models typically write, the packs that they call, and how each of them ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ot.runtime.reply import Reply
from ot.runtime.runner import NO_VALUE_TEXT

PROGRAMS = Path(__file__).parent / "model_programs.yaml"
WITHOUT_ANSWER = ("None", NO_VALUE_TEXT)
"""What follows the prints of a program that answers by printing."""

PACKS = {
    "shop": '''
        """A small shop."""

        PRODUCTS = [
            {"id": 1, "name": "Lamp", "price": 30.0, "stock": 4, "category": "home"},
            {"id": 2, "name": "Desk", "price": 220.5, "stock": 0, "category": "office"},
            {"id": 3, "name": "Chair", "price": 99.5, "stock": 7, "category": "office"},
            {"id": 4, "name": "Mug", "price": 8.0, "stock": 25, "category": "home"},
            {"id": 5, "name": "Pen", "price": 1.5, "stock": 200, "category": "office"},
        ]
        ORDERS = [
            {"order": 101, "customer": "ann", "product": 1, "quantity": 2, "day": "2024-03-01"},
            {"order": 102, "customer": "bob", "product": 3, "quantity": 1, "day": "2024-03-02"},
            {"order": 103, "customer": "ann", "product": 5, "quantity": 10, "day": "2024-03-02"},
            {"order": 104, "customer": "eve", "product": 4, "quantity": 4, "day": "2024-03-05"},
        ]
        __all__ = ["orders", "product", "products"]


        def products(*, category: str = "", limit: int = 50) -> list[dict]:
            """List products."""
            return [p for p in PRODUCTS if category in ("", p["category"])][:limit]


        def product(*, id: int) -> dict:
            """Return one product."""
            for product in PRODUCTS:
                if product["id"] == id:
                    return product
            raise ValueError(f"no product {id}")


        def orders(*, customer: str = "") -> list[dict]:
            """List orders."""
            return [o for o in ORDERS if customer in ("", o["customer"])]
    ''',
    "web": '''
        """Pages of the web."""

        PAGES = {
            "https://a.example": "<h1>Alpha</h1><p>one two</p>",
            "https://b.example": '{"name": "beta", "tags": ["x", "y"]}',
            "https://c.example": "id,score\\n1,10\\n2,30\\n3,20\\n",
        }
        __all__ = ["fetch", "search"]


        def fetch(*, url: str, timeout: int = 10) -> str:
            """Fetch a page."""
            if url not in PAGES:
                raise ValueError(f"404: {url}")
            return PAGES[url]


        def search(*, query: str, count: int = 3) -> list[dict]:
            """Search the web."""
            return [{"title": f"{query} {n}", "url": f"https://{n}.example"} for n in range(1, count + 1)]
    ''',
    "notes": '''
        """Notes that are kept."""


        def save(*, record: dict) -> int:
            """Keep a record, and return how many fields it has."""
            return len(record)
    ''',
    "calendar": '''
        """What is planned."""


        def events(*, day: str) -> list[str]:
            """List the events of a day."""
            return ["standup", f"review of {day}"]
    ''',
}


@dataclass(frozen=True)
class ModelProgram:
    """One program, what it must give, and what is expected of the portable engine."""

    id: str
    program: str
    gives: str | None = None
    prints: str | None = None
    portable: str = ""

    @property
    def is_mistake(self) -> bool:
        """Whether CPython, with the packs at hand, would refuse it or answer otherwise."""
        return self.id.startswith("m")

    def is_answered(self, reply: Reply) -> bool:
        """Whether *reply* is what the program must give."""
        if reply.is_error:
            return False
        if self.prints is None:
            return [text for text in reply.texts if not text.startswith("note: ")] == [self.gives]
        return reply.texts[0] == self.prints and all(text in WITHOUT_ANSWER for text in reply.texts[1:])


def all_programs() -> list[ModelProgram]:
    """Return every program, the correct ones first."""
    found: dict[str, list[dict[str, Any]]] = yaml.safe_load(PROGRAMS.read_text(encoding="utf-8"))
    return [ModelProgram(**entry) for group in ("correct", "mistakes") for entry in found[group]]

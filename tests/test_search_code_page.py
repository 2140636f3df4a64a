"""The programs of the page about searching code, each played on a small project with the real packs."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from code_app import CodeApp, code_app
from docs_blocks import DOCS, blocks_of

PAGE = DOCS / "how-to/search-code.md"
FILES = {
    "shop/__init__.py": "",
    "shop/orders.py": (
        "import json\nfrom shop.web import fetch\n\n\n"
        "# TODO(ada): refund twice\ndef order(name):\n    data = fetch(\n        name,  # who\n"
        "        retry=2,\n    )\n"
        "    return json.loads(data)\n\n\n"
        "def refund(name):\n    # FIXME\n    return order(name)\n\n\ndef _unused():\n    pass\n"
    ),
    "shop/web.py": "def fetch(url, retry=1):\n    return '{}'\n\n\ndef close():\n    fetch('bye')\n",
    "tests/test_orders.py": "from shop.orders import refund\n\n\ndef test_it():  # TODO more\n    assert refund('a')\n",
    "app.js": "function fetch(url) { return fetch(url); } // TODO\n",
}
ANSWERS: list[Any] = [
    ["shop/web.py:5 close"],
    [
        {"area": ".", "owner": "nobody", "count": 1},
        {"area": "shop", "owner": "ada", "count": 1},
        {"area": "shop", "owner": "nobody", "count": 1},
        {"area": "tests", "owner": "nobody", "count": 1},
    ],
    {"shop/orders.py": 1, "shop/web.py": 1},
    {
        "written": ["shop/orders.py", "shop/web.py"],
        "left": [
            "shop/orders.py:2 from shop.web import fetch",
            "shop/web.py:1 def fetch(url, retry=1):",
        ],
    },
    [
        {"module": "json", "imported by": "shop/orders.py", "names": ""},
        {"module": "shop.orders", "imported by": "tests/test_orders.py", "names": "refund"},
        {"module": "shop.web", "imported by": "shop/orders.py", "names": "fetch"},
    ],
    [
        {"function": "order", "lines": 4, "called from": ["refund"]},
        {"function": "refund", "lines": 3, "called from": ["test_it"]},
        {"function": "_unused", "lines": 2, "called from": []},
    ],
    ["shop/orders.py:5"],
]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Generator[CodeApp]:
    with code_app(tmp_path_factory.mktemp("search_code")) as app:
        app.write(FILES)
        yield app


def test_each_program_of_the_page_answers_its_question(app: CodeApp) -> None:
    programs = [block.text for block in blocks_of(PAGE) if block.language == "python"]
    assert len(programs) == len(ANSWERS)
    for program, answer in zip(programs, ANSWERS, strict=True):
        assert app.value(program) == answer
    assert "    data = client.get(name,  # who\n        retry=2,)\n" in (app.directory / "shop/orders.py").read_text()


def test_the_page_is_short_enough_to_read() -> None:
    assert len(PAGE.read_text(encoding="utf-8").split()) < 1_500

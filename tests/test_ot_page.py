"""The outputs on the page about the ot pack are what its commands give."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from run_app import running_app

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/reference/ot-pack.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.anyio


async def test_the_page_about_the_ot_pack_shows_what_it_gives() -> None:
    script: dict[str, Any] = runpy.run_path(str(ROOT / "docs/make_ot_page.py"))
    assert len(script["COMMAND"].findall(PAGE)) >= 10
    assert await script["made"](PAGE) == PAGE, "run: python docs/make_ot_page.py"


async def test_the_page_names_every_function_of_the_pack(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        assert [name for name in app.picture.registry.pack("ot").tools if f"`ot.{name}(" not in PAGE] == []

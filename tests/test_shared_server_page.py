"""The page about the shared server: its commands, typed while a client is connected, print what it says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from console_blocks import check, typed_commands
from mcp_wire import HANDSHAKE
from shared_server.shared_house import shared_house

PAGE = Path(__file__).parents[1] / "docs/how-to/share-one-server.md"


def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    typed = typed_commands(PAGE.read_text())
    assert [entry.command for entry in typed] == ["onetool ps", "onetool stop"]
    with shared_house(tmp_path) as house:
        shop = house.home / "shop"
        shop.mkdir()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        with house.client(cwd=shop, handshake=False) as client:
            client.request("initialize", HANDSHAKE | {"clientInfo": {"name": "claude-code", "version": "1"}})
            for entry in typed:
                check(entry, shop, house.environment(PATH=path))

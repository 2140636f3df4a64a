"""The page docs/how-to/packs-on-other-hosts.md: its pack over there, its settings and its program here."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import yaml

from docs_blocks import DOCS, blocks_of
from onetool_team.packs.pack_tools import PackTools
from ot.config.sections import read_settings
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.server.mcp_server import OneUser, build_server
from ot.workspace import Workspace
from proxied.desk import http_server
from run_app import paths_in, running_app, value_of

pytestmark = pytest.mark.anyio

BLOCKS = list(blocks_of(DOCS / "how-to/packs-on-other-hosts.md"))
ADDRESS = "http://weather.internal:8000/mcp"


async def test_the_program_of_the_page_calls_the_pack_of_the_page_on_the_other_host(tmp_path: Path) -> None:
    source, program = [block.text for block in BLOCKS if block.language == "python"]
    settings, _ = [yaml.safe_load(block.text) for block in BLOCKS if block.language == "yaml"]
    (tmp_path / "here").mkdir()
    async with (
        running_app(tmp_path, {"weather": source}) as there,
        http_server(build_server(OneUser(there), "1", offer=partial(PackTools, ["weather"]))) as (url, _),
    ):
        settings["servers"]["weather"]["url"] = url
        paths = paths_in(tmp_path / "here", {**settings, "policy": {"allow": ["weather.*"]}})
        (paths.global_dir / "secrets.yaml").write_text("WEATHER_TOKEN: not-checked-here\n")
        (paths.global_dir / "secrets.yaml").chmod(0o600)
        app = Workspace.alone(paths, engine=PortableEngine())
        try:
            assert "rain in Bern" == value_of(await app.run(program))
        finally:
            await app.aclose()


def test_the_settings_of_the_page_are_valid() -> None:
    one, several = [read_settings(yaml.safe_load(block.text)) for block in BLOCKS if block.language == "yaml"]
    assert ADDRESS == one.servers["weather"].url
    assert 2 == len(several.servers["weather"].urls)

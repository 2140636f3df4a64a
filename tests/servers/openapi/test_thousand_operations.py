"""An API of 1,000 operations: found by words, called at once, and free at the start."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from ot.introspect.search import Catalogue
from ot.servers.catalogue_files import FOLDER, CatalogueFiles
from ot.servers.connection import probe
from ot.servers.openapi.operations import Operations
from ot.servers.spec import ServerSpec
from ot.workspace import Workspace
from pace import times_as_long
from run_app import paths_in, running_app, value_of
from servers.openapi.api_desk import address_of
from servers.openapi.forge import forge
from servers.openapi.loopback_apis import echoing

pytestmark = pytest.mark.anyio
MODULES = "import sys; print([name for name in sys.modules if 'openapi' in name])"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def installed(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Path]:
    """A user's directory that knows the forge, as onetool add leaves it, with the forge on loopback."""
    directory = tmp_path_factory.mktemp("forge")
    document = directory / "forge.json"
    document.write_text(json.dumps(forge()))
    async with address_of(echoing()) as url:
        server = {"openapi": str(document), "url": url, "start_seconds": 120}
        settings = {"servers": {"forge": server}, "policy": {"allow": ["forge.*"]}}
        paths = paths_in(directory, settings)
        app = Workspace.alone(paths)
        spec = _spec(app)
        CatalogueFiles(paths.global_dir / FOLDER).write(spec.identity, await probe(spec))
        await app.aclose()
        yield directory


def _spec(app: Workspace) -> ServerSpec:
    (spec,) = app._catalogue._specs.values()
    return spec


def _settings(directory: Path) -> dict[str, Any]:
    return json.loads((directory / "user" / "onetool.yaml").read_text())


async def test_all_operations_are_tools_and_the_right_ones_are_found(installed: Path):
    async with running_app(installed, config=_settings(installed)) as app:
        assert len(app.picture.registry.pack("forge").tools) == 1000
        catalogue = Catalogue(app.picture.registry, app.picture.loaded.config)
        for words, tool in {
            "create a webhook of an organization": "organizations_create_webhook",
            "delete runner repository": "repositorys_delete_runner",
            "list all pull requests of the project": "projects_list_pull_requests",
            "update milestone user": "users_update_milestone",
            "enterprise secret get": "enterprises_get_secret",
        }.items():
            assert catalogue.find(words, most={"tools": 5}).names["tools"][0] == f"forge.{tool}"


async def test_an_operation_is_called_without_making_the_others(installed: Path, monkeypatch: pytest.MonkeyPatch):
    async with running_app(installed, config=_settings(installed)) as app:
        made: list[str] = []
        monkeypatch.setattr(
            Operations, "alone", lambda self, name, alone=Operations.alone: made.append(name) or alone(self, name)
        )
        call = "forge.users_update_milestone(user='ann', id='7', name='v2', kind='public')"
        assert "PUT /users/ann/milestones/7" in value_of(await app.run(call))
        assert made == ["users_update_milestone"]


async def test_a_start_takes_no_longer_for_a_thousand_operations(installed: Path):
    (alone := installed / "alone").mkdir(exist_ok=True)

    async def started(directory: Path, config: dict[str, Any]) -> None:
        for _ in range(3):
            app = Workspace.alone(paths_in(directory, config))
            await app.aclose()

    settings = _settings(installed)
    small = {"servers": {"forge": {"url": "http://127.0.0.1:9/mcp"}}}
    assert await times_as_long(lambda: started(installed, settings), lambda: started(alone, small)) < 1.5


def test_a_run_that_calls_no_api_imports_nothing_for_apis(installed: Path):
    program = (
        "import asyncio, pathlib, sys\n"
        "from ot.config.paths import Paths\n"
        "from ot.workspace import Workspace\n"
        "async def main():\n"
        "    app = Workspace.alone(Paths.of(pathlib.Path('work'), pathlib.Path('user')))\n"
        "    print((await app.run('1 + 1')).texts)\n"
        "    await app.aclose()\n"
        "asyncio.run(main())\n"
        f"{MODULES}"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=installed, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["('2',)", "[]"]

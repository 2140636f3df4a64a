"""Operations of an API as tools, one or a thousand of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from ot.introspect.search import Catalogue
from ot.proxied.catalogue_files import FOLDER, CatalogueFiles
from ot.proxied.connection import probe
from ot.proxied.openapi.operations import REQUEST, Operations
from ot.proxied.spec import ServerSpec
from ot.workspace import Workspace
from pace import times_as_long
from proxied.openapi.api_desk import address_of
from proxied.openapi.forge import forge
from proxied.openapi.loopback_apis import echoing
from run_app import paths_in, running_app, value_of

pytestmark = pytest.mark.anyio


def document(paths: dict[str, Any], **components: Any) -> dict[str, Any]:
    return {"openapi": "3.1.0", "info": {"title": "A", "version": "1"}, "paths": paths, "components": components}


def named(path: str, method: str = "get", **operation: Any) -> str:
    (name,) = Operations(document({path: {method: operation}}))
    return name


@pytest.mark.parametrize(
    ("path", "given", "name"),
    [
        ("/pets", "listPets", "listPets"),
        ("/repos/{owner}", "repos/get-content", "repos_get_content"),
        ("/items/{item_id}", "read_item_items__item_id__get", "read_item"),
        ("/pets/{petId}/toys", "", "get_pets_petId_toys"),
        ("/a", "a__b", "a_b"),
        ("/ü", "größe", "gr_e"),
        ("/ü", "ü", "get"),
        ("/a", "x" * 80, "x" * 56),
    ],
)
def test_a_name_is_the_operations_own_as_far_as_it_says_something(path: str, given: str, name: str):
    assert named(path, operationId=given) == name


def test_two_operations_of_one_name_are_two_tools():
    paths = {
        "/a": {"get": {"operationId": "x-y"}, "post": {"operationId": "x y"}},
        "/b": {"get": {"operationId": "x_y_2"}},
    }
    found = Operations(document(paths))
    assert {name: (one.method, one.path) for name, one in found.items()} == {
        "x_y": ("get", "/a"),
        "x_y_2": ("post", "/a"),
        "x_y_2_2": ("get", "/b"),
    }


def test_an_operation_alone_carries_what_it_refers_to_and_no_more():
    pet = {"type": "object", "properties": {"name": {"type": "string"}, "x-note": {"type": "string"}}}
    components = {
        "schemas": {"Pet": pet, "Other": {"type": "string"}},
        "parameters": {"Page": {"name": "page", "in": "query", "schema": {"type": "integer"}}},
        "requestBodies": {"Pet": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}},
    }
    operation = {
        "parameters": [{"$ref": "#/components/parameters/Page"}],
        "requestBody": {"$ref": "#/components/requestBodies/Pet"},
    }
    alone = Operations(document({"/a": {"post": operation}}, **components)).alone("post_a")
    kept = alone["paths"]["/a"]["post"]
    assert alone["components"]["schemas"] == {"Pet": pet}
    assert [(part["name"], part["in"]) for part in kept["parameters"]] == [("page", "query")]
    assert kept["requestBody"]["content"] == {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}


def test_own_parameters_stand_in_for_those_of_the_path():
    shared = [{"name": "id", "in": "path", "schema": {"type": "string"}}]
    own = [{"name": "id", "in": "path", "schema": {"type": "integer"}}]
    found = Operations(document({"/a/{id}": {"parameters": shared, "get": {"parameters": own}}}))
    (parameter,) = found.alone("get_a_id")["paths"]["/a/{id}"]["get"]["parameters"]
    assert (parameter["schema"], parameter["required"]) == ({"type": "integer"}, True)


def test_references_to_other_places_of_the_document_are_written_out():
    paths = {
        "/a~b": {
            "get": {
                "parameters": [{"name": "q", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}}]
            }
        },
        "/c": {
            "get": {
                "parameters": [
                    {"name": "q", "in": "query", "schema": {"$ref": "#/paths/~1a~0b/get/parameters/0/schema"}}
                ]
            }
        },
    }
    (parameter,) = Operations(document(paths)).alone("get_c")["paths"]["/c"]["get"]["parameters"]
    assert parameter["schema"] == {"type": "array", "items": {"type": "string"}}


def test_a_circle_of_references_ends():
    circle = {"a": {"$ref": "#/components/headers/b"}, "b": {"$ref": "#/components/headers/a"}}
    paths = {
        "/a": {"get": {"parameters": [{"name": "q", "in": "query", "schema": {"$ref": "#/components/headers/a"}}]}}
    }
    alone = Operations(document(paths, headers=circle)).alone("get_a")
    assert alone["paths"]["/a"]["get"]["parameters"][0]["schema"] == {}


@pytest.mark.parametrize(
    ("pointer", "words"),
    [
        ("pets.yaml#/Pet", "which is another document: put everything into one file"),
        ("#/components/schemas/Gone", "which does not exist"),
    ],
)
def test_what_cannot_be_followed_is_named(pointer: str, words: str):
    content = {"application/json": {"schema": {"$ref": pointer}}}
    found = Operations(document({"/a": {"post": {"requestBody": {"content": content}}}}))
    with pytest.raises(ValueError, match=f"it refers to {pointer}, {words}"):
        found.alone("post_a")


def test_where_all_schemas_lead_to_all_each_operation_stays_small():
    found = Operations(forge())
    assert len(found) == 1000
    alone = found.alone("organizations_create_repository")
    schemas = alone["components"]["schemas"]
    assert schemas["repository"]["properties"]["branch"] == {"$ref": "#/components/schemas/branch"}
    assert {} in schemas.values()
    assert len(schemas) == REQUEST[1] + 1
    assert max(len(json.dumps(found.alone(name))) for name in list(found)[:50]) < 4000


def test_what_an_answer_says_is_left_out_but_not_how_it_looks():
    pet = {
        "type": "object",
        "description": "Long",
        "properties": {"description": {"type": "string", "description": "Long"}},
    }
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}
    paths = {"/a": {"get": {"responses": {"200": {"description": "ok", "content": content}}}}}
    alone = Operations(document(paths, schemas={"Pet": pet})).alone("get_a")
    assert alone["components"]["schemas"]["Pet"] == {
        "type": "object",
        "properties": {"description": {"type": "string"}},
    }


FORKS = {f"c{n}": {"properties": {key: {"$ref": f"#/components/odd/c{n + 1}"} for key in "pq"}} for n in range(20)}


@pytest.mark.parametrize(
    "odd",
    [
        {**FORKS, "c20": {"type": "string"}},
        {"c0": {"allOf": [{"$ref": "#/components/odd/c0"}] * 2}},
        {"c0": {"properties": {"all": {"$ref": "#/components"}, "again": {"$ref": "#/components"}}}},
    ],
)
def test_references_that_grow_without_end_are_not_written_out(odd: dict[str, Any]):
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/odd/c0"}}}}
    paths = {"/a": {"post": {"operationId": "a", "requestBody": body}}, "/b": {"get": {"operationId": "b"}}}
    found = Operations(document(paths, odd=odd))
    with pytest.raises(ValueError, match="more than 50,000 values once its references are written out"):
        found.alone("a")
    assert found.alone("b")


def test_a_name_that_all_operations_have_is_numbered_without_trying_every_number():
    found = Operations(document({f"/{n}": {"get": {"operationId": "same"}} for n in range(20_000)}))
    assert len(found) == 20_000 and "same_20000" in found


def test_references_in_a_circle_lead_nowhere():
    circle = {"A": {"$ref": "#/components/parameters/B"}, "B": {"$ref": "#/components/parameters/A"}}
    read = {"operationId": "read", "parameters": [{"$ref": "#/components/parameters/A"}]}
    found = Operations(document({"/a": {"get": read}, "/b": {"$ref": "#/paths/~1b"}}, parameters=circle))
    assert list(found) == ["read"] and found.alone("read")


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

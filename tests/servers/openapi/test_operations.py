"""The operations of a document: their names, and the document of each alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ot.servers.openapi.operations import REQUEST, Operations
from servers.openapi.forge import forge


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
        ("#/components/schemas/Gone", "which is not there"),
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

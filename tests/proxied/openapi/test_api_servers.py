"""Servers that are made of an OpenAPI document, before real APIs on loopback."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from fastmcp.server.http import _current_http_request  # pyright: ignore[reportPrivateUsage] - what the HTTP face sets
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from free_ports import free_port
from ot.errors import LoginNeeded, ServerUnavailable, ToolFailed, UnknownTool
from ot.introspect.help import HelpPages
from ot.proxied.auth.account import ServerAccount
from ot.proxied.catalogue_files import CatalogueFiles
from ot.proxied.proxied_pack import make_proxied_pack
from ot.registry.proxy_target import ServerIdentity
from ot.registry.tool_registry import ToolRegistry
from proxied.desk import door_to
from proxied.openapi.api_desk import DESK, SHOP, address_of, api_spec, door_to_api, door_to_shop, tool_of
from proxied.openapi.loopback_apis import KEY, HelpDesk, Shop

pytestmark = pytest.mark.anyio
API = ServerIdentity("api", "1" * 64)


async def test_parameters_go_where_the_document_says(tmp_path: Path):
    async with door_to_shop(Shop(), tmp_path) as door:
        pets = await door.call("listPets", **{"kind": "no", "tag": ["a", "b"], "ids": [1, 2], "X-Trace": "t1"})
        query = [["kind", "no"], ["tag", "a"], ["tag", "b"], ["ids", "1,2"]]
        assert pets == [{"id": 1, "name": "Tom", "kind": "cat"}, {"query": query, "trace": "t1"}]


async def test_a_body_is_sent_as_json_and_its_answer_is_the_value(tmp_path: Path):
    shop = Shop()
    async with door_to_shop(shop, tmp_path) as door:
        added = await door.call("addPet", name="Rex", kind="dog", owner={"name": "Ann", "friends": []})
        assert added == {"id": 2, "name": "Rex", "kind": "dog", "owner": {"name": "Ann", "friends": []}}
        assert await door.call("getPet", petId=2) == added
        assert await door.call("removePet", petId=2) == ""
        assert list(shop.pets) == [1]


async def test_a_null_in_a_body_clears_a_field_and_is_not_left_out(tmp_path: Path):
    shop = Shop()
    async with door_to_shop(shop, tmp_path) as door:
        await door.call("changePet", petId=1, name=None)
        assert shop.pets[1] == {"id": 1, "name": None, "kind": "cat"}


async def test_a_form_is_sent_as_a_form(tmp_path: Path):
    async with door_to_shop(Shop(), tmp_path) as door:
        assert await door.call("search_pets", q="a b", exact=True) == "q=a+b&exact=true"


async def test_definitions_say_what_the_document_says(tmp_path: Path):
    async with door_to_shop(Shop(), tmp_path) as door:
        await door.call("listPets")
        listed, changed, removed = (tool_of(door, name) for name in ("listPets", "changePet", "removePet"))
        assert listed["annotations"] == {"readOnlyHint": True, "idempotentHint": True}
        assert removed["annotations"] == {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True}
        assert changed["annotations"] == {"readOnlyHint": False}
        assert listed["description"] == "List pets\n\nGET /pets"
        assert listed["inputSchema"]["properties"]["ids"] == {"type": "array", "items": {"type": "integer"}}
        assert listed["inputSchema"]["properties"]["kind"]["enum"] == ["cat", "dog", "no"]
        assert changed["inputSchema"]["properties"]["name"]["type"] == ["string", "null"]
        assert changed["inputSchema"]["required"] == ["petId"]
        assert tool_of(door, "oldPets")["description"] == "Deprecated.\n\nGET /old/pets"
        assert tool_of(door, "addPet")["inputSchema"]["required"] == ["name"]
        assert tool_of(door, "get_pets_petId_photo")["inputSchema"]["required"] == ["petId"]


async def test_documents_that_frameworks_write_give_plain_names_and_values(tmp_path: Path):
    desk = HelpDesk()
    async with door_to_api(desk.app, DESK, tmp_path) as door:
        assert await door.call("read_ticket", ticket_id=3, verbose=True) == {"id": 3, "verbose": "true"}
        assert await door.call("get_health") == "all well"
        assert await door.call("reply", ticket_id=3, body={"close": True}) == ["list", "instead"]
        assert desk.bodies == [{"close": True}]
        assert {tool["name"] for tool in door.lists[-1].tools} == {"read_ticket", "open_ticket", "reply", "get_health"}
        assert tool_of(door, "open_ticket")["inputSchema"]["properties"]["assignee"]["type"] == ["string", "null"]


async def test_a_redirect_at_the_same_place_is_followed(tmp_path: Path):
    async with door_to_api(HelpDesk().app, DESK, tmp_path) as door:
        assert await door.call("open_ticket", title="Help") == {"id": 7, "verbose": None}


async def test_a_redirect_to_another_place_is_not_followed_and_takes_no_credentials_along(tmp_path: Path):
    shop, other = Shop(), Shop()
    async with address_of(other.app) as elsewhere, door_to_shop(shop, tmp_path) as door:
        shop.answers = [RedirectResponse(f"{elsewhere}/v1/pets?steal=1", 307)]
        with pytest.raises(ToolFailed, match=f"it redirects to {elsewhere}, and nothing is sent there") as failure:
            await door.call("listPets")
        assert "set the url of the server api" in str(failure.value)
        assert other.seen == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            JSONResponse({"error": {"message": "No kind x"}}, 400),
            "HTTP 400 Bad Request: No kind x (check the arguments)",
        ),
        (JSONResponse({"title": "Forbidden", "detail": "Not yours"}, 403), "HTTP 403 Forbidden: Not yours; Forbidden"),
        (JSONResponse({}, 429, {"retry-after": "17"}), "(wait 17 s before you ask again)"),
        (JSONResponse({}, 429, {"retry-after": "\xb2"}), "(wait a while before you ask again)"),
        (Response("<h1>Oh</h1>", 503, media_type="text/html"), "HTTP 503 Service Unavailable (the API failed"),
        (Response("plain words", 500, media_type="text/plain"), "Internal Server Error: plain words"),
    ],
)
async def test_a_refusal_says_status_reason_and_what_to_do(tmp_path: Path, answer: Response, words: str):
    shop = Shop()
    async with door_to_shop(shop, tmp_path) as door:
        shop.answers = [answer]
        with pytest.raises(ToolFailed) as failure:
            await door.call("listPets")
        assert words in str(failure.value)
        assert "GET /v1/pets" in str(failure.value)


async def test_a_refusal_of_arguments_names_them(tmp_path: Path):
    async with door_to_api(HelpDesk().app, DESK, tmp_path) as door:
        with pytest.raises(ToolFailed, match=r"HTTP 422 .*: path\.ticket_id: Input should be greater than 0"):
            await door.call("read_ticket", ticket_id=0)


async def test_wrong_credentials_name_the_setting_and_are_not_in_the_error(tmp_path: Path):
    async with door_to_shop(Shop(), tmp_path, headers={"X-Shop-Key": "wrong-key-123"}) as door:
        with pytest.raises(ToolFailed, match=r"Unknown key \(check the headers of the server api\)") as failure:
            await door.call("listPets")
        assert "wrong-key-123" not in str(failure.value)


async def test_a_login_that_is_missing_is_asked_for_like_that_of_any_server(tmp_path: Path):
    async with address_of(Shop().app) as url:
        account = ServerAccount(server="api", url=url, principal="me", directory=tmp_path)
        async with door_to(api_spec(SHOP, f"{url}/v1", tmp_path, account=account)) as door:
            with pytest.raises(LoginNeeded, match="onetool auth login api"):
                await door.call("listPets")


async def test_an_effect_that_may_have_happened_is_not_repeated_and_said_to_be_unknown(tmp_path: Path):
    shop = Shop()
    async with door_to_shop(shop, tmp_path) as door:
        shop.answers = [JSONResponse({}, 502)]
        with pytest.raises(ToolFailed, match="it may have happened all the same: check before you repeat it"):
            await door.call("addPet", name="Rex")
        assert len(shop.seen) == 1


async def test_an_api_that_breaks_off_is_asked_once(tmp_path: Path):
    asked: list[bytes] = []

    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{")
        writer.close()

    server = await asyncio.start_server(broken, "127.0.0.1", port := free_port())
    async with server, door_to(api_spec(SHOP, f"http://127.0.0.1:{port}/v1", tmp_path)) as door:
        with pytest.raises(ToolFailed, match=r"the connection was lost: .*; it may have happened"):
            await door.call("addPet", name="Rex")
    assert len(asked) == 1


async def test_an_api_that_is_not_there_leaves_the_effect_undone(tmp_path: Path):
    async with door_to(api_spec(SHOP, f"http://127.0.0.1:{free_port()}/v1", tmp_path)) as door:
        with pytest.raises(ToolFailed, match=r"POST /v1/pets: no connection to 127\.0\.0\.1:\d+: .*; nothing was sent"):
            await door.call("addPet", name="Rex")


async def test_an_answer_that_is_too_slow_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ot.proxied.openapi.api_client.READ_SECONDS", 0.05)
    monkeypatch.setattr("ot.proxied.openapi.api_client.GRACE_SECONDS", 0.05)
    stalled: list[Any] = []

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stalled.append(writer)

    server = await asyncio.start_server(mute, "127.0.0.1", port := free_port())
    async with server, door_to(api_spec(SHOP, f"http://127.0.0.1:{port}/v1", tmp_path)) as door:
        with pytest.raises(ToolFailed, match=r"GET /v1/pets: no answer in time$"):
            await door.call("listPets")
        stalled[0].close()


async def test_what_is_not_text_is_refused_in_words(tmp_path: Path):
    async with door_to_shop(Shop(), tmp_path) as door:
        with pytest.raises(ToolFailed, match=r"it answered with image/png \(8 bytes\), which is neither text nor JSON"):
            await door.call("get_pets_petId_photo", petId=1)


async def test_headers_of_whoever_called_onetool_stay_here(tmp_path: Path):
    shop = Shop()
    scope = {"type": "http", "headers": [(b"x-caller", b"private"), (b"x-shop-key", b"theirs")]}
    async with door_to_shop(shop, tmp_path) as door:
        token = _current_http_request.set(Request(scope))
        await door.call("listPets")
        _current_http_request.reset(token)
        assert "x-caller" not in shop.headers[-1]
        assert shop.headers[-1]["x-shop-key"] == KEY


async def test_what_the_query_of_the_address_holds_goes_with_every_request(tmp_path: Path):
    shop = Shop()
    async with address_of(shop.app) as url:
        spec = api_spec(SHOP, f"{url}/v1?api_key=q-1234", tmp_path, headers={"X-Shop-Key": KEY})
        async with door_to(spec) as door:
            await door.call("listPets", kind="cat")
    assert shop.seen == [("GET", "/v1/pets?api_key=q-1234&kind=cat")]


async def test_an_operation_that_cannot_be_read_is_left_out_and_the_others_are_tools(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    body = {"type": "object", "properties": {"a": {"type": "string"}}, "required": []}
    bad = [{"name": "q", "in": "query", "schema": {"type": "object", "required": "yes"}}]
    paths = {
        "/items": {
            "get": {"operationId": "listItems", "responses": {}},
            "post": {"operationId": "addItem", "requestBody": {"content": {"application/json": {"schema": body}}}},
        },
        "/bad": {"get": {"operationId": "bad", "parameters": bad}},
        "/gone": {"$ref": "#/components/pathItems/Gone"},
    }
    document = tmp_path / "api.json"
    document.write_text(json.dumps({"openapi": "3.0.3", "info": {"title": "A", "version": "1"}, "paths": paths}))
    async with door_to(api_spec(document, "http://127.0.0.1:9", tmp_path)) as door:
        with pytest.raises(ToolFailed, match="no connection"):
            await door.call("listItems")
        found = door.lists[-1]
        assert [tool["name"] for tool in found.tools] == ["listItems", "addItem"]
        assert found.left_out == {
            "/gone": "it refers to #/components/pathItems/Gone, which does not exist",
            "bad": "the document is malformed at GET /bad: parameters.0.schema.required: Input should be a valid list",
        }
    assert "validation error" not in capfd.readouterr().err.lower()
    files = CatalogueFiles(tmp_path)
    files.write(API, found)
    kept = files.read(API)
    assert kept == found
    registry = ToolRegistry([make_proxied_pack(API, "api", kept)])
    with pytest.raises(UnknownTool, match="It is left out: the document is malformed at GET /bad"):
        registry.tool("api", "bad")
    page = HelpPages({}, "").pack(registry.pack("api"))
    assert "Left out, 2 in all:\n- /gone: it refers to" in page
    assert "- bad: the document is malformed at GET /bad: parameters.0.schema.required" in page


async def test_a_document_without_any_operation_that_can_be_read_says_what_is_wrong(tmp_path: Path):
    document = tmp_path / "api.yaml"
    path = "paths: {/a: {get: {parameters: [{$ref: '#/components/parameters/Gone'}], responses: {}}}}"
    document.write_text(f"openapi: 3.0.0\ninfo: {{title: A, version: '1'}}\n{path}\n")
    async with door_to(api_spec(document, "http://127.0.0.1:9", tmp_path)) as door:
        with pytest.raises(ServerUnavailable, match="malformed at GET /a: it refers to #/components/parameters/Gone"):
            await door.call("get_a")


class Echo:
    """An API that answers whatever it is asked with the request, and hands out a cookie."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, str]]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        path = scope["raw_path"].decode() + (f"?{request.url.query}" if request.url.query else "")
        self.seen.append((path, dict(request.headers)))
        await JSONResponse({"ok": True}, headers={"set-cookie": "session=of-this-call"})(scope, receive, send)


def written_document(directory: Path, paths: dict[str, Any]) -> Path:
    file = directory / "api.json"
    file.write_text(json.dumps({"openapi": "3.1.0", "info": {"title": "A", "version": "1"}, "paths": paths}))
    return file


def parameter(name: str, place: str = "header") -> dict[str, Any]:
    return {"name": name, "in": place, "required": True, "schema": {"type": "string"}}


OURS = (
    *("Host", "authorization", "Cookie", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade"),
    *("x_shop_key", "X-Shop-Key "),
)


async def test_no_parameter_of_a_document_replaces_what_we_send(tmp_path: Path):
    kept = ("X-Trace", "X-Shop", "Accept")
    parameters = [*map(parameter, (*OURS, *kept)), parameter("session", "cookie"), parameter("api_key", "query")]
    document = written_document(tmp_path, {"/a": {"get": {"operationId": "read", "parameters": parameters}}})
    echo, own = Echo(), {"X-Shop-Key": KEY, "Authorization": "Bearer ours", "Cookie": "own=1"}
    async with address_of(echo) as url:
        async with door_to(api_spec(document, f"{url}/v1?api_key=ours", tmp_path, headers=own)) as door:
            given = dict.fromkeys(kept, "theirs")
            await door.call("read", **given)
            assert set(tool_of(door, "read")["inputSchema"]["properties"]) == set(kept)
            await door.call("read", **given, **dict.fromkeys((*OURS, "session", "api_key"), "theirs"))
        for path, headers in echo.seen:
            assert (path, headers["host"]) == ("/v1/a?api_key=ours", url.removeprefix("http://"))
            assert (headers["authorization"], headers["cookie"], headers["x-shop-key"]) == ("Bearer ours", "own=1", KEY)
            assert {name for name, value in headers.items() if value == "theirs"} == {name.lower() for name in kept}
        assert len(echo.seen) == 2


async def test_an_api_is_not_shown_what_it_gave_to_another_call(tmp_path: Path):
    document = written_document(tmp_path, {"/a": {"get": {"operationId": "read"}}})
    echo = Echo()
    async with door_to_api(echo, document, tmp_path) as door:
        await door.call("read")
        await door.call("read")
    assert [headers.get("cookie") for _, headers in echo.seen] == [None, None]


UP = ("/../../up", "/a/../../up", "/%2e%2e/%2E%2e/up", "/..%2fup", "/%252e%252e%252fup", "/..\\up", "/a/..")


async def test_no_path_of_a_document_leads_out_of_the_address_of_the_api(tmp_path: Path):
    paths: dict[str, Any] = {path: {"get": {"operationId": f"up{n}"}} for n, path in enumerate(UP)}
    odd = {"/..{a}/up": "dots", "//evil.example/x": "host", "/@evil.example/x": "user", "/a/v1..v2": "range"}
    for path, name in odd.items():
        parameters = [parameter("a", "path")] if "{" in path else []
        paths[path] = {"get": {"operationId": name, "parameters": parameters}}
    echo = Echo()
    async with door_to_api(echo, written_document(tmp_path, paths), tmp_path, "/base/v1") as door:
        for name in ("host", "user", "range"):
            await door.call(name)
        with pytest.raises(ToolFailed, match="leads out of the address of the API; nothing was sent"):
            await door.call("dots", a="")
        assert door.lists[-1].left_out == dict.fromkeys(UP, "its path leads out of the address of the API")
    assert [path for path, _ in echo.seen] == [
        "/base/v1/evil.example/x",
        "/base/v1/@evil.example/x",
        "/base/v1/a/v1..v2",
    ]


@pytest.mark.parametrize("given", ["..", "../../up", "%2e%2e", "..%2f..%2fup", "%252e%252e", "..\\up", "a/../../up"])
async def test_no_argument_leads_out_of_the_address_of_the_api_and_its_refusal_is_one_sentence(
    given: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    operation = {"operationId": "read", "parameters": [parameter("id", "path")]}
    echo = Echo()
    async with door_to_api(echo, written_document(tmp_path, {"/a/{id}": {"get": operation}}), tmp_path, "/v1") as door:
        with pytest.raises(ToolFailed, match=r"GET /a/\{id\}: .*; nothing was sent$"):
            await door.call("read", id=given)
        assert await door.call("read", id="v1..v2/x") == {"ok": True}
    assert [path for path, _ in echo.seen] == ["/v1/a/v1%2E%2Ev2%2Fx"]
    assert "Traceback" not in capfd.readouterr().err + caplog.text


async def test_an_answer_that_is_not_text_in_its_encoding_is_a_plain_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    shop = Shop()
    async with door_to_shop(shop, tmp_path) as door:
        shop.answers = [Response(b'{"a": "\xff\xfe"}', media_type="application/json")]
        with pytest.raises(ToolFailed, match="GET /pets: its answer is malformed: 'utf-8' codec"):
            await door.call("listPets")
    assert "Traceback" not in capfd.readouterr().err + caplog.text

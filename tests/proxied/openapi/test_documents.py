"""OpenAPI documents: what can be read, what is refused in words, and what is kept."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from free_ports import free_port
from ot.proxied.openapi.document_text import base_address, parse_document
from ot.proxied.openapi.documents import FRESH_SECONDS, ApiDocuments, fetch_document
from proxied.openapi.api_desk import address_of

pytestmark = pytest.mark.anyio
SMALL: dict[str, Any] = {"openapi": "3.1.0", "info": {"title": "A", "version": "1"}, "paths": {"/a": {"get": {}}}}
PAIRS = zip("abcdefg", "bcdefgh", strict=True)
ALIASES = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(f"{new}: &{new} [{f'*{old},' * 10}]\n" for old, new in PAIRS)
"""Ten million values in some lines."""


class Shelf:
    """An address that gives a document, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.status = 200
        self.document = SMALL
        self.headers: list[dict[str, str]] = []
        self.app = Starlette(routes=[Route("/openapi.json", self._answer)])

    async def _answer(self, request: Request) -> Response:
        self.asked += 1
        self.headers.append(dict(request.headers))
        return Response(json.dumps(self.document), self.status)


def files_in(directory: Path) -> list[Path]:
    return list(directory.glob("*.openapi.json"))


def test_yaml_is_read_as_json_would_say_it():
    text = "openapi: 3.0.3\npaths: {/a: {get: {responses: {200: {d: 2024-05-01, e: [no, 12:30, true, 1.5, ~]}}}}}\n"
    found = parse_document(text.encode())
    assert found["paths"]["/a"]["get"]["responses"] == {
        "200": {"d": "2024-05-01", "e": ["no", "12:30", True, 1.5, None]}
    }
    assert found["openapi"] == "3.0.3"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"openapi": ', "malformed JSON: .* line 1 column"),
        ("a: [1\nb: }", "malformed YAML: .*line 2"),
        ("\xff".encode("latin-1"), "malformed YAML|no text in UTF-8"),
        ("swagger: '2.0'\npaths: {}", "is Swagger 2.0; OpenAPI 3.0 or 3.1 is required: convert it first"),
        ("openapi: 4.0.0", "it says 'openapi: 4.0.0'; versions 3.0 and 3.1 are supported"),
        ("<html></html>", "has no 'openapi: 3...' at its top"),
        ("openapi: 3.0.0\npaths: {}", "describes no operations"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_what_cannot_be_used_says_why(text: str | bytes, words: str):
    with pytest.raises(ValueError, match=words):
        parse_document(text if isinstance(text, bytes) else text.encode())


def test_aliases_that_grow_without_end_are_not_written_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ot.proxied.openapi.document_text.MAX_VALUES", 10_000)
    with pytest.raises(ValueError, match="too large or nested too deeply once its aliases are written out"):
        parse_document(ALIASES.encode())


@pytest.mark.parametrize(
    ("servers", "source", "address"),
    [
        ([{"url": "https://api.a.example/v1/"}], "/x.yaml", "https://api.a.example/v1"),
        ([{"url": "https://{r}.a.example", "variables": {"r": {"default": "eu"}}}], "/x.yaml", "https://eu.a.example"),
        ([{"url": "/v2"}], "https://a.example/docs/openapi.json", "https://a.example/v2"),
        ([], "https://a.example/openapi.json", "https://a.example"),
        ([{"url": "/v2"}], "/x.yaml", ""),
        ("wrong", "/x.yaml", ""),
        ([{"url": "https://good.example@evil.example/v1"}], "/x.yaml", ""),
    ],
)
def test_the_address_of_the_api_is_what_the_document_says(servers: Any, source: str, address: str):
    assert base_address({**SMALL, "servers": servers}, source) == address


async def test_a_document_from_an_address_is_kept_and_a_later_start_needs_no_network(tmp_path: Path):
    shelf = Shelf()
    async with address_of(shelf.app) as url:
        first = await ApiDocuments(tmp_path).read("api", f"{url}/openapi.json")
    again = await ApiDocuments(tmp_path).read("api", f"{url}/openapi.json")
    assert (again.data, again.version) == (first.data, first.version)
    assert shelf.asked == 1
    assert [file.stat().st_mode & 0o777 for file in files_in(tmp_path)] == [0o600]


async def test_a_kept_document_is_fetched_again_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shelf = Shelf()
    async with address_of(shelf.app) as url:
        source = f"{url}/openapi.json"
        first = await ApiDocuments(tmp_path).read("api", source)
        later = time.time() + FRESH_SECONDS + 1
        monkeypatch.setattr("time.time", lambda: later)
        shelf.document = {**SMALL, "paths": {"/b": {"get": {}}}}
        second = await ApiDocuments(tmp_path).read("api", source)
        assert (list(second.data["paths"]), second.version == first.version) == (["/b"], False)
        shelf.status = 500
        monkeypatch.setattr("ot.proxied.openapi.documents.FRESH_SECONDS", 0.0)
        assert (await ApiDocuments(tmp_path).read("api", source)).version == second.version
        assert shelf.asked == 3


async def test_a_file_that_changed_is_read_again(tmp_path: Path):
    file = tmp_path / "api.json"
    file.write_text(json.dumps(SMALL))
    first = await ApiDocuments(tmp_path).read("api", str(file))
    assert (await ApiDocuments(tmp_path).read("api", str(file))).version == first.version
    file.write_text(json.dumps({**SMALL, "paths": {"/b": {"get": {}}}}))
    assert list((await ApiDocuments(tmp_path).read("api", str(file))).data["paths"]) == ["/b"]


async def test_what_is_unavailable_says_what_to_do(tmp_path: Path):
    shelf = Shelf()
    shelf.status = 401
    async with address_of(shelf.app) as url:
        with pytest.raises(ValueError, match=r"HTTP 401 from .*; save it to a file and add that"):
            await fetch_document(f"{url}/openapi.json")
    with pytest.raises(ValueError, match=r"its document is unavailable: http://127\.0\.0\.1"):
        await fetch_document(f"http://127.0.0.1:{free_port()}/openapi.json")
    with pytest.raises(ValueError, match=f"there is no file {tmp_path}/gone.yaml"):
        await fetch_document(f"{tmp_path}/gone.yaml")


async def test_a_document_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ot.proxied.openapi.documents.MAX_BYTES", 20)
    (tmp_path / "api.json").write_text(json.dumps(SMALL))
    with pytest.raises(ValueError, match="is larger than"):
        await fetch_document(f"{tmp_path}/api.json")
    async with address_of(Shelf().app) as url:
        with pytest.raises(ValueError, match="its document is larger than"):
            await fetch_document(f"{url}/openapi.json")

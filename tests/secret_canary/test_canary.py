"""One secret in every place of every kind of reply: none reaches a program, a client, a log or a file."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import sys
import time
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from callers import ME
from ot.config.principal import os_user
from ot.errors import ToolError
from ot.execution.call_context import CallContext
from ot.execution.caller import Answer, Question
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.token_record import TokenRecord
from ot.proxied.auth.token_store import TokenStore
from ot.proxied.spec import ServerSpec
from ot_sdk.redaction import Redactor, redact_block, redact_value
from proxied.desk import Door, door_to
from proxied.raw_http_server import EVENTS, JSON, RawHttpServer, Reply, as_event, raw_server
from secret_canary.canary_cases import cases, leaked, secrets
from secret_canary.ordinary_data import pieces
from workers.door import Door as WorkerDoor
from workers.door import extension

pytestmark = pytest.mark.anyio

CASES = {case["id"]: case for case in cases() if case["caught"]}
SERVERS = [id for id, case in CASES.items() if case["source"] in ("mcp", "login") and "response" not in case["reply"]]
APIS = [id for id, case in CASES.items() if "response" in case["reply"] and case["reply_to"] != "token endpoint"]
REFRESHES = [id for id, case in CASES.items() if case["reply_to"] == "token endpoint"]
STDIO = [id for id in SERVERS if {"raw_line", "stderr"} & CASES[id]["reply"].keys()]
SILENT = {
    *("mcp.block_meta", "mcp.annotations_extra", "mcp.invalid_result"),
    *("mcp.http_500", "mcp.http_401_header", "mcp.http_redirect"),
    *("api.response_header", "api.link_header", "api.error_500_html", "api.redirect"),
    *("login.www_authenticate", "login.refresh_error", "worker.raise_local", "worker.log_extra"),
}
"""Places of which nothing is passed on to anybody: what stands there is not seen without a redaction either."""
LINES = """
import json, os, sys
reply = json.loads(os.environ["REPLY"])
for line in sys.stdin:
    message = json.loads(line)
    method, answer = message.get("method"), None
    if method == "initialize":
        answer = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/call":
        sys.stderr.write(reply.get("stderr", ""))
        sys.stderr.flush()
        if reply.get("exit"):
            os._exit(reply["exit"])
        print(reply.get("raw_line", ""), flush=True)
        answer = reply["then_result"]
    if "id" in message:
        said = {"result": answer} if answer else {"error": {"code": -32601, "message": "unknown"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
"""


@dataclass(frozen=True)
class RawReply(Reply):
    """A reply whose body is bytes."""

    data: bytes = b""

    def wire(self, right: str) -> bytes:
        return Reply.wire(self, "x" * len(self.data)).partition(b"\r\n\r\n")[0] + b"\r\n\r\n" + self.data


class Seen:
    """Everything that came of one call, for a program, a client, the log and the files."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        self._parts: list[Any] = []

    @property
    def parts(self) -> list[Any]:
        logged = [record.getMessage() for record in self._caplog.records if record.name.startswith("ot")]
        return [*self._parts, logged]

    async def call(self, door: Door, case: Mapping[str, Any]) -> None:
        """Make the call of *case* and keep what comes of it."""
        method = case["reply_to"] if case["reply_to"] in ("resources/list", "resources/templates/list") else ""
        try:
            value = await (door.method("resources/list") if method else door.call("buy", what="x"))
            self._parts += [value, repr(value)]
        except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at
            self._parts += [error, str(error)]
        self._parts += [door.told, [vars(found) for found in door.lists]]
        self._parts += [dict(state) for state in door.pool.states().values()]


@pytest.fixture
def seen(caplog: pytest.LogCaptureFixture) -> Seen:
    for name in ("ot", "ot_tools"):
        caplog.set_level(logging.DEBUG, name)
    return Seen(caplog)


def given_to(case: Mapping[str, Any], url: str, kept_in: Path) -> dict[str, Any]:
    """Return the settings of a server that was given the secret of *case* as it says, and its address."""
    name, value = case["secret"], case["value"]
    match case["given"]:
        case "header_literal" | "mcp_header_literal":
            return {"url": url, "headers": {"Authorization": f"Bearer {value}"}}
        case "address_userinfo":
            return {"url": url.replace("://", f"://me:{quote(value, safe='')}@")}
        case "address" | "address_query":
            secrets = {} if case["given"] == "address_query" else {"secrets": ((name, value),)}
            return {"url": f"{url}?api_key={quote(value, safe='')}", **secrets}
        case "access_token" | "access_token_after_refresh":
            account = ServerAccount("web", url, os_user(), kept_in)
            TokenStore(account).write(TokenRecord(value, time.time()))
            return {"url": url, "account": account}
        case _:
            return {"url": url, "secrets": ((name, value),)}


def answer_of(case: Mapping[str, Any]) -> Reply:
    """Return how the server answers the call of *case*."""
    reply = case["reply"]
    if http := reply.get("http"):
        kind = http["headers"].get("content-type", "")
        headers = {name: text for name, text in http["headers"].items() if name != "content-type"}
        return Reply(http["body"], http["status"], kind, headers)
    said = {"error": reply["error"]} if "error" in reply else {"result": reply.get("result") or case["then_result"]}
    if case.get("wire"):
        said = {next(iter(said)): "@@WIRE@@"}
    text = json.dumps({"jsonrpc": "2.0", "id": "@@ID@@", **said}, ensure_ascii=False)
    text = text.replace('"@@WIRE@@"', case.get("wire", ""))
    if case.get("delivery") == "after_1_mb":
        text = text.replace("using token", "ordinary words " * 66_667 + "using token")
    first = [{"jsonrpc": "2.0", **reply["notify"]}] if "notify" in reply else []
    first += [{"jsonrpc": "2.0", "id": 77, **reply["request"]}] if "request" in reply else []
    if first:
        return Reply("".join(as_event(json.dumps(message)) for message in first) + as_event(text), kind=EVENTS)
    return Reply(text, drip=len(text) // 2 if case.get("delivery") else 0)


class CanaryServer(RawHttpServer):
    """Answers with the reply of one case."""

    case: Mapping[str, Any]

    def _reply(self, seen: Any) -> tuple[Reply, str]:
        method, id = (seen.message or {}).get("method", ""), (seen.message or {}).get("id")
        to = "tools/call" if self.case["reply_to"] is None else self.case["reply_to"]
        if method == "resources/list" and to == "resources/templates/list":
            return Reply(json.dumps({"jsonrpc": "2.0", "id": id, "result": {"resources": []}})), ""
        if method == "initialize" and to in ("resources/list", "resources/templates/list"):
            reply, right = super()._reply(seen)
            return reply, right.replace('"tools": {}', '"tools": {}, "resources": {}')
        if seen.method != "POST" or method != to:
            return super()._reply(seen)
        reply = answer_of(self.case)
        return replace(reply, body=(reply.body or "").replace('"@@ID@@"', json.dumps(id))), ""


@asynccontextmanager
async def canary_server(case: Mapping[str, Any]) -> AsyncGenerator[str]:
    async with raw_server() as (url, raw):
        raw.__class__ = CanaryServer
        vars(raw)["case"] = case
        yield url


type Play = Callable[[Mapping[str, Any], Seen, Path], Awaitable[Any]]
"""Plays a case, and returns everything that came of it."""


async def play_server(case: Mapping[str, Any], seen: Seen, tmp_path: Path) -> Any:
    asked = list[Any]()

    async def ask(question: Question) -> Answer:
        asked.append([question.message, question.schema])
        return Answer("accept", {"ok": True})

    async with canary_server(case) as url, door_to(web(case, url, tmp_path), ask) as door:
        await seen.call(door, case)
    return [*seen.parts, asked]


def web(case: Mapping[str, Any], url: str, kept_in: Path) -> ServerSpec:
    return ServerSpec("web", "web", **given_to(case, url, kept_in))


async def play_process(case: Mapping[str, Any], seen: Seen, tmp_path: Path) -> Any:
    reply = {**case["reply"], "then_result": case["then_result"], "exit": case["exit"]}
    env = {"CANARY_KEY": case["value"], "REPLY": json.dumps(reply)}
    spec = ServerSpec(
        "s", "s", command=sys.executable, args=("-c", LINES), env=env, secrets=((case["secret"], case["value"]),)
    )
    async with door_to(spec) as door:
        await seen.call(door, case)
    return seen.parts


async def play_api(case: Mapping[str, Any], seen: Seen, tmp_path: Path) -> Any:
    document = tmp_path / "api.json"
    operation = {"operationId": "buy", "parameters": [{"name": "what", "in": "query", "schema": {"type": "string"}}]}
    paths = {"/buy": {"get": {**operation, "responses": {"200": {"description": "ok"}}}}}
    document.write_text(json.dumps({"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths}))
    async with raw_server() as (url, raw):
        raw.stream = body_of(case)
        address = url if not case["connection"] else "http://127.0.0.1:9/v1"
        spec = replace(web(case, address, tmp_path / "logins"), openapi=str(document), kept_in=str(tmp_path / "kept"))
        async with door_to(spec) as door:
            await seen.call(door, case)
    kept = [file.read_bytes() for file in (tmp_path / "kept").rglob("*") if file.is_file()]
    return [*seen.parts, kept]


async def play_refresh(case: Mapping[str, Any], seen: Seen, tmp_path: Path) -> Any:
    """Let the token endpoint answer a refresh, while the server refuses the token that has expired."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(body_of(case).wire(""))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, raw_server() as (url, raw):
        raw.instead["initialize"] = [Reply("", 401)] * 9
        account = ServerAccount("web", url, os_user(), tmp_path / "logins")
        endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/token"
        record = TokenRecord("of-yesterday-0001", 0.0, 1.0, case["value"], client_id="c", token_endpoint=endpoint)
        TokenStore(account).write(record)
        async with door_to(ServerSpec("web", "web", url=url, account=account)) as door:
            await seen.call(door, case)
        kept = TokenStore(account).read()
        assert kept and kept.refused
    return [*seen.parts, kept.refused]


PLAYS: dict[str, Play] = {
    **dict.fromkeys(SERVERS, play_server),
    **dict.fromkeys(APIS, play_api),
    **dict.fromkeys(STDIO, play_process),
    **dict.fromkeys(REFRESHES, play_refresh),
}
CONTROLS = ("c001", STDIO[0], APIS[0], "c075", "c152", "c036")


@pytest.mark.parametrize("id", PLAYS)
async def test_nothing_that_servers_apis_and_logins_say_brings_their_secret(
    id: str, seen: Seen, tmp_path: Path
) -> None:
    require_clean(await PLAYS[id](CASES[id], seen, tmp_path), CASES[id])


@pytest.mark.parametrize(
    "id", [id if id in CONTROLS else pytest.param(id, marks=pytest.mark.soak) for id in PLAYS if id in CASES]
)
async def test_without_the_redaction_it_is_seen(
    id: str, seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Redactor, "text", lambda self, text: text)  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(Redactor, "data", lambda self, data: data)  # pyright: ignore[reportUnknownLambdaType]
    found = leaked(await PLAYS[id](CASES[id], seen, tmp_path), CASES[id])
    assert bool(found) is (CASES[id]["place"] not in SILENT)


def body_of(case: Mapping[str, Any]) -> Reply:
    response: dict[str, Any] = case["reply"].get("response") or {"status": 500, "body": ""}
    text = case.get("wire") or (
        json.dumps(response["json"], ensure_ascii=False) if "json" in response else response["body"]
    )
    headers: dict[str, str] = dict(response.get("headers", {}))
    kind = headers.pop("content-type", JSON)
    match case.get("delivery"):
        case "gzip":
            return RawReply(
                None,
                response["status"],
                kind,
                headers | {"Content-Encoding": "gzip"},
                data=gzip.compress(text.encode()),
            )
        case "utf-16":
            return RawReply(None, response["status"], f"{kind}; charset=utf-16", headers, data=text.encode("utf-16"))
        case "cut_in_secret":
            return Reply(text, response["status"], kind, headers, drip=max(len(text) // 2, 1))
        case _:
            return Reply(text, response["status"], kind, headers)


# ---------------------------------------------------------------- workers


PACK = """
import json, logging, sys
from pathlib import Path

import ot_sdk

def play(*, file: str) -> object:
    \"\"\"Do what the file says.\"\"\"
    said = json.loads(Path(file).read_text(encoding="utf-8"))
    do, value = said["do"], said["value"]
    if do == "return":
        return value
    if do == "return_bytes":
        return value.encode()
    if do == "return_image":
        return {**ot_sdk.image(b"\\x89PNG\\r\\n\\x1a\\n"), **value}
    if do == "print":
        print(value)
    if do == "print_two_writes":
        sys.stdout.write(value[: len(value) // 2])
        sys.stdout.flush()
        sys.stdout.write(value[len(value) // 2 :] + "\\n")
    if do == "log":
        ot_sdk.log(value, "info", key=value)
        logging.getLogger("pack").warning(value)
    if do == "log_exception":
        try:
            raise ValueError(value)
        except ValueError:
            logging.exception("x")
    if do == "raise":
        raise RuntimeError(value)
    if do == "raise_keyerror":
        raise KeyError(value)
    if do == "raise_from":
        error = RuntimeError("outer")
        error.add_note(value)
        raise error from ValueError(value)
    if do == "raise_with_local":
        secret = value
        raise RuntimeError("no " + secret[:0])
    if do == "exit":
        sys.exit(value)
    return None
"""


@pytest.mark.parametrize("known", [True, False], ids=["secrets", "unknown values"])
async def test_nothing_that_a_worker_says_brings_its_secret(seen: Seen, tmp_path: Path, known: bool) -> None:
    told = list[Any]()
    given = {case["secret"]: case["value"] for case in CASES.values()} if known else {}
    door = WorkerDoor(tmp_path / "state", [extension("canary", PACK)], secrets=given)
    found = dict[str, Any]()
    try:
        for id, case in CASES.items():
            if case["source"] != "worker":
                continue
            file = tmp_path / f"{id}.json"
            file.write_text(json.dumps({"do": case["do"], "value": case["reply"]["value"]}), encoding="utf-8")
            context = CallContext(ME, "run", 1, time.monotonic() + 60, told=lambda *said: told.append(said))
            try:
                value, _ = await door.executor.call("canary", "play", (), {"file": str(file)}, context)
            except ToolError as error:
                value = [error, str(error)]
            found[id] = [value, *told]
            told.clear()
    finally:
        await door.aclose()
    leaks = {id: why for id, parts in found.items() if (why := leaked([parts, seen.parts], CASES[id]))}
    assert len(found) >= 20
    if not known:  # the control: what is not a secret is said
        assert [id for id in found if id not in leaks and CASES[id]["place"] not in SILENT] == []
        return
    assert leaks == {}
    assert found["c063"][0] == {"x": {"[secret:PEM_KEY]": 1}}
    assert found["c064"][0] == b"raw [secret:UUID_KEY]"


# ---------------------------------------------------------------- what must stay


def test_nothing_of_ordinary_data_is_taken_for_a_secret() -> None:
    redactor = Redactor(secrets(reasonable_only=True))
    size = 0
    for name, text in pieces():
        size += len(text.encode())
        assert redactor.text(text) == text, name
    assert size > 10 << 20


@pytest.mark.parametrize(
    ("given", "said", "expected"),
    [
        ({"A": "one-secret-0001", "B": "secret"}, "one-secret-0001 secret", "[secret:A] [secret:B]"),
        ({"URL": "db://me:F4ke%2Fpw!@h", "PW": "F4ke%2Fpw!"}, "dsn=db://me:F4ke%2Fpw!@h", "dsn=[secret:URL]"),
        ({"A": "AKIA0000FAKE", "B": "FAKE/not+real"}, "AKIA0000FAKEFAKE/not+real", "[secret:A][secret:B]"),
        ({"BLANKS": "        ", "SHORT": "x7Q"}, "a         b x7Q", "a         b x7Q"),
        ({"A": "one-secret-0001"}, "one-secret-0002 one-secret", "one-secret-0002 one-secret"),
        ({"WORD": "public"}, "publication is public", "[secret:WORD]ation is [secret:WORD]"),
    ],
)
def test_what_is_replaced_is_the_whole_value_and_nothing_else(given: Any, said: str, expected: str) -> None:
    assert Redactor(given).text(said) == expected


def test_keys_that_become_one_stay_two_and_numbers_are_looked_at() -> None:
    redact = Redactor({"KEY": "471147114711"}).text
    encoded = b64encode(b"471147114711").decode()
    found = redact_value({"471147114711": 1, encoded: 2, "n": 471147114711, "t": True, "b": b"471147114711"}, redact)
    marks = {"[secret:KEY]": 1, "[secret:KEY] 2": 2, "n": "[secret:KEY]", "t": True, "b": b"[secret:KEY]"}
    assert found == marks


def test_only_the_encoded_bytes_of_a_block_are_left_alone() -> None:
    value = "one-secret-0001"
    redact, data = Redactor({"A": value}).text, b64encode(value.encode()).decode()
    image = {"type": "image", "data": data, "mimeType": "image/png", "_meta": {"data": data}}
    assert redact_block(image, redact) == image | {"_meta": {"data": "[secret:A]"}}
    assert list(redact_block(image, redact)) == list(image)
    resource = {"uri": "file:///b", "blob": data, "data": data}
    found = redact_block({"type": "resource", "resource": resource, "blob": data}, redact)
    assert found == {"type": "resource", "resource": resource | {"data": "[secret:A]"}, "blob": "[secret:A]"}
    assert redact_block({"type": "x-table", "data": data}, redact)["data"] == "[secret:A]"


async def test_another_servers_secret_is_just_a_value_to_a_program(seen: Seen, tmp_path: Path) -> None:
    case = CASES["c001"]
    async with canary_server(case) as url, door_to(ServerSpec("web", "web", url=url)) as door:
        assert await door.call("buy", what="x") == f"using token {case['value']}."


def require_clean(seen: Any, case: Mapping[str, Any]) -> None:
    assert leaked(seen, case) is None, seen

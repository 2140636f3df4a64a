"""An MCP server, raw, on standard input and output, whose answers are as large and as odd as it is asked for.

Each tool takes a ``kind`` and a number ``n``; the dicts below say what the kinds are. Standard library only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

Made = Callable[[int], Any]


def said(value: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


def nested(n: int) -> str:
    return "[" * n + "]" * n


REPLIES: dict[str, Made] = {
    "text": lambda n: said("x" * n),
    "spaces": lambda n: said("<" + " " * n),
    "open tags": lambda n: said("<external-content " * n),
    "triggers": lambda n: said("__ot" * n),
    "unseen": lambda n: said("\u202e" * n),
    "lines": lambda n: said("\n" * n),
    "blocks": lambda n: {"content": [{"type": "text", "text": "x"}] * n},
    "pictures": lambda n: {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}] * n},
    "links": lambda n: {"content": [{"type": "resource_link", "uri": "mem://a", "name": "a"}] * n},
    "resources": lambda n: {"content": [{"type": "resource", "resource": {"uri": "mem://a", "text": "x"}}] * n},
    "one picture": lambda n: {"content": [{"type": "image", "data": "A" * (n * 4), "mimeType": "image/png"}]},
    "one resource": lambda n: {"content": [{"type": "resource", "resource": {"uri": "mem://a", "text": "x" * n}}]},
    "meta": lambda n: {**said("x"), "_meta": {"parts": [0] * n}},
    "meta keys": lambda n: {**said("x"), "_meta": {f"k{i}": i for i in range(n)}},
    "numbers": lambda n: {"content": [], "structuredContent": {"result": [0] * n}},
    "rows": lambda n: {"content": [], "structuredContent": {"rows": [{"id": i, "name": "x"} for i in range(n)]}},
    "keys": lambda n: {"content": [], "structuredContent": {f"k{i}": i for i in range(n)}},
    "one key": lambda n: {"content": [], "structuredContent": {"k" * n: 1}},
    "failure": lambda n: {**said("x" * n), "isError": True},
    "failures": lambda n: {"content": [{"type": "text", "text": "x"}] * n, "isError": True},
    "structured failure": lambda n: {"content": [], "structuredContent": {"why": [0] * n}, "isError": True},
    "annotations": lambda n: {"content": [{"type": "text", "text": "x", "annotations": {"audience": ["user"] * n}}]},
    "unknown blocks": lambda n: {"content": [{"type": "odd", "text": "x"}] * n},
}
RAW_REPLIES: dict[str, Callable[[int], str]] = {
    "depth": lambda n: f'{{"content":[],"structuredContent":{{"a":{nested(n)}}}}}',
    "digits": lambda n: f'{{"content":[],"structuredContent":{{"a":{"9" * n}}}}}',
    "escapes": lambda n: '{"content":[{"type":"text","text":"' + "\\u0041" * n + '"}]}',
    "white space": lambda n: '{"content":[' + " " * n + "]}",
    "doubled keys": lambda n: '{"content":[],"structuredContent":{' + '"a":1,' * n + '"a":1}}',
    "no object": lambda n: "[" + "0," * n + "0]",
}
NOTICES: dict[str, Made] = {
    "log": lambda n: ("notifications/message", {"level": "info", "data": "x"}),
    "large log": lambda n: ("notifications/message", {"level": "info", "data": [0] * 5000}),
    "progress": lambda n: ("notifications/progress", {"progressToken": n, "progress": 1}),
    "own progress": lambda n: ("notifications/progress", {"progressToken": ID[0], "progress": n, "message": "x"}),
    "list changed": lambda n: ("notifications/tools/list_changed", {}),
    "resource updated": lambda n: ("notifications/resources/updated", {"uri": "mem://a"}),
    "prompts changed": lambda n: ("notifications/prompts/list_changed", {}),
    "cancelled": lambda n: ("notifications/cancelled", {"requestId": n}),
    "unknown": lambda n: ("notifications/odd", {"a": n}),
}
LINES: dict[str, Callable[[int], bytes]] = {
    "blank lines": lambda n: b"\n" * n,
    "junk lines": lambda n: b"junk\n" * n,
    "one junk line": lambda n: b"x" * n + b"\n",
    "numbers": lambda n: b"1\n" * n,
    "lists": lambda n: b"[1,2]\n" * n,
    "answers to nobody": lambda n: b'{"jsonrpc":"2.0","id":987654,"result":{}}\n' * n,
    "one long list": lambda n: b"[" + b"0," * n + b"0]\n",
    "requests": lambda n: b'{"jsonrpc":"2.0","id":"p","method":"ping"}\n' * n,
    "unknown requests": lambda n: b'{"jsonrpc":"2.0","id":"u","method":"odd"}\n' * n,
    "depth": lambda n: nested(n).encode() + b"\n",
    "a request of many parts": lambda n: (
        b'{"jsonrpc":"2.0","id":"m","method":"ping","params":{"a":[' + b"0," * n + b"0]}}\n"
    ),
    "a notification of many parts": lambda n: (
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":[' + b"0," * n + b"0]}}\n"
    ),
}
QUESTIONS: dict[str, Made] = {
    "message": lambda n: ("x" * n, {"type": "object", "properties": {}}),
    "spaces": lambda n: ("<" + " " * n, {"type": "object", "properties": {}}),
    "properties": lambda n: ("?", {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(n)}}),
    "one name": lambda n: ("?", {"type": "object", "properties": {"p" * n: {"type": "string"}}}),
    "choices": lambda n: ("?", {"type": "object", "properties": {"p": {"type": "string", "enum": ["x"] * n}}}),
}
DEFINITIONS: dict[str, Made] = {
    "plain": lambda n: [],
    "many tools": lambda n: [tool(f"t{i}") for i in range(n)],
    "one name": lambda n: [tool("t" * n)],
    "one description": lambda n: [tool("t", description="x" * n)],
    "spaces": lambda n: [tool("t", description="<" + " " * n)],
    "words": lambda n: [tool("t", description="word " * n)],
    "properties": lambda n: [tool("t", {"type": "object", "properties": {f"p{i}": {} for i in range(n)}})],
    "depth": lambda n: [tool("t", deep_schema(n))],
    "choices": lambda n: [tool("t", {"type": "object", "properties": {"p": {"enum": list(range(n))}}})],
    "pattern": lambda n: [tool("t", {"type": "object", "properties": {"p": {"pattern": "(a+)+" * n}}})],
    "any of": lambda n: [tool("t", {"type": "object", "properties": {"p": {"anyOf": [{"type": "string"}] * n}}})],
    "output": lambda n: [tool("t", output={"type": "object", "properties": {f"p{i}": {} for i in range(n)}})],
    "hints": lambda n: [tool("t") | {"annotations": {"title": "x" * n}}],
    "meta": lambda n: [tool("t") | {"_meta": {"a": [0] * n}}],
}
ID: list[Any] = [None]
KIND: list[Any] = ["plain", 0]
TAKES = {"type": "object", "properties": {"kind": {"type": "string"}, "n": {"type": "integer"}}}
OWN = ("reply", "notify", "write", "ask", "become", "wipe")


def tool(name: str, schema: Any = None, *, description: str = "A tool.", output: Any = None) -> dict[str, Any]:
    found = {"name": name, "description": description, "inputSchema": schema or {"type": "object"}}
    return found | ({"outputSchema": output} if output else {})


def deep_schema(n: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(n):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def send(**message: Any) -> None:
    write(line_of(**message))


def line_of(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def call(id: Any, name: str, given: dict[str, Any]) -> None:
    ID[0], kind, n = id, str(given.get("kind", "")), int(given.get("n", 0))
    if name == "reply" and kind in RAW_REPLIES:
        return write(f'{{"jsonrpc":"2.0","id":{id},"result":{RAW_REPLIES[kind](n)}}}\n'.encode())
    if name == "reply" and kind == "refusal":
        return send(id=id, error={"code": 1, "message": "x" * n})
    if name == "reply" and kind == "refusal of many parts":
        return send(id=id, error={"code": 1, "message": "x", "data": [0] * n})
    if name == "reply":
        return send(id=id, result=REPLIES[kind](n))
    if name == "notify":
        lines = [line_of(method=method, params=params) for method, params in map(NOTICES[kind], range(n))]
        write(b"".join(lines))
    elif name == "write" and kind == "standard error":
        sys.stderr.write("e\n" * n)
    elif name == "write":
        write(LINES[kind](n))
    elif name == "become":
        KIND[:] = kind, n
        send(method="notifications/tools/list_changed")
    elif name == "ask":
        message, schema = QUESTIONS[kind](n)
        send(id="q", method="elicitation/create", params={"message": message, "requestedSchema": schema})
    return send(id=id, result=said("done"))


def answer(message: dict[str, Any]) -> None:
    id, params = message.get("id"), message.get("params") or {}
    match message.get("method"):
        case "initialize":
            info = {"name": "hostile", "version": "1"}
            can = {"tools": {"listChanged": True}, "logging": {}}
            send(id=id, result={"protocolVersion": "2025-06-18", "capabilities": can, "serverInfo": info})
        case "tools/list":
            kind, n = KIND
            send(id=id, result={"tools": [*(tool(name, TAKES) for name in OWN), *DEFINITIONS[kind](n)]})
        case "tools/call":
            call(id, params["name"], params.get("arguments") or {})
        case str() if id is not None:
            send(id=id, error={"code": -32601, "message": "unknown"})
        case _:
            pass


def main() -> None:
    for line in sys.stdin.buffer:
        answer(json.loads(line))


if __name__ == "__main__":
    main()

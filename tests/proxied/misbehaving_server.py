"""An MCP server of the older protocol, raw, on standard input and output, that can misbehave; standard library only.

    python misbehaving_server.py [OPTION=VALUE ...]

Options of its start: ``delay`` (seconds), ``exit`` (a code, at once), ``mute`` (answers nothing), ``junk`` (lines
before all else), ``strict`` (exits unless the first message is initialize), ``list`` (a file: its words are
more tools), ``late`` (has a tool ``late`` from the moment on when its prompts are listed, and says so then),
``word`` (a file: its text is in every description), ``print`` (writes a line of plain text before every answer).
What its tools do, their functions say.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

OPTIONS: dict[str, str] = {key: value for key, _, value in (argument.partition("=") for argument in sys.argv[1:])}
LOCK = threading.Lock()
CANCELLED: list[Any] = []
LATE: list[str] = []
METAS: dict[Any, Any] = {}
ANSWERS: dict[Any, Any] = {}
ANSWERED = threading.Condition()
PNG = "iVBORw0KGgo="


def write(data: bytes) -> None:
    with LOCK:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def send(message: dict[str, Any]) -> None:
    if "print" in OPTIONS:
        write(b"DEBUG about to answer\n")
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def notify(method: str, **params: Any) -> None:
    send({"method": method, "params": params})


def text(value: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]}


class Tools:
    """Each gets the request's id and the arguments, and returns a result, or nothing when it has answered itself."""

    def echo(self, id: Any, text_: str = "", **more: Any) -> Any:
        return text(more.get("text", text_))

    def environ(self, id: Any) -> Any:
        return text(sorted(os.environ))

    def pid(self, id: Any) -> Any:
        return {"content": [], "structuredContent": {"pid": os.getpid()}}

    def sleep(self, id: Any, seconds: float) -> Any:
        time.sleep(seconds)
        return text("slept")

    def effect(self, id: Any, file: str, word: str) -> Any:
        """Has an effect, then answers."""
        with open(file, "a") as opened:  # noqa: PTH123 - appended in one write
            opened.write(f"{word}\n")
        return text(word)

    def effect_and_die(self, id: Any, file: str, word: str) -> Any:
        self.effect(id, file, word)
        os._exit(3)

    def pay_and_die(self, id: Any) -> Any:
        os._exit(4)

    def told(self, id: Any) -> Any:
        """Returns what the request has beside its arguments."""
        return text(METAS[id])

    def pay(self, id: Any) -> Any:
        return text(METAS[id])

    def die(self, id: Any) -> Any:
        sys.stderr.write("these are my last words\n")
        sys.stderr.flush()
        os._exit(7)

    def close_output(self, id: Any) -> Any:
        os.close(1)

    def fail(self, id: Any) -> Any:
        return {**text("the disk is full"), "isError": True}

    def refuse(self, id: Any, code: int) -> Any:
        send({"id": id, "error": {"code": code, "message": "refused by the server"}})

    def junk(self, id: Any) -> Any:
        write(b'\xff\xfe not text\n\n[1, 2]\n{"jsonrpc": "1.0"}\nplain words\n' + b"x" * 100_000 + b"\n")
        return text("after the junk")

    def wrong_id(self, id: Any) -> Any:
        send({"id": 987654, "result": text("not yours")})
        send({"id": "987654", "result": text("not yours")})
        send({"id": None, "result": text("not yours")})
        return text("yours")

    def twice(self, id: Any) -> Any:
        send({"id": id, "result": text("first")})
        send({"id": id, "result": text("second")})

    def half(self, id: Any) -> Any:
        """Writes half of its answer, and the rest a moment later."""
        line = json.dumps({"jsonrpc": "2.0", "id": id, "result": text("whole")}).encode() + b"\n"
        write(line[:30])
        time.sleep(0.05)
        write(line[30:])

    def half_and_die(self, id: Any) -> Any:
        write(b'{"jsonrpc": "2.0", "id": ')
        os._exit(0)

    def large(self, id: Any, size: int) -> Any:
        return text("x" * size)

    def silent(self, id: Any) -> Any:
        """Never answers."""

    def progress(self, id: Any, **more: Any) -> Any:
        for step in range(3):
            notify("notifications/progress", progressToken=id, progress=step + 1, total=3, message=f"step {step + 1}")
        return text("done")

    def storm(self, id: Any, count: int) -> Any:
        for _ in range(count):
            notify("notifications/tools/list_changed")
        return text("over")

    def flood(self, id: Any, size: int) -> Any:
        for _ in range(size // 1000):
            sys.stderr.write("e" * 999 + "\n")
        return text("flooded")

    def fork(self, id: Any) -> Any:
        """Starts a process in a session of its own, which would live on."""
        child = subprocess.Popen(["sleep", "60"], start_new_session=True)
        return text(str(child.pid))

    def cancelled(self, id: Any) -> Any:
        return text(CANCELLED)

    def picture(self, id: Any) -> Any:
        note = {"audience": ["user"], "priority": 0.5}
        content = [
            {"type": "text", "text": "see"},
            {"type": "image", "data": PNG, "mimeType": "image/png", "annotations": note, "_meta": {"k": "v"}},
            {"type": "audio", "data": PNG, "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "mem://a", "mimeType": "text/plain", "text": "inside"}},
            {"type": "resource_link", "uri": "mem://b", "name": "b", "mimeType": "text/plain", "size": 12},
        ]
        return {"content": content, "_meta": {"cost": 3}}

    def ask(self, id: Any) -> Any:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        send(
            {
                "id": "q1",
                "method": "elicitation/create",
                "params": {"message": "w\x1b[8mho\u202e?", "requestedSchema": schema},
            }
        )
        with ANSWERED:
            ANSWERED.wait_for(lambda: "q1" in ANSWERS, 20)
        return text(ANSWERS.pop("q1", "no answer"))

    def roots(self, id: Any) -> Any:
        send({"id": "r1", "method": "roots/list"})
        send({"id": "s1", "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}})
        with ANSWERED:
            ANSWERED.wait_for(lambda: {"r1", "s1"} <= ANSWERS.keys(), 20)
        return text({key: ANSWERS[key] for key in ("r1", "s1")})


def names() -> list[str]:
    own = [name for name in vars(Tools) if not name.startswith("_")] + LATE
    try:
        with open(OPTIONS.get("list", ""), encoding="utf-8") as file:  # noqa: PTH123 - no pathlib here
            return own + file.read().split()
    except OSError:
        return own


def word() -> str:
    try:
        with open(OPTIONS.get("word", ""), encoding="utf-8") as file:  # noqa: PTH123 - no pathlib here
            return file.read()
    except OSError:
        return ""


def definition(name: str) -> dict[str, Any]:
    code = getattr(Tools, name, Tools.echo).__code__
    found = code.co_varnames[2 : code.co_argcount]
    properties: dict[str, Any] = {"text" if parameter == "text_" else parameter: {} for parameter in found}
    return {
        "name": name,
        "description": f"The tool {name}.{word()}",
        "inputSchema": {"type": "object", "properties": properties},
        "annotations": {"readOnlyHint": not name.startswith("pay")},
    }


def call(id: Any, name: str, arguments: dict[str, Any]) -> None:
    result = getattr(Tools(), name, Tools().echo)(id, **arguments)
    if result is not None:
        send({"id": id, "result": result})


def handle(message: dict[str, Any]) -> None:
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        with ANSWERED:
            ANSWERS[id] = message.get("result") or message.get("error")
            ANSWERED.notify_all()
    elif method == "initialize":
        capabilities = {"tools": {"listChanged": True}, **({"prompts": {}} if "late" in OPTIONS else {})}
        info = {"name": "fake", "version": "1"}
        version = params["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info, "instructions": "hi"}
        send({"id": id, "result": result})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": [definition(name) for name in names()]}})
    elif method == "prompts/list" and "late" in OPTIONS:
        LATE[:] = ["late"]
        notify("notifications/tools/list_changed")
        send({"id": id, "result": {"prompts": []}})
    elif method == "tools/call":
        METAS[id] = params.get("_meta") or {}
        threading.Thread(target=call, args=(id, params["name"], params.get("arguments") or {}), daemon=True).start()
    elif method == "notifications/cancelled":
        CANCELLED.append(params.get("requestId"))
    elif id is not None:
        send({"id": id, "error": {"code": -32601, "message": "Method not found"}})


def main() -> None:
    if "exit" in OPTIONS:
        sys.stderr.write("cannot start: no key\n")
        sys.exit(int(OPTIONS["exit"]))
    time.sleep(float(OPTIONS.get("delay", 0)))
    for number in range(int(OPTIONS.get("junk", 0))):
        write(f"Welcome to the fake server, line {number}!\n".encode())
    first = True
    for line in sys.stdin:
        message = json.loads(line)
        if first and "strict" in OPTIONS and message.get("method") != "initialize":
            sys.exit(1)
        first = False
        if "mute" not in OPTIONS:
            handle(message)


if __name__ == "__main__":
    main()

"""A small MCP server in plain Python, which starts at once; the name that it is started by says how it behaves."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

FILE = str(Path(__file__).resolve())
TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {
        "name": "add",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
    },
]
ABOUT = {"capabilities": {"tools": {}}, "serverInfo": {"name": "small", "version": "1"}}


def answer(message: dict[str, Any], *, empty: bool = False) -> dict[str, Any] | None:
    """Return the reply to a message, or nothing to a notification."""
    if "id" not in message:
        return None
    params = message.get("params", {})
    results: dict[str, Any] = {
        "initialize": {"protocolVersion": params.get("protocolVersion"), **ABOUT},
        "tools/list": {"tools": [] if empty else TOOLS},
        "tools/call": {"content": [{"type": "text", "text": str(params.get("arguments"))}]},
        "ping": {},
    }
    method = message["method"]
    end = {"result": results[method]} if method in results else {"error": {"code": -32601, "message": "no such method"}}
    return {"jsonrpc": "2.0", "id": message["id"], **end}


def main() -> None:
    """Answer what comes on standard input."""
    kind = Path(sys.argv[0]).stem
    if kind == "exits" or (kind == "needs_env" and not os.environ.get("API_TOKEN")):
        sys.exit("this server does not start")
    for line in sys.stdin:
        if kind != "hangs" and (reply := answer(json.loads(line), empty=kind == "empty")):
            sys.stdout.write(f"{json.dumps(reply)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()

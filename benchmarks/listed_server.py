"""A server that lists recorded tools and carries none of them out: a bystander whose tools a model must read past.

python benchmarks/listed_server.py tools.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

NO_METHOD = {"code": -32601, "message": "this server only lists its tools"}


def answer(method: str, params: dict[str, Any], tools: list[Any]) -> dict[str, Any]:
    """Return the body of the reply to a request."""
    match method:
        case "initialize":
            told: dict[str, Any] = {"capabilities": {"tools": {}}, "serverInfo": {"name": "listed", "version": "1"}}
            return {"result": {"protocolVersion": params["protocolVersion"], **told}}
        case "tools/list":
            return {"result": {"tools": tools}}
        case "ping":
            return {"result": {}}
        case _:
            return {"error": NO_METHOD}


def main() -> None:
    """Answer requests until standard input ends."""
    tools = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            body = answer(request["method"], request.get("params") or {}, tools)
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **body}), flush=True)


if __name__ == "__main__":
    main()

"""A client that keeps three requests open at its server, and tells what it sees, a line of JSON each.

python steady_client.py onetool serve --shared
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import IO, Any

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "steady", "version": "1"}}
OPEN = 3


def tell(**what: Any) -> None:
    """Tell the test what happened."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def send(pipe: IO[bytes], method: str, params: dict[str, Any], number: int | None) -> None:
    """Send a request, or a notification without a number."""
    message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})
    pipe.write(json.dumps(message).encode() + b"\n")
    pipe.flush()


def ask(pipe: IO[bytes], number: int) -> None:
    """Ask for a product that no other request has."""
    send(pipe, "tools/call", {"name": "run", "arguments": {"command": f"{number} * 7"}}, number)
    tell(asked=number)


def answered(line: bytes) -> int | None:
    """Tell what an answer says, and return its number; a line that is not an answer has none."""
    try:
        message = json.loads(line)
    except ValueError:
        tell(junk=line.decode(errors="replace"))
        return None
    if "method" in message or message.get("id") == 0:
        return None
    if "error" in message:
        tell(answered=message["id"], error=message["error"]["message"])
    else:
        result = message["result"]
        tell(answered=message["id"], text=result["content"][0]["text"], is_error=bool(result.get("isError")))
    return message["id"]


def main() -> None:
    """Ask until the server's output ends."""
    server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert server.stdin
    assert server.stdout
    tell(relay=server.pid)
    send(server.stdin, "initialize", HELLO, 0)
    server.stdout.readline()
    send(server.stdin, "notifications/initialized", {}, None)
    try:
        for number in range(1, OPEN + 1):
            ask(server.stdin, number)
        for line in server.stdout:
            if (number := answered(line)) is not None:
                ask(server.stdin, number + OPEN)
    except BrokenPipeError:
        pass
    tell(closed=True)


if __name__ == "__main__":
    main()

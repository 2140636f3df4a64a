"""A small MCP server of the standard library alone: it starts at once."""

import json
import sys

PRICES = {"tea": 3, "salt": 1, "saffron": 90}
ITEM = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
READS = {"readOnlyHint": True}


def wrapped(schema):
    """Return the schema of an object that holds a value of *schema*, as FastMCP's servers declare it."""
    return {
        "type": "object", "properties": {"result": schema}, "required": ["result"], "x-fastmcp-wrap-result": True
    }  # fmt: skip


TOOLS = [
    {
        "name": "price", "description": "Return the price of an item of the shop.", "inputSchema": ITEM,
        "outputSchema": wrapped({"type": "integer"}), "annotations": READS,
    },
    {
        "name": "items", "description": "List the items of the shop.",
        "inputSchema": {"type": "object", "properties": {}},
        "outputSchema": wrapped({"type": "array", "items": {"type": "string"}}), "annotations": READS,
    },
    {"name": "buy", "description": "Buy an item.", "inputSchema": ITEM},
]  # fmt: skip


def called(params):
    """Return the result of a call."""
    item = params.get("arguments", {}).get("item")
    if params["name"] == "buy":
        return {"content": [{"type": "text", "text": f"bought {item}"}]}
    value = list(PRICES) if params["name"] == "items" else PRICES[item]
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": {"result": value}}


def answer(method, params):
    """Return the result of a request, or nothing."""
    match method:
        case "initialize":
            told = {"capabilities": {"tools": {}}, "serverInfo": {"name": "shop", "version": "1"}}
            return {"protocolVersion": params["protocolVersion"], **told}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return called(params)
        case "ping":
            return {}
        case _:
            return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        found = answer(request["method"], request.get("params") or {})
        body = {"error": {"code": -32601, "message": "no such method"}} if found is None else {"result": found}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **body}) + "\n")
        sys.stdout.flush()

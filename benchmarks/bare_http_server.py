"""The floor over HTTP: one tool that does nothing, on bare FastMCP, under the web server that OneTool uses.

Its one argument is the port; a second one, ``json``, lets FastMCP answer as JSON only.
"""

from __future__ import annotations

import sys

import uvicorn
import uvloop
from fastmcp import FastMCP

mcp = FastMCP("bare")


@mcp.tool
async def run(command: str) -> str:
    """Do nothing."""
    return "2"


def main() -> None:
    """Serve until killed."""
    port, as_json = int(sys.argv[1]), "json" in sys.argv[2:]
    app = mcp.http_app(stateless_http=True, json_response=as_json)
    config = uvicorn.Config(
        app, port=port, http="httptools", ws="none", log_config=None, access_log=False, timeout_keep_alive=75
    )
    uvloop.run(uvicorn.Server(config).serve())


if __name__ == "__main__":
    main()

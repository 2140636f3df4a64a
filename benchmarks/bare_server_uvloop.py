"""The floor under the event loop that OneTool uses, so that the loop's gain is not taken for ours."""

from __future__ import annotations

import uvloop
from bare_server import mcp

if __name__ == "__main__":
    uvloop.run(mcp.run_async(show_banner=False))

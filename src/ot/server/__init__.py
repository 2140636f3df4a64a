"""The MCP face: whatever of it is imported first, the protocol's library is told this before its own import."""

import os

# Its rich log handler blocks the whole server for seconds on a long text.
os.environ.setdefault("FASTMCP_ENABLE_RICH_LOGGING", "false")
os.environ["FASTMCP_LOG_ENABLED"] = "false"  # its lines are written as ours are, whatever its user prefers
os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)  # else it obeys an .env of the working directory

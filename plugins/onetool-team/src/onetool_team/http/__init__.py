"""The edge over HTTP: from a connection's first byte to the MCP server, and back."""

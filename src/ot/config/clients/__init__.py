"""Other MCP clients: where each keeps its servers, and what its settings mean here."""

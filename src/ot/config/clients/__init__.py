"""Other MCP clients: where their files are, which servers they hold, how an entry is added to them and removed."""

"""OneTool: one MCP server, one tool, a contained Python program."""

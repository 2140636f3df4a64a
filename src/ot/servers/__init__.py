"""Proxied MCP servers: their processes and connections."""

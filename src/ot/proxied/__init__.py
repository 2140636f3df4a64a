"""Proxied MCP servers: transports, connections, calls, the catalogue of their tools, their backend."""

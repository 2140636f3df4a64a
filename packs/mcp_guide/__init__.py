"""The guide server: what a project wants agents to know, as documents in categories, over MCP.

Documents are markdown files ``.guide/<category>/<name>.md`` of the project and of the user; the project's come first.
`mcp-guide` serves them to any MCP client; in OneTool they are the pack ``guide``.
"""

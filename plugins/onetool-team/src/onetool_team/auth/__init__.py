"""Who may use the server: named tokens, and access tokens of an authorization server."""

"""The server that a team shares over HTTP: who asks, where each one works, how much each may use."""

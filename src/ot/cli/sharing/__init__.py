"""How commands reach the shared server: to ask about it, or to have it answer."""

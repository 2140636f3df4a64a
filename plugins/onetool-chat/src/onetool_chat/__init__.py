"""Clients that offer the same tools to a model over its own API, by text and by voice."""

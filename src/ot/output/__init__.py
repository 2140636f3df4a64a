"""Formats, sanitising and stored results."""

"""What the optional extras bring, by name: whoever misses it is told which one to install. It imports nothing."""

from __future__ import annotations

COMMANDS = {"chat": "chat", "listen": "voice"}
SECTIONS = {"chat": "chat"}
"""Sections of ``onetool.yaml``: without the extra they are passed over, with a warning."""
STORES = {"language_model": "chat", "results.file": "team", "results.s3": "team"}
"""What plugins keep or give for the server, by the name of its hook."""

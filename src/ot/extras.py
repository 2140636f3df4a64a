"""Which optional extra brings which library, so that an error can say what to install. Imports nothing."""

from __future__ import annotations

COMMANDS = {"chat": "chat", "listen": "voice", "team": "team", "token": "team", "worker": "team"}
EDGES = {"http": "team"}
SECTIONS = {"chat": "chat", "http": "team", "state": "team", "telemetry": "team"}
"""Sections of ``onetool.yaml``: without the extra they are passed over, with a warning."""
STORES = {"language_model": "chat", "results.file": "team", "results.s3": "team"}
"""What plugins keep or give for the server, by the name of its hook."""

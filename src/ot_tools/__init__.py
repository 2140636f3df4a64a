"""Bundled packs: one file is one pack."""

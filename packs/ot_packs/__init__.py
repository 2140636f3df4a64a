"""Bundled packs in workers: one directory is one pack, written as users write theirs."""

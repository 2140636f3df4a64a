"""Packs as all that a server offers, for programs on other hosts."""

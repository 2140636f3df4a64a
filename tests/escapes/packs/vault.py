"""Holds a secret, and a function that policy denies."""

from __future__ import annotations

from typing import Any

from escapes.packs._watch import CANARY, WATCH

pack = "vault"
__all__ = ["read", "wipe"]

SECRET = CANARY


class Vault:
    """An object that tells its secret to whoever prints it."""

    SECRET = CANARY

    def __repr__(self) -> str:
        return f"Vault({CANARY})"


VAULT = Vault()


def read(key: Any) -> str:
    """Return the key as text."""
    with WATCH.call("vault.read", key):
        return "v:" + str(key)


def wipe() -> str:
    """Do what nobody may."""
    with WATCH.call("vault.wipe"):
        return "WIPED"

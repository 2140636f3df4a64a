"""Unread: a value that holds too many parts to be read whole."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unread:
    """JSON that stays bytes on its way into the result store; what is not plain JSON in it is tagged."""

    data: bytes

"""Messages between the server and a child: a header of size and number, then JSON."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

HEADER = struct.Struct("!II")
NOTICE = 0
"""The number of a message that wants no answer: prints, and the end."""
START = 0
"""The number of the server's first message, the program."""
MORE_THAN_A_VALUE = 1 << 20
"""What a message may have beside a value of the largest size."""

# Bound before any program runs: one that changes json must not change what is sent.
dumps: Callable[[Any], str] = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode
loads: Callable[[str], Any] = json.JSONDecoder().decode


def frame(number: int, payload: bytes) -> bytes:
    """Return a message as it goes over the wire."""
    return HEADER.pack(len(payload), number) + payload


def largest_message(value_bytes: int) -> int:
    """Return how many bytes a message may have when a value may have *value_bytes*: some are written with escapes."""
    return 2 * value_bytes + MORE_THAN_A_VALUE

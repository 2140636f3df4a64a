"""Reads the header of a refusal that says when to come back, for the server and for packs alike."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import timezone
from email.utils import parsedate_to_datetime

LONGEST = 86_400.0
"""A day: nobody waits longer, and a moment that is decades away overflows what counts down to it."""
NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?")


def retry_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that ``Retry-After`` asks to wait, at most a day; None where it is missing or malformed."""
    text = headers.get("retry-after", "").strip()
    if NUMBER.fullmatch(text):
        return min(float(text), LONGEST)
    if not text.isascii():
        return None
    try:
        date = parsedate_to_datetime(text)
        # One of the three forms of an HTTP date has no zone; all of them are in GMT.
        moment = (date if date.tzinfo else date.replace(tzinfo=timezone.utc)).timestamp()  # noqa: UP017 - Python 3.10
    except (IndexError, OverflowError, TypeError, ValueError):
        return None
    return min(max(moment - time.time(), 0.0), LONGEST)

"""An image that a tool returns: the content block that the client is shown, and the value that stands for it."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from typing import Any

KINDS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
"""How the data of each kind begins."""
MAX_BYTES = 4 << 20
BLOCK = "block"


def image_block(data: bytes, mime_type: str) -> dict[str, Any]:
    """Return the block that the client is shown.

    Raises:
        ValueError: The data is too large, or no image of that kind.
    """
    if mime_type not in KINDS:
        raise ValueError(f"mime_type must be one of {', '.join(KINDS)}, not {mime_type!r}")
    if not data.startswith(KINDS[mime_type]):
        raise ValueError(f"the data is not {mime_type}")
    if len(data) > MAX_BYTES:
        raise ValueError(f"the image has {len(data):,} bytes, and at most {MAX_BYTES:,} can be shown: make it smaller")
    return {"type": "image", "data": b64encode(data).decode("ascii"), "mimeType": mime_type}


def image_value(data: bytes, mime_type: str) -> dict[str, Any]:
    """Return a program's placeholder for the image, which is shown if the program returns or ``ot.show``s it."""
    name = hashlib.blake2b(data, digest_size=6).hexdigest()
    return {"type": "image", BLOCK: name, "mime_type": mime_type, "size": len(data)}

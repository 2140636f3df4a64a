"""The model that a tool may ask: that of the setting ``chat``, whose key stays with the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ot_sdk import host


def ask(text: str) -> str:
    """Return the model's answer to *text*; for plain ``def`` tools.

    Raises:
        ChatError: There is none; the text says why, and ``kind`` is the name of what went wrong.
        OutsideWorker: No worker and no ``ot_sdk.testing.use(llm=...)`` is there.
    """
    return host.current().ask_model(text, None)


def extract(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the model for a dict that fits *schema*, the JSON schema of an object; for plain tools.

    Raises:
        ChatError: The model gave none that fits, or as above.
        ValueError: It is not the JSON schema of an object.
    """
    return host.current().ask_model(text, schema)


async def aask(text: str) -> str:
    """Return as ``ask``, for ``async def`` tools."""
    return await host.current().aask_model(text, None)


async def aextract(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return as ``extract``, for ``async def`` tools."""
    return await host.current().aask_model(text, schema)

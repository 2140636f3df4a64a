"""``ot.result``: lines of a stored result, or a part of the value that it is."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ot.execution.tool_context import current_tool_context
from ot.output.result_store import ResultStore

SAID_IF_ANY = ("note", "numbers")


def read_result(
    store: ResultStore, handle: str, *, max_bytes: int, path: str = "", outline: bool = False, **query: Any
) -> Any:
    """Return a page of the caller's result as a dict; with *path* the value there, with *outline* what it is made of.

    Raises:
        TypeError, ValueError, LookupError: The query makes no sense, or leads nowhere.
        ResultError: The result cannot be read.
    """
    owner = current_tool_context().caller.principal
    if not path and not outline:
        page = asdict(store.page(handle, owner=owner, **query))
        return {key: value for key, value in page.items() if value or key not in SAID_IF_ANY}
    if query.get("search") or query.get("offset", 1) != 1 or query.get("from_byte", 1) != 1:
        raise ValueError(
            "path and outline look at a value, offset, search and from_byte at lines: give one or the other"
        )
    if outline:
        return store.outline(handle, owner=owner, path=path)
    return store.value(handle, owner=owner, path=path, max_bytes=max_bytes)

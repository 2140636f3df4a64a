"""Start: what the server says when it starts a worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ot_sdk.errors import InvalidArguments, ProtocolMismatch
from ot_sdk.wire import PROTOCOL


class Start(NamedTuple):
    """The parameters of ``init``."""

    pack: str
    file: str
    directory: str
    settings: Mapping[str, Any]
    secrets: Mapping[str, str]
    spool: str | None
    spool_above: int
    threads: int
    tasks: int
    serial: bool


TYPES: Mapping[str, type | tuple[type, ...]] = {
    "pack": str,
    "file": str,
    "directory": str,
    "settings": dict,
    "secrets": dict,
    "spool": (str, type(None)),
    "spool_above": int,
    "threads": int,
    "tasks": int,
    "serial": bool,
}
DEFAULTS: Mapping[str, Any] = {
    "settings": {},
    "secrets": {},
    "spool": None,
    "spool_above": 1 << 20,
    "threads": 8,
    "tasks": 32,
    "serial": False,
}


def read_start(params: Mapping[str, Any]) -> Start:
    """Return the parameters of ``init``, checked.

    Raises:
        ProtocolMismatch: The server speaks another version.
        InvalidArguments: Something is missing or of the wrong type.
    """
    if params.get("protocol") != PROTOCOL:
        raise ProtocolMismatch(params.get("protocol"), PROTOCOL)
    found = {**DEFAULTS, **{name: value for name, value in params.items() if name in TYPES}}
    for name, kind in TYPES.items():
        if name not in found or not isinstance(found[name], kind):
            raise InvalidArguments(f"init: {name} is missing or of the wrong type")
    return Start(**found)

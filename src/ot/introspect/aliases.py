"""Lists of aliases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ot.introspect.listing import check_info


def list_aliases(aliases: Mapping[str, str], pattern: str, info: str) -> list[Any]:
    """Return the aliases whose name or target contains *pattern*."""
    check_info(info)
    wanted = pattern.lower()
    found = [name for name in sorted(aliases) if wanted in name.lower() or wanted in aliases[name].lower()]
    return [alias_entry(name, aliases[name], info) for name in found]


def alias_entry(name: str, target: str, info: str) -> Any:
    """Return one alias at an info level."""
    if info == "list":
        return name
    return f"{name} -> {target}" if info == "min" else {"name": name, "target": target}

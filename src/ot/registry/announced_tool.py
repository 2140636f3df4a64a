"""AnnouncedTool: what one OneTool tells another of a tool, beside its schema: the signature as its pack declares it.

It is trusted for its form alone. Whether a call is allowed is decided by the definition's hints, as for any server.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast, get_args

from ot.registry.clean_text import clean_line
from ot.registry.proxy_target import BACKEND, ProxyTarget
from ot.registry.tool import Parameter, ParameterKind, Tool
from ot.registry.tool_definitions import possible_names

META = "onetool"
"""The key of ``_meta`` under which two OneTools talk to each other."""
IDEMPOTENCY_KEY = f"{META}/idempotency-key"
"""The key of ``_meta`` that names a call which may change something, for any server that can use it."""
FORM = 1
"""How values, failures and progress are written; each end says which it reads."""
MAX_PARAMETERS = 500
MAX_TYPE = 300
MAX_DESCRIPTION = 1000
KINDS = frozenset(get_args(ParameterKind))


@dataclass(frozen=True, slots=True)
class AnnouncedTool:
    """A tool's pack and name over there, and its signature."""

    pack: str
    name: str
    parameters: tuple[Parameter, ...]
    returns: str = ""
    format: str | None = None

    def apply_to(self, tool: Tool) -> Tool:
        """Return *tool* with this signature: its arguments are checked and cross as those of a pack do."""
        target = replace(ProxyTarget.of(tool.target), names={}, form=FORM).text()
        return replace(
            tool,
            parameters=self.parameters,
            returns=self.returns,
            format=self.format,
            input_schema=None,
            target=target,
        )


def announcement(tool: Tool) -> dict[str, Any]:
    """Return the announcement of *tool* for ``_meta``."""
    parameters = [
        {key: value for key, value in asdict(one).items() if value not in ("", None)} for one in tool.parameters
    ]
    told: dict[str, Any] = {"form": FORM, "pack": tool.pack, "name": tool.name, "parameters": parameters}
    return told | {key: text for key, text in {"returns": tool.returns, "format": tool.format}.items() if text}


def read_announced_tool(definition: Mapping[str, Any]) -> AnnouncedTool | None:
    """Return the announcement in a server's *definition*; nothing if its form is unknown or malformed."""
    told = form_of(definition)
    if told is None:
        return None
    pack, name, listed = told.get("pack"), told.get("name"), told.get("parameters")
    if not (isinstance(pack, str) and isinstance(name, str) and isinstance(listed, list) and name.isidentifier()):
        return None
    # A name that is not part of the tool's own would not be covered by what the user approved.
    if definition.get("name") not in possible_names(pack, name):
        return None
    parameters = [_parameter(one) for one in cast("Sequence[Any]", listed)[:MAX_PARAMETERS]]
    known = tuple(one for one in parameters if one is not None)
    if len(known) != len(cast("Sequence[Any]", listed)):
        return None
    format = told.get("format")
    return AnnouncedTool(
        pack, name, known, clean_line(told.get("returns"), MAX_TYPE), clean_line(format, 20) if format else None
    )


def is_announced(tool: Tool) -> bool:
    """Return whether *tool* is of another OneTool's pack, so that values cross as those of a pack do."""
    return tool.backend == BACKEND and bool(ProxyTarget.of(tool.target).form)


def has_docstring(tool: Tool) -> bool:
    """Return whether what is said of *tool* is a function's docstring: of a pack here, or of another OneTool's."""
    return tool.source == "local" or is_announced(tool)


def revision_of(told: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """Return a text that changes when tools do, each *told* by its description and its announcement."""
    listed = sorted(json.dumps([description, announced], sort_keys=True) for description, announced in told)
    return hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16]


def form_of(carrier: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a definition or a result tells another OneTool, if its form is known here."""
    found = read_meta(carrier)
    return found if found.get("form") == FORM else None


def read_meta(carrier: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a definition, a result or a block tells another OneTool, in any form."""
    return mapping_of(mapping_of(carrier.get("_meta")).get(META))


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Return *value*, or an empty mapping in the place of anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _parameter(told: Any) -> Parameter | None:
    found = mapping_of(told)
    name, kind, default = found.get("name"), found.get("kind", "any"), found.get("default")
    if not (isinstance(name, str) and name.isidentifier() and kind in KINDS):
        return None
    return Parameter(
        name=name,
        kind=kind,
        annotation=clean_line(found.get("annotation"), MAX_TYPE),
        default=None if default is None else clean_line(str(default), MAX_TYPE),
        description=clean_line(found.get("description"), MAX_DESCRIPTION),
    )

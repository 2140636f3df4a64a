"""Puts secrets where a configuration says ${NAME} or ${NAME:-default}."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ot.config.document import Node
from ot.config.problems import Problem, refuse
from ot.errors import ConfigError

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*+)(?::-((?:[^}$]|\$(?!\{))*+))?+\}")
"""Possessive, and no default holds another reference: a text of half a million beginnings is read once."""

WORKSPACE = "workspace"
HERE = "${workspace}"
"""Stands for the working directory in a server's settings; it is never a secret."""

type Lookup = Callable[[str], str | None]

CREDENTIALS = tuple(("output", "store", name) for name in ("access_key_id", "secret_access_key", "session_token"))
"""Single settings that secrets are put into. Where they are sent is used as it is written."""


def references(node: Node) -> frozenset[str]:
    """Return every name that a text in *node* refers to."""
    below = [*node.entries.values(), *node.items]
    own = names_in(node.value) - {WORKSPACE} if isinstance(node.value, str) else frozenset[str]()
    return own.union(*(references(entry) for entry in below))


def names_in(text: str) -> frozenset[str]:
    """Return every name that *text* refers to."""
    return frozenset(found.group(1) for found in REFERENCE.finditer(text))


def fill_in(text: str, key: str, lookup: Lookup) -> str:
    """Return *text*, the setting *key*, with its references replaced.

    Raises:
        ConfigError: A reference without a default names nothing.
    """

    def value(found: re.Match[str]) -> str:
        known = lookup(found[1]) or found[2]
        if known is None:
            hint = f"add '{found[1]}: ...' to secrets.yaml, or set it in the environment"
            raise ConfigError(f"{key} needs {found[1]}, which is not set", hint=hint)
        return known

    return REFERENCE.sub(value, text)


def expand(
    layer: Node, *, attrs: Lookup, tools: Lookup, credentials: Lookup, advice: str
) -> tuple[Node, frozenset[str]]:
    """Return *layer* with references replaced in attributes, packs' settings and credentials, and the names used.

    Raises:
        ConfigError: A reference without a default names nothing.
    """
    work = _Expansion(advice)
    if projects := layer.get("projects"):
        layer = layer.put(("projects",), projects.map_entries(lambda name, node: work.attributes(name, node, attrs)))
    if packs := layer.get("tools"):
        layer = layer.put(("tools",), packs.map_entries(lambda name, node: work.node(node, f"tools.{name}", tools)))
    for path in CREDENTIALS:
        if text := layer.get(*path):
            layer = layer.put(path, work.node(text, ".".join(path), credentials))
    refuse(work.problems)
    return layer, frozenset(work.names)


@dataclass(slots=True)
class _Expansion:
    advice: str
    problems: list[Problem] = field(default_factory=list[Problem])
    names: set[str] = field(default_factory=set[str])

    def attributes(self, name: str, project: Node, lookup: Lookup) -> Node:
        attrs = project.get("attrs")
        return project.put(("attrs",), self.node(attrs, f"projects.{name}.attrs", lookup)) if attrs else project

    def node(self, node: Node, key: str, lookup: Lookup) -> Node:
        if isinstance(node.value, Mapping):
            return node.map_entries(lambda name, entry: self.node(entry, f"{key}.{name}", lookup))
        if isinstance(node.value, tuple):
            return Node(node.place, tuple(self.node(item, f"{key}.{n}", lookup) for n, item in enumerate(node.items)))
        if isinstance(node.value, str) and "${" in node.value:
            return Node(node.place, self._text(node, node.value, key, lookup))
        return node

    def _text(self, node: Node, text: str, key: str, lookup: Lookup) -> str:
        def value(found: re.Match[str]) -> str:
            name, default = found.group(1), found.group(2)
            self.names.add(name)
            known = lookup(name) or default
            if known is None:
                self.problems.append(Problem(node.place, f"{key} needs {name}, which is not set: {self.advice}"))
            return known or ""

        return REFERENCE.sub(value, text)

"""YAML in flow style that stays readable: simple things inline, at most two levels of it, lists an object a line."""

from __future__ import annotations

from typing import Any

MOST_LEVELS = 2
WIDTH = 1 << 30
LONG = 120
"""Characters of one line above which an object that holds others is a key a line."""


def yaml_flow(value: Any) -> str:
    """Return JSON types as YAML: what is simple stands inline, what holds more a key or an object a line."""
    yaml = _library()
    node = yaml.representer.SafeRepresenter(sort_keys=False).represent_data(value)
    _Style(yaml).apply(node)
    text = _text(yaml, node)
    if len(text) > LONG and isinstance(node, yaml.MappingNode) and node.flow_style:
        node.flow_style = not any(isinstance(part, yaml.CollectionNode) and part.value for _, part in node.value)
        text = _text(yaml, node)
    return text


def _text(yaml: Any, node: Any) -> str:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.serialize(node, Dumper=dumper, allow_unicode=True, width=WIDTH)
    return text.removesuffix("\n").removesuffix("\n...")


def _library() -> Any:
    import yaml  # noqa: PLC0415 - most replies are JSON; YAML's import costs a third of a run's budget at start

    return yaml


class _Style:
    """Decides node by node, from the leaves up, what stands inline."""

    def __init__(self, yaml: Any) -> None:
        self._mapping, self._sequence = yaml.MappingNode, yaml.SequenceNode

    def apply(self, node: Any) -> int:
        """Style *node* and what is in it, and return how many levels it has; too many when it is not inline."""
        parts = self._parts(node)
        if not parts:
            return 0
        levels = 1 + max(self.apply(part) for part in parts)
        objects = isinstance(node, self._sequence) and any(map(self._parts, parts))
        node.flow_style = levels <= MOST_LEVELS and not objects
        if node.flow_style:
            return levels
        for part in parts:
            # Inline a text of many lines is one long one; here it can stand as it is.
            if isinstance(part.value, str) and "\n" in part.value:
                part.style = "|"
        return MOST_LEVELS + 1

    def _parts(self, node: Any) -> list[Any]:
        if isinstance(node, self._mapping):
            return [value for _, value in node.value]
        return node.value if isinstance(node, self._sequence) else []

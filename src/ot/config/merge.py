"""Lays one configuration over another; a project's can only make the user's stricter."""

from __future__ import annotations

from collections.abc import Mapping

from ot.config.document import Node

ADDED_UP = ("deny",)
"""Lists of the policy to which a project may add, and from which it takes nothing.

Not ``ask``: a pattern of the project's that is narrower than one the user denies would loosen it.
"""


def merge(under: Node, over: Node) -> Node:
    """Return *under* with *over* laid on it: mappings key by key, anything else replaced."""
    if not isinstance(under.value, Mapping) or not isinstance(over.value, Mapping):
        return over
    merged = dict(under.value)
    for key, node in over.value.items():
        merged[key] = merge(merged[key], node) if key in merged else node
    return Node(over.place, merged)


def merge_project(user: Node, project: Node) -> Node:
    """Return the user's settings with a project's laid on them: what either denies is denied.

    A project's server stands in for one of the user's that has its name, and gets nothing of it: laid over it key by
    key, the project could send the user's headers to an address of its own.
    """
    merged = merge(user, project)
    if servers := project.get("servers"):
        all_servers = {**user.find(("servers",)).entries, **servers.entries} if user.get("servers") else servers.entries
        merged = Node(merged.place, {**merged.entries, "servers": Node(servers.place, all_servers)})
    for name in ADDED_UP:
        merged = _added_up(merged, name, _patterns(user, name), _patterns(project, name))
    return merged


def _added_up(merged: Node, name: str, known: tuple[Node, ...], more: tuple[Node, ...]) -> Node:
    added = [node for node in more if node.text not in {pattern.text for pattern in known}]
    if not (known or added):
        return merged
    policy = merged.find(("policy",))
    both = Node(policy.find((name,)).place, (*known, *added))
    return merge(merged, Node(merged.place, {"policy": Node(policy.place, {name: both})}))


def _patterns(node: Node, name: str) -> tuple[Node, ...]:
    patterns = node.get("policy", name)
    return patterns.items if patterns else ()

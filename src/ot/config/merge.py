"""Lays one configuration over another; a project's can only make the user's stricter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from ot.config.document import Node
from ot.config.models import Config, Limits, Policy, Security
from ot.config.problems import Problem, given
from ot.config.snapshot import UNHASHED_FOLDERS

STRICTNESS: tuple[str, ...] = get_args(Security.model_fields["sanitize"].annotation)
CEILINGS = (*(("limits", name) for name in Limits.model_fields), ("output", "max_total_bytes"))
"""Keys that a project may lower but not raise."""

USERS_ALONE = (
    ("engines",),
    ("workers",),
    ("security", "roots"),
    *(("policy", name) for name in Policy.model_fields if name != "deny"),
)
"""Keys that only the user's own configuration may hold: where programs run, what tools can reach and what may run."""


def merge(under: Node, over: Node) -> Node:
    """Return *under* with *over* laid on it: mappings key by key, anything else replaced."""
    if not isinstance(under.value, Mapping) or not isinstance(over.value, Mapping):
        return over
    merged = dict(under.value)
    for key, node in over.value.items():
        merged[key] = merge(merged[key], node) if key in merged else node
    return Node(over.place, merged)


def merge_project(user: Node, project: Node) -> Node:
    """Return the user's settings with a project's laid on them: what either denies is denied."""
    merged = merge(user, project)
    denied = _denied(user)
    added = [node for node in _denied(project) if node.text not in {known.text for known in denied}]
    if not (denied or added):
        return merged
    policy = merged.find(("policy",))
    deny = Node(policy.find(("deny",)).place, (*denied, *added))
    return merge(merged, Node(merged.place, {"policy": Node(policy.place, {"deny": deny})}))


def loosened(project: Node, user: Config) -> list[Problem]:
    """Return what a project's settings try to loosen or to take from the user's hands."""
    return [
        *_raised(project, user),
        *_less_strict(project, user),
        *_users_alone(project),
        *_stored_among_trusted_files(project),
    ]


def project_rule(path: tuple[str, ...]) -> str:
    """Return what a project may do with the key at *path*, or nothing where it may do all."""
    if any(path[: len(key)] == key for key in USERS_ALONE):
        return "only the user's own configuration may set it"
    if path in CEILINGS:
        return "a project may only lower it"
    rules: dict[tuple[str, ...], str] = {
        ("security", "sanitize"): "a project may only make it stricter",
        ("policy", "deny"): "a project adds to the user's",
        ("output", "result_store_dir"): f"in a project, below {', '.join(sorted(UNHASHED_FOLDERS))}",
        ("secrets_file",): "in a project, inside its .onetool directory",
    }
    return rules.get(path, "")


def _denied(node: Node) -> tuple[Node, ...]:
    deny = node.get("policy", "deny")
    return deny.items if deny else ()


def _raised(project: Node, user: Config) -> list[Problem]:
    found: list[Problem] = []
    for section, key in CEILINGS:
        node = project.get(section, key)
        most = getattr(getattr(user, section), key)
        if node and isinstance(node.value, int | float) and node.value > most:
            text = f"{section}.{key} may not be raised by a project: {node.value:,} is above {most:,}"
            found.append(Problem(node.place, f"{text}, which only your own configuration can change"))
    return found


def _less_strict(project: Node, user: Config) -> list[Problem]:
    node = project.get("security", "sanitize")
    if node is None or STRICTNESS.index(str(node.value)) >= STRICTNESS.index(user.security.sanitize):
        return []
    text = f"security.sanitize may not be loosened by a project: it is '{user.security.sanitize}'"
    return [Problem(node.place, f"{text}, not {given(node.value)}")]


def _users_alone(project: Node) -> list[Problem]:
    text = "may not be set by a project, only by your own configuration"
    found = [(".".join(key), project.get(*key)) for key in USERS_ALONE]
    return [Problem(node.place, f"{name} {text}") for name, node in found if node]


def _stored_among_trusted_files(project: Node) -> list[Problem]:
    # A result stored beside hashed files would end the project's trust by itself.
    node = project.get("output", "result_store_dir")
    if node is None or str(node.value).split("/")[0] in UNHASHED_FOLDERS:
        return []
    text = f"output.result_store_dir must be below {', '.join(sorted(UNHASHED_FOLDERS))} in a project"
    return [Problem(node.place, f"{text}, not {given(node.value)}")]

"""Lays one configuration over another; a project's can only make the user's stricter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from ot.config.document import Node
from ot.config.models import Config, Limits, Policy, Security
from ot.config.problems import Problem, given
from ot.config.snapshot import UNHASHED_FOLDERS

STRICTNESS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("security", "sanitize"): get_args(Security.model_fields["sanitize"].annotation),
    ("policy", "changed_definitions"): get_args(Policy.model_fields["changed_definitions"].annotation),
}
"""Keys that a project may only make stricter, with their values from the least strict on."""

CEILINGS = (
    *(("limits", name) for name in Limits.model_fields),
    ("output", "max_total_bytes"),
    ("policy", "ask_seconds"),
)
"""Keys that a project may lower but not raise."""

MAY_TIGHTEN = ("ask_seconds", "changed_definitions", "deny")
USERS_ALONE = (
    ("chat",),
    ("engines",),
    ("workers",),
    ("security", "roots"),
    *(("policy", name) for name in Policy.model_fields if name not in MAY_TIGHTEN),
)
"""Keys that only the user's own configuration may hold: where programs run, what tools reach, who gets a key."""

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
        **dict.fromkeys(STRICTNESS, "a project may only make it stricter"),
        **{("policy", name): "a project adds to the user's" for name in ADDED_UP},
        ("servers",): "a project's stands in for yours of the same name, as a whole",
        ("output", "result_store_dir"): f"in a project, below {', '.join(sorted(UNHASHED_FOLDERS))}",
        ("secrets_file",): "in a project, inside its .onetool directory",
    }
    return rules.get(path, "")


def _patterns(node: Node, name: str) -> tuple[Node, ...]:
    patterns = node.get("policy", name)
    return patterns.items if patterns else ()


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
    found: list[Problem] = []
    for (section, key), values in STRICTNESS.items():
        node, users = project.get(section, key), getattr(getattr(user, section), key)
        if node and values.index(str(node.value)) < values.index(users):
            text = f"{section}.{key} may not be loosened by a project: it is '{users}'"
            found.append(Problem(node.place, f"{text}, not {given(node.value)}"))
    return found


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

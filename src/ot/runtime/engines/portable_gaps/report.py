"""How one finding becomes a `Gap`."""

from __future__ import annotations

import ast

from ot.errors import Gap
from ot.runtime.engines.portable_gaps.rules import RULES, Rule


def gap(node: ast.AST, rule: str | Rule, *, instead: str = "", **names: str) -> Gap:
    """Return the gap that *rule* describes, at the line of *node*, with *names* put into its text."""
    found = RULES[rule] if isinstance(rule, str) else rule
    return Gap(getattr(node, "lineno", 1), _filled(found.what, names), instead or _filled(found.instead, names))


def _filled(text: str, names: dict[str, str]) -> str:
    # Not str.format(): the texts show code, and code has braces of its own.
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", value)
    return text

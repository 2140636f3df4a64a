"""Puts a pattern into one list of the policy and takes it out of the others."""

from __future__ import annotations

from ot.config.clients.found_server import Rule
from ot.config.yaml_edit import YamlText

LISTS: tuple[Rule, ...] = ("allow", "ask", "deny")


def with_pattern(text: YamlText, rule: Rule, pattern: str) -> YamlText:
    """Return *text* with *pattern* in the list *rule* of its policy, and in no other."""
    for other in LISTS:
        if other != rule:
            text = text.remove_item(("policy", other), pattern)
    known: list[str] = text.get("policy", rule) or []
    return text if pattern in known else text.add_item(("policy", rule), pattern)

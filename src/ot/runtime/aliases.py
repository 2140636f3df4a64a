"""Replaces aliases by the tools they stand for, on the tree: never in strings, comments or the program's own names."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ot.runtime.program import Program


def expand_aliases(program: Program, aliases: Mapping[str, str]) -> Program:
    """Return *program* with every read of an alias written out; lines stay where they are."""
    used = (program.loads & aliases.keys()) - program.binds
    if not used:
        return program
    # An alias is a tool, and a tool has no attributes: `file.read` is the pack, whatever `file` is an alias of.
    packs = {id(node.value) for node in program.nodes if isinstance(node, ast.Attribute)}
    names = [node for node in program.nodes if isinstance(node, ast.Name) and node.id in used and id(node) not in packs]
    return program.edited((*program.span(node), aliases[node.id]) for node in names)

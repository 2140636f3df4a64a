"""Replaces aliases by the tools they stand for, on the tree: never in strings, comments or the program's own names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ot.runtime.program import Program, parse_program


def expand_aliases(program: Program, aliases: Mapping[str, str]) -> Program:
    """Return *program* with every read of an alias written out; lines stay where they are."""
    used = (program.loads & aliases.keys()) - program.binds
    if not used:
        return program
    # An alias is a tool, and a tool has no attributes: `file.read` is the pack, whatever `file` is an alias of.
    packs = {id(node.value) for node in program.nodes if isinstance(node, ast.Attribute)}
    names = [node for node in program.nodes if isinstance(node, ast.Name) and node.id in used and id(node) not in packs]
    return replace_ranges(program, ((node, aliases[node.id]) for node in names))


def replace_ranges(program: Program, changes: Iterable[tuple[ast.expr | ast.keyword, str]]) -> Program:
    """Return *program* with the text of each node, which stands on one line, replaced."""
    lines = [line.encode() for line in program.source.split("\n")]
    for node, text in sorted(changes, key=lambda change: (change[0].lineno, -change[0].col_offset)):
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = line[: node.col_offset] + text.encode() + line[node.end_col_offset :]
    changed = parse_program("\n".join(line.decode() for line in lines), max_bytes=1 << 30)
    return replace(changed, written=program.written)

"""Aliases are replaced on the tree: nothing but names changes, and no line moves."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.runtime.program import parse_program
from ot.runtime.snippets import expand_aliases

ALIASES = {"ws": "brave.web_search", "r": "file.read"}
STATEMENTS = [
    "ws(query='x')",
    "text = 'ws(query)'",
    "text = '''\n  ws r\n'''",
    "# ws r",
    'f"{ws(query=1)} ws {r(path="r")!r:>{r}}"',
    "é = ws(query='ü ws') + r(path=ws('ö'))  # ws",
    "[ws for y in r]",
    "x.ws.r(ws=r)",
    "values = (\n  ws,\n    r(\n path='r'),\n)",
    "def f(x=ws):\n    return r",
    "\nws",
]


class Expanded(ast.NodeTransformer):
    """What an alias means, written on the tree."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.parse(ALIASES[node.id], mode="eval").body if node.id in ALIASES else node


@given(st.lists(st.sampled_from(STATEMENTS), min_size=1))
def test_only_names_change_and_no_line_moves(statements: list[str]) -> None:
    program = parse_program("\n".join(statements))
    expanded = expand_aliases(program, ALIASES)
    assert ast.dump(Expanded().visit(ast.parse(program.source))) == ast.dump(expanded.tree)
    assert [n.lineno for n in program.tree.body] == [n.lineno for n in expanded.tree.body]
    assert program.source.count("\n") == expanded.source.count("\n")


@pytest.mark.parametrize(
    "code",
    [
        "ws = 1\nws",
        "def ws(): pass\nws()",
        "def f(ws):\n    return ws(query='x')",
        "import ws\nws.x",
        "[ws for ws in y]",
        "for ws in y: ws()",
        "x.ws(query='x')",
        "unknown(ws=1)",
        "'ws'",
    ],
)
def test_a_name_that_the_program_gives_a_meaning_of_its_own_stays(code: str) -> None:
    program = parse_program(code)
    assert program is expand_aliases(program, ALIASES)


def test_a_program_that_names_an_alias_in_one_scope_keeps_it_in_all() -> None:
    program = parse_program("ws(query='x')\ndef f(ws):\n    return ws")
    assert program is expand_aliases(program, ALIASES)

"""Finds what a file defines and where it names something. It runs in the parser's process."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ast_grep_py import SgNode, SgRoot
from code_languages import CALLS, DEFINITIONS, IMPORTS, MEMBERS, NAMES, TYPES

SIGNATURE = 200
FUNCTIONS = frozenset(("arrow_function", "function_expression", "function", "generator_function", "class"))
NEED_BODY = frozenset(("struct_specifier", "union_specifier", "enum_specifier", "class_specifier"))
ABOVE = 8
"""How far above a name it is looked for an import."""
RECEIVER = re.compile(r"(\w+)\s*(?:\[[^\]]*\])?\s*\)$")
GENERIC = re.compile(r"<.*", re.DOTALL)
KEYWORDS = frozenset(("interface", "struct", "enum", "extension", "actor", "class"))


@dataclass(frozen=True, slots=True)
class Definition:
    """Something that a file defines."""

    name: str
    kind: str
    inside: str
    line: int
    end_line: int
    signature: str
    start: int
    end: int
    at: int
    """Where its name begins."""

    @property
    def qualified(self) -> str:
        """The name, after those that it stands inside."""
        return f"{self.inside}.{self.name}" if self.inside else self.name


def definitions(root: SgNode, grammar: str) -> list[Definition]:
    """Return what the file defines, in its order."""
    kinds = DEFINITIONS[grammar]
    found: list[Definition] = []
    around: list[Definition] = []
    for node in root.find_all(any=[{"kind": kind} for kind in kinds]):
        start = node.range().start.index
        while around and around[-1].end <= start:
            around.pop()
        if definition := _definition(node, kinds[node.kind()], around[-1] if around else None):
            found.append(definition)
            around.append(definition)
    return found


def _definition(node: SgNode, kind: str, around: Definition | None) -> Definition | None:
    name = _name_node(node)
    if name is None:
        return None
    *before, short = re.split(r"::|[.:](?=\w)", GENERIC.sub("", name.text()))
    inside = ".".join(part for part in (around.qualified if around else "", _receiver(node), *before) if part)
    place = node.range()
    return Definition(
        short,
        _kind(node, kind, around, within=bool(before)),
        inside,
        place.start.line + 1,
        place.end.line + 1,
        _first_line(node),
        place.start.index,
        place.end.index,
        name.range().end.index - len(short),
    )


def _name_node(node: SgNode) -> SgNode | None:
    kind = node.kind()
    if kind in NEED_BODY and node.field("body") is None:
        return None  # it is used here, and defined elsewhere
    if kind in ("variable_declarator", "field_definition", "public_field_definition"):
        value = node.field("value")
        if value is None or value.kind() not in FUNCTIONS:
            return None
        return node.field("name") or node.field("property")
    if kind == "impl_item":
        return node.field("type")
    return node.field("name") or _find_declared(node) or _first_name(node)


def _find_declared(node: SgNode) -> SgNode | None:
    """Return the name inside the declarators of C."""
    declarator = node.field("declarator")
    for _ in range(ABOVE):
        below = declarator and declarator.field("declarator")
        if below is None:
            break
        declarator = below
    return declarator


def _first_name(node: SgNode) -> SgNode | None:
    return next((child for child in node.children() if child.kind() in NAMES), None)


def _receiver(node: SgNode) -> str:
    receiver = node.field("receiver") if node.kind() == "method_declaration" else None
    found = RECEIVER.search(receiver.text()[-SIGNATURE:]) if receiver else None
    return found[1] if found else ""


def _kind(node: SgNode, kind: str, around: Definition | None, *, within: bool) -> str:
    if kind == "function" and (within or (around and around.kind in TYPES)):
        return "method"
    if kind == "type" and (of := node.field("type")):  # of Go
        return of.kind().removesuffix("_type") if of.kind() in ("struct_type", "interface_type") else kind
    if node.kind() == "class_declaration":  # of Kotlin and Swift, which have one node for them all
        return next((child.kind() for child in node.children() if child.kind() in KEYWORDS), kind)
    return kind


def _first_line(node: SgNode) -> str:
    return node.text()[: SIGNATURE * 2].split("\n", 1)[0].strip()[:SIGNATURE]


@dataclass(frozen=True, slots=True)
class NamePlace:
    """A place where a name stands."""

    name: str
    kind: str
    line: int
    column: int
    inside: str
    text: str


def references(text: str, root: SgNode, grammar: str, names: Sequence[str]) -> Iterator[NamePlace]:
    """Yield where the file has one of *names* as a name, not inside a string or a comment.

    Its *text* may begin before its root, which leaves out blank lines at the top.
    """
    defined = definitions(root, grammar)
    own = {each.at for each in defined}
    starts, wanted = [each.start for each in defined], "|".join(map(re.escape, names))
    lines = text.split("\n")
    kinds = [{"kind": kind} for kind in name_kinds(grammar)]
    for node in root.find_all(any=kinds, regex=f"^(?:{wanted})$"):
        if not node.is_leaf():  # the same name once more, around its leaf
            continue
        start = node.range().start
        kind = "definition" if start.index in own else "call" if _is_called(node) else _use(node)
        around = _innermost(defined, bisect_right(starts, start.index) - 1, start.index, own=kind == "definition")
        line = lines[start.line].strip()[:SIGNATURE]
        yield NamePlace(node.text(), kind, start.line + 1, start.column + 1, around, line)


def _innermost(defined: Sequence[Definition], last: int, index: int, *, own: bool) -> str:
    """Return the qualified name of what the place lies inside; *last* begins last before it."""
    for number in range(last, -1, -1):
        each = defined[number]
        if own and each.at == index:
            return each.inside
        if not own and each.end > index:
            return each.qualified
    return ""


def _is_called(node: SgNode) -> bool:
    end, parent = node.range().end.index, node.parent()
    for _ in range(ABOVE):
        if parent is None or parent.kind() not in MEMBERS:
            break
        if parent.kind() != "generic_function" and parent.range().end.index != end:
            return False
        node, parent = parent, parent.parent()
        end = node.range().end.index
    if parent is None or parent.kind() not in CALLS:
        return False
    after = node.next()  # what stands before a dot is not what is called
    return after is None or after.kind() not in (".", "::", "->", "?.", "&.", "?->")


def _use(node: SgNode) -> str:
    above = node.parent()
    for _ in range(ABOVE):
        if above is None:
            break
        if "import" in above.kind() or above.kind() in IMPORTS:
            return "import"
        above = above.parent()
    return "use"


@cache
def name_kinds(grammar: str) -> tuple[str, ...]:
    """Return which nodes are names in this grammar."""
    return tuple(kind for kind in NAMES if has_kind(grammar, kind))


def has_kind(grammar: str, kind: str) -> bool:
    """Return whether the grammar has nodes of this kind."""
    try:
        SgRoot("", grammar).root().find_all(kind=kind)
    except RuntimeError:
        return False
    return True

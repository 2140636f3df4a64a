"""Foresees how often a program would call a tool, from its text alone and without running it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ot.execution.call_context import CallForecast
from ot.runtime.program import Program

MANY_TIMES = (ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
"""What stands in one of these may be carried out any number of times."""
LOOPS = (ast.For, ast.AsyncFor)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
MAX_DEPTH, MAX_CHARACTERS = 100, 100_000
"""In what is deeper or longer than anybody reads, nothing is foreseen."""


def foreseen_calls(program: Program, tool: str, line: int | None, waiting: int) -> CallForecast:
    """Return how many calls of *tool* the program has, and the line of one of them."""
    if len(program.source) > MAX_CHARACTERS:
        return CallForecast(line, program.whole_line(line), waiting, None)
    from ot.registry.other_words import aliases_of, letters_of  # noqa: PLC0415 - only a question to the user needs it

    pack, _, name = tool.partition(".")
    known = {letters_of(word) for word in (name, *aliases_of(tool))}
    count = _Count(pack, lambda name: letters_of(name) in known, _literal_lengths(program))
    for statement in program.tree.body:
        count.look(statement, 1, 0)
    at = line or (count.lines[0] if count.lines else None)
    return CallForecast(at, program.whole_line(at), waiting, count.most if count.lines else None)


@dataclass
class _Count:
    """Adds up the calls of one tool while it walks down a tree; ``most`` is None when there is no telling."""

    pack: str
    is_meant: Callable[[str], bool]
    """Whether a name is the tool's own or an alias of it."""
    lengths: dict[str, int]
    most: int | None = 0
    lines: list[int] = field(default_factory=list[int])

    def look(self, node: ast.AST, times: int | None, depth: int) -> None:
        if depth > MAX_DEPTH:
            self.most = None
            return
        match node:
            case ast.Attribute(ast.Name(owner), name) if owner == self.pack and self.is_meant(name):
                self.lines.append(node.lineno)
                self.most = None if times is None or self.most is None else self.most + times
            case _:
                pass
        if isinstance(node, LOOPS):
            self._look_at(node.body, _product(times, self._length(node.iter)), depth)
            self._look_at([node.target, node.iter, *node.orelse], times, depth)
        elif isinstance(node, COMPREHENSIONS):
            self._look_at(list(ast.iter_child_nodes(node)), self._times(node.generators, times), depth)
        else:
            inside = None if isinstance(node, MANY_TIMES) else times
            self._look_at(list(ast.iter_child_nodes(node)), inside, depth)

    def _look_at(self, nodes: Sequence[ast.AST], times: int | None, depth: int) -> None:
        for node in nodes:
            self.look(node, times, depth + 1)

    def _times(self, generators: Sequence[ast.comprehension], times: int | None) -> int | None:
        for generator in generators:
            times = _product(times, self._length(generator.iter))
        return times

    def _length(self, node: ast.expr) -> int | None:
        return self.lengths.get(node.id) if isinstance(node, ast.Name) else _literal_length(node)


def _product(times: int | None, length: int | None) -> int | None:
    return None if times is None or length is None else times * length


def _literal_lengths(program: Program) -> dict[str, int]:
    """Return the lengths of sequences that the program writes out, names, and never changes."""
    stored = Counter(n.id for n in program.nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    # items.append(...): as long as it is written, it is not.
    stored.update(n.value.id for n in program.nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name))
    return {
        target.id: length
        for node in program.tree.body
        if isinstance(node, ast.Assign) and (length := _literal_length(node.value)) is not None
        for target in node.targets
        if isinstance(target, ast.Name) and stored[target.id] == 1
    }


def _literal_length(node: ast.expr) -> int | None:
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return None if any(isinstance(element, ast.Starred) for element in elements) else len(elements)
        case ast.Constant(value=str() | bytes() as value):
            return len(value)
        case ast.Call(func=ast.Name(id="range"), args=arguments, keywords=[]) if 1 <= len(arguments) <= 3:
            return _range_length(arguments)
        case _:
            return None


def _range_length(arguments: Sequence[ast.expr]) -> int | None:
    try:
        numbers = [ast.literal_eval(argument) for argument in arguments]
        return len(range(*numbers)) if all(type(number) is int for number in numbers) else None
    except (ValueError, TypeError, OverflowError, RecursionError, SyntaxError):
        return None

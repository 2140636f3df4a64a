"""Converter: the one walk through a value, by the exact types of its parts; a table holds the rule for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from ot_sdk.errors import NotPlain, TooDeep, TooMany

MAX_DEPTH = 64
"""How many containers may stand inside each other."""
MAX_NODES = 2_000_000

Rule = Callable[[Any, Any, int], Any]
"""Takes the converter, a value and its depth, and returns the converted value."""


class Converter:
    """Converts one value, counting what it holds; a graph counts each time it is reached.

    A subclass is a policy: a rule for each type, what is done with all other types, and the errors.
    """

    rules: ClassVar[Mapping[type, Rule | None]] = {}
    """What is done with a value of exactly this type; with None it stays as it is."""

    def __init__(self, max_nodes: int = MAX_NODES) -> None:
        self._left = max_nodes

    def convert(self, value: object, depth: int = 0) -> Any:
        """Convert *value*, which lies inside *depth* containers."""
        self._left -= 1
        if self._left < 0:
            raise self.too_many(value)
        # The exact type: what an object says of itself may be anything.
        rule = self.rules.get(type(value), _other)
        return value if rule is None else rule(self, value, depth)

    def elements(self, value: Iterable[Any], depth: int) -> list[Any]:
        """Convert the elements of *value*."""
        self.check_depth(value, depth)
        converted: list[Any] = []
        try:
            for item in value:
                converted.append(self.convert(item, depth + 1))
        except NotPlain as error:
            error.within(len(converted))
            raise
        return converted

    def check_depth(self, value: Any, depth: int) -> None:
        """Check that a container may stand at this depth."""
        if depth >= MAX_DEPTH:
            raise self.too_deep(value)

    def other(self, value: Any, depth: int) -> Any:
        """Convert a value of an unknown type."""
        raise NotPlain("", type(value).__name__)

    def too_deep(self, value: Any) -> Exception:
        """Return the error for a value that is nested too deeply."""
        return TooDeep("", type(value).__name__)

    def too_many(self, value: Any) -> Exception:
        """Return the error for a value that holds too many parts."""
        return TooMany("", type(value).__name__)


def kind_of(value: object) -> type[Any]:
    """Return the exact type of *value*, which cannot pretend to be of another."""
    return type(value)


def _other(converter: Converter, value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:  # an object that stands for itself, for ever
        raise converter.too_deep(value)
    return converter.other(value, depth)

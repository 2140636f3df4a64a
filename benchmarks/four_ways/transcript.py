"""Transcript: what went between a model and its tools for one task, and what that comes to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onetool_chat.chat_tools import ToolAnswer
from ot.registry.tool_definitions import ToolDefinition

BYTES_PER_TOKEN = 4
"""A rule of thumb for English and code."""
WayCall = tuple[str, Mapping[str, Any]]
"""A call as the model writes it: a name from the list of tools, and its arguments."""


def tokens(size: int) -> int:
    """Return an estimate for that many bytes."""
    return round(size / BYTES_PER_TOKEN)


def definition_bytes(definitions: Sequence[ToolDefinition], instructions: str) -> int:
    """Return how many bytes every request carries before the first word: the tools, and what is said of them."""
    shown = [{"name": d.name, "description": d.description, "inputSchema": dict(d.parameters)} for d in definitions]
    return _size(shown) + len(instructions.encode())


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn of the model that calls tools, and what they answered."""

    calls: Sequence[WayCall]
    answers: Sequence[ToolAnswer]
    seconds: float

    @property
    def written(self) -> int:
        """Bytes of the calls."""
        return sum(_size({"name": name, "arguments": dict(arguments)}) for name, arguments in self.calls)

    @property
    def read(self) -> int:
        """Bytes of the answers."""
        return sum(len(answer.text.encode()) for answer in self.answers)


@dataclass
class Transcript:
    """The turns of one task in one way; the last turn, which only answers, is counted and not kept."""

    task: str
    way: str
    definitions: int
    ask: str
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    problem: str = ""

    @property
    def round_trips(self) -> int:
        """Requests to the model, that for the final answer included."""
        return len(self.exchanges) + 1

    @property
    def input(self) -> int:
        """Bytes that the model reads over all requests: each carries the definitions and everything before it."""
        total, before = 0, self.definitions + len(self.ask.encode())
        for exchange in self.exchanges:
            total += before
            before += exchange.written + exchange.read
        return total + before

    @property
    def row(self) -> dict[str, Any]:
        """The figures, sizes as estimated tokens."""
        return {
            "task": self.task,
            "way": self.way,
            "round_trips": self.round_trips,
            "calls": sum(len(exchange.calls) for exchange in self.exchanges),
            "definitions": tokens(self.definitions),
            "results": tokens(sum(exchange.read for exchange in self.exchanges)),
            "input": tokens(self.input),
            "output": tokens(sum(exchange.written for exchange in self.exchanges)),
            "seconds": round(sum(exchange.seconds for exchange in self.exchanges), 4),
            "problem": self.problem,
        }


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())

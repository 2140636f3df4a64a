"""Typed tools that the tests of this folder use; their models must be found by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from mcp_core import Consent, Result, ToolArguments


class Arguments(ToolArguments):
    """One field of each kind that the corpus of bad inputs gives."""

    lit: Annotated[Literal["CREATE_DOCUMENT"], Consent()]
    n: int = Field(default=1, ge=0, description="How many")
    ratio: float = 0.5
    s: str = ""
    kind: Literal["a", "b"] | None = None
    tags: list[str] = Field(default_factory=list, description="Words\nto find it by")
    more: dict[str, Any] = Field(default_factory=dict)


class Plain(ToolArguments):
    """No consent."""

    text: str
    times: int = 2


class Nothing(ToolArguments):
    """No arguments."""


def create(args: Arguments) -> Result[str]:
    """Create something.

    It stays.
    """
    return Result.ok(args.s * args.n)


def repeat(args: Plain) -> Result[str]:
    """Repeat a text."""
    return Result.ok(args.text * args.times) if args.times < 9 else Result.failure("too often", "limit")


async def repeat_later(args: Plain) -> Result[str]:
    """Repeat a text in its own time."""
    return repeat(args)


def ping(args: Nothing) -> Result[str]:
    """Answer."""
    return Result.ok("pong")


def untyped(text: str) -> str:
    """Have no model."""
    return text

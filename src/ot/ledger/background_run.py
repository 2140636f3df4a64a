"""BackgroundRun: a run that outlives the call that asked for it, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from ot.brief_repr import quote_text

MAX_SHOWN = 200

type RunState = Literal["waiting", "running", "asks", "done", "failed", "stopped", "cancelled"]
"""``failed``: the program's own failure; ``stopped``: it was not brought to its end, and its report says how far."""
type EndState = Literal["done", "failed", "stopped", "cancelled"]
ENDED: frozenset[RunState] = frozenset(("done", "failed", "stopped", "cancelled"))


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a book keeps as JSON."""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> Self:
        """Rebuild it from ``as_json``; keys that a later release added are ignored."""
        return cls(**_fields(found, cls.__slots__))


@dataclass(frozen=True, slots=True)
class BackgroundRun(_Kept):
    """What was asked for, and by whom; it never changes."""

    id: str
    principal: str
    command: str = field(repr=False)
    created: float
    name: str = ""
    client: str = ""
    groups: Sequence[str] = ()
    admin: bool = False
    directory: str = ""
    """Where it was begun, among all directories that a user works in: for programs elsewhere it does not exist."""

    @property
    def origin(self) -> str:
        """Where it was begun and what its program calls it, for a person to read after words of our own."""
        place = f"in {quote_text(self.directory, MAX_SHOWN)}" if self.directory else ""
        name = f"named {quote_text(self.name, MAX_SHOWN)}" if self.name else ""
        return ", ".join(filter(None, (place, name)))


@dataclass(frozen=True, slots=True)
class RunEnd(_Kept):
    """How a run ended: what it said, and the stored result in which a stopped one left what it had."""

    state: EndState
    at: float
    texts: Sequence[str] = ()
    error: str = ""
    handle: str = ""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """What is known of a background run now."""

    run: BackgroundRun
    state: RunState
    starts: int = 0
    question: Mapping[str, Any] | None = None
    """What it asks its user, with its number under ``number``; nothing unless its state is ``asks``."""
    cancelled: bool = False
    """Whether somebody wants it to end."""
    end: RunEnd | None = None


def _fields(found: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of *names* that exist; JSON has turned tuples into lists."""
    values: dict[str, Any] = {name: found[name] for name in names if name in found}
    return values | {name: tuple(values[name]) for name in ("groups", "texts") if name in values}

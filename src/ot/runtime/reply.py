"""Reply: what run() answers, before any protocol shapes it, and what is gathered for it while the program runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ot.errors import OneToolError, ProgramFailed
from ot.execution.ledger import Effect, HowEnded
from ot.registry.proxy_target import BLOCK


@dataclass(frozen=True)
class Reply:
    """The result of a run: texts for a model, the value for a program, and facts about the run."""

    texts: tuple[str, ...]
    """What was printed, then the value or the failure, each as a text of its own."""
    is_error: bool = False
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    """Metadata of the run, sent over MCP and printed by ``onetool run --json``."""
    blocks: tuple[Mapping[str, Any], ...] = ()
    """Content that is not text (images, audio, resources), as MCP writes it."""
    value: Any = field(default=None, repr=False)
    """The value as plain data, whole even where the text is only the summary of what was stored."""
    has_value: bool = False
    """Whether there is a value: None may be one."""
    cause: str = ""
    """What a failure came from: the error of a call, the exception that left the program, or the limit it used up."""
    calls: int = 0
    """How many calls of tools were made."""
    handles: tuple[str, ...] = ()
    """The handles of texts that were stored because they are large: prints first, then the value."""

    @property
    def text(self) -> str:
        """All texts, one below the other."""
        return "\n".join(text.removesuffix("\n") for text in self.texts)

    @property
    def error(self) -> str:
        """The class of the failure, such as ``ProgramFailed``; empty when there is none."""
        return self.meta.get("error", "")

    @property
    def engine(self) -> str:
        """The engine that ran the program."""
        return self.meta.get("engine", "")

    @property
    def run(self) -> str:
        """The run's id, as events and the log name it."""
        return self.meta.get("run", "")

    @property
    def seconds(self) -> float:
        """How long the run took."""
        return self.meta.get("ms", 0.0) / 1000

    @property
    def tolerated(self) -> tuple[str, ...]:
        """The rows of the table of tolerances by which the program was read."""
        return tuple(self.meta.get("tolerated", ()))


@dataclass(frozen=True)
class BareReply(Reply):
    """The result of one call for another program: nothing is formatted, and a failure is the error itself."""

    printed: str = ""
    """What tools printed."""
    failure: OneToolError | None = field(default=None, repr=False)


MOST_BLOCKS = 32
MOST_BYTES = 8 << 20
MOST_WAITING_BYTES = 32 << 20
"""Of the blocks that no program has returned or shown yet."""
MOST_META_BYTES = 32 << 10
MOST_NOTES = 20
MOST_NOTE = 1000

Block = Mapping[str, Any]


class ReplyBlocks:
    """Collects what tools tell, until it is too much for one reply."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.meta: list[dict[str, Any]] = []
        self.left_out = 0
        self._bytes = 0
        self._meta_bytes = 0
        self._notes: dict[str, None] = {}
        self._waiting: dict[str, Block] = {}
        self._waiting_bytes = 0

    def keep(self, block: Block, id: str) -> None:
        """Keep a content block that the program knows by *id*, until it is returned or shown; old ones make room."""
        self._drop(id)
        self._waiting[id] = block
        self._waiting_bytes += _size(block)
        while self._waiting_bytes > MOST_WAITING_BYTES:
            self._drop(next(iter(self._waiting)))

    def _drop(self, id: str) -> None:
        if (block := self._waiting.pop(id, None)) is not None:
            self._waiting_bytes -= _size(block)

    def show(self, value: Any) -> bool:
        """Take the kept blocks that *value* holds, and return whether there are any."""
        found = [id for id in dict.fromkeys(block_ids(value)) if id in self._waiting] if self._waiting else []
        for id in found:
            self.add(self._waiting[id])
            self._drop(id)
        return bool(found)

    def add(self, block: Block) -> None:
        """Take a content block in wire form, if there is room for it."""
        size = _size(block) if len(self.blocks) < MOST_BLOCKS else MOST_BYTES
        if len(self.blocks) >= MOST_BLOCKS or self._bytes + size > MOST_BYTES:
            self.left_out += 1
            return
        self._bytes += size
        self.blocks.append(block)

    def add_meta(self, tool: str, meta: Block) -> None:
        """Take the ``_meta`` of a tool's result, if there is room for it."""
        self._meta_bytes += _size(meta)
        if self._meta_bytes <= MOST_META_BYTES:
            self.meta.append({"tool": tool, "meta": dict(meta)})

    def add_note(self, tool: str, text: str) -> None:
        """Take what a tool says beside its value; the same words of one tool count once."""
        if len(self._notes) < MOST_NOTES:
            self._notes[f"{tool}: {text[:MOST_NOTE]}"] = None

    @property
    def notes(self) -> str:
        """What the tools said beside their values."""
        return "\n".join(self._notes)

    @property
    def note(self) -> str:
        """What to say when something was left out."""
        if not self.left_out:
            return ""
        parts = "1 part" if self.left_out == 1 else f"{self.left_out} parts"
        return f"note: {parts} of the tools' content did not fit into this reply and were left out"


def block_ids(value: Any) -> Iterator[str]:
    """Yield the names of content blocks in plain data; it was bounded when it crossed."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found = cast("dict[Any, Any]", part)
            if isinstance(found.get(BLOCK), str):
                yield found[BLOCK]
            waiting.extend(reversed(found.values()))
        elif isinstance(part, list | tuple):
            waiting.extend(reversed(cast("list[Any]", part)))


def _size(data: Block) -> int:
    return len(json.dumps(data, default=str))


WORDS: dict[HowEnded, str] = {
    "done": "took effect",
    "unknown": "may or may not have taken effect: find out before you repeat it",
    "failed": "failed or was not sent",
}
"""In the order in which they are told."""
MAX_LINES = 20


class RunEffects:
    """Counts the calls that may have changed something, by tool, line and end."""

    def __init__(self) -> None:
        self._counted: Counter[tuple[HowEnded, str, int | None]] = Counter()
        self._unrecorded = 0
        self._why = ""

    def note(self, effect: Effect, how: HowEnded) -> None:
        """Take note of a call that has ended."""
        self._counted[how, effect.tool.full_name, effect.line] += 1

    def add_unrecorded(self, why: str) -> None:
        """Take note of a call that is sent though it could not be written down."""
        self._unrecorded += 1
        self._why = why

    @property
    def any(self) -> bool:
        """Whether a call may have changed something."""
        return bool(self._counted)

    @property
    def unknown(self) -> bool:
        """Whether nobody knows of some call whether it took effect."""
        return any(how == "unknown" for how, _, _ in self._counted)

    def beside(self, error: OneToolError, run_id: str) -> str:
        """Say what the run did before *error*, unless the failed line already tells."""
        if isinstance(error, ProgramFailed) and not self.unknown:
            return ""
        return self.text(run_id)

    def text(self, run_id: str) -> str:
        """Say what an unfinished run has done; empty if it did nothing."""
        if not any(how != "failed" for how, _, _ in self._counted):
            return ""
        return "\n".join([f"What this run did before it ended (run {run_id}):", *self._lines(*WORDS)])

    @property
    def note_unrecorded(self) -> str:
        """What every reply says of calls that are missing in the ledger; nothing when there are none."""
        if not self._unrecorded:
            return ""
        calls = "1 call is" if self._unrecorded == 1 else f"{self._unrecorded} calls are"
        return f"note: {calls} not recorded in the ledger, so ot.effects() does not list them ({self._why})"

    def open_ends(self, run_id: str) -> str:
        """Return, for a run that came to its end, of which calls nobody knows the effect."""
        if not self.unknown:
            return ""
        return "\n".join([f"note: of some calls the effect is unknown (run {run_id}):", *self._lines("unknown")])

    def _lines(self, *wanted: HowEnded) -> list[str]:
        lines = [
            f"- {tool}{f', line {line}' if line else ''}{f', {count} times' if count > 1 else ''}: {WORDS[how]}"
            for how in wanted
            for (ended, tool, line), count in self._counted.items()
            if ended == how
        ]
        hidden = len(lines) - MAX_LINES
        return lines[:MAX_LINES] + ([f"- and {hidden} more"] if hidden > 0 else [])

"""What one run of a case showed, and the signs by which an escape is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from escapes.process_sampler import Usage
from mcp_wire import WireReply, strict_json

NOTHING: Mapping[str, Any] = {
    "dispatched": {},
    "calls": 0,
    "inflight": 0,
    "alive": 0,
    "depth": 0,
    "arg_not_plain": (),
    "arg_too_deep": False,
    "stall_ms": 0.0,
    "host_state": (),
}
"""What a server reports in which nothing has happened."""

Sign = Callable[["Sight", Any], bool]


@dataclass(frozen=True)
class Sight:
    """All that was seen from outside while and after one command ran."""

    reply: WireReply | None = None
    wall_seconds: float = 0.0
    growth: Usage = field(default_factory=Usage)
    other_lines: tuple[bytes, ...] = ()
    """Lines of standard output between the request and the next ping's answer, without the reply itself."""
    host: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """What the server itself reports on its side channel."""
    alive: bool = True
    drop: Path = Path("/nonexistent")
    listener_hits: int = 0
    calls_alive_after: int = 0
    next_reply: WireReply | None = None

    def __str__(self) -> str:
        return f"{self.wall_seconds:.2f} s, {self.growth}, {dict(self.host)}, reply: {self.text[:500]}"

    @property
    def text(self) -> str:
        """The reply's text."""
        return self.reply.text if self.reply else ""

    @property
    def next_text(self) -> str:
        """The text of the next run's reply."""
        return self.next_reply.text if self.next_reply else ""


def _lenient_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_invalid(sight: Sight) -> bool:
    """Tell whether the line, or a text in it that a lenient parser takes for JSON, is not strict JSON."""
    if sight.reply is None:
        return True
    texts = [text for text in sight.reply.texts if _lenient_json(text) is not None]
    return any(strict_json(text, unique_keys=False) is None for text in (sight.reply.raw_line, *texts))


def _has_duplicate_keys(sight: Sight) -> bool:
    texts = [text for text in (sight.reply.texts if sight.reply else []) if _lenient_json(text) is not None]
    return any(strict_json(text) is None and strict_json(text, unique_keys=False) is not None for text in texts)


def _kind(sight: Sight) -> str:
    error = sight.reply.meta.get("error", "") if sight.reply else ""
    return "limit" if error == "LimitExceeded" else error


SIGNS: Mapping[str, Sign] = {
    "output_contains": lambda seen, text: text in seen.text,
    "output_lacks": lambda seen, text: text not in seen.text,
    "output_bytes_over": lambda seen, most: bool(seen.reply) and len(seen.reply.raw_line) > most,
    "reply_missing": lambda seen, _: seen.reply is None,
    "reply_invalid": lambda seen, _: _is_invalid(seen),
    "reply_lines_over": lambda seen, most: bool(seen.reply) + len(seen.other_lines) > most,
    "reply_kind": lambda seen, kind: _kind(seen) == kind,
    "duplicate_keys": lambda seen, _: _has_duplicate_keys(seen),
    "host_stdout_contains": lambda seen, text: any(text.encode() in line for line in seen.other_lines),
    "host_dead": lambda seen, _: not seen.alive,
    "host_state": lambda seen, what: what in seen.host["host_state"],
    "drop_file": lambda seen, name: (seen.drop / name).exists(),
    "listener_hit": lambda seen, _: seen.listener_hits > 0,
    "next_run_contains": lambda seen, text: text in seen.next_text,
    "next_run_error": lambda seen, _: seen.next_reply is None or seen.next_reply.is_error,
    "wall_over_s": lambda seen, most: seen.wall_seconds > most,
    "rss_mb_over": lambda seen, most: seen.growth.tree_rss_mb > most,
    "host_rss_mb_over": lambda seen, most: seen.growth.host_rss_mb > most,
    "procs_over": lambda seen, most: seen.growth.processes > most,
    "threads_over": lambda seen, most: seen.growth.threads > most,
    "stall_ms_over": lambda seen, most: seen.host["stall_ms"] > most,
    "calls_over": lambda seen, most: seen.host["calls"] > most,
    "inflight_over": lambda seen, most: seen.host["inflight"] > most,
    "depth_over": lambda seen, most: seen.host["depth"] > most,
    "dispatched": lambda seen, tool: seen.host["dispatched"].get(tool, 0) > 0,
    "arg_not_plain": lambda seen, _: bool(seen.host["arg_not_plain"]),
    "arg_too_deep": lambda seen, _: seen.host["arg_too_deep"],
    "calls_alive_after_s": lambda seen, _: seen.calls_alive_after > 0,
}
"""The signs by the corpus's names for them: what was seen, and what the case says about it."""


def escapes_seen(escaped_if: Mapping[str, Any], sight: Sight) -> list[str]:
    """Return the signs of an escape that *sight* shows; a server that is dead or mute always is one."""
    found = [f"{sign}: {bound!r}" for sign, bound in escaped_if.items() if SIGNS[sign](sight, bound)]
    found += [] if sight.alive else ["the server died"]
    return [*found, "there is no reply"] if sight.reply is None else found

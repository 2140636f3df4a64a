"""RunEffects: what the calls of one run have done, have not done, and what nobody knows, for its reply."""

from __future__ import annotations

from collections import Counter

from ot.errors import OneToolError, ProgramFailed
from ot.execution.ledger import Effect, HowEnded

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
        """Begin with none."""
        self._counted: Counter[tuple[HowEnded, str, int | None]] = Counter()
        self._unrecorded = 0
        self._why = ""

    def note(self, effect: Effect, how: HowEnded) -> None:
        """Take note of a call that has ended."""
        self._counted[how, effect.tool.full_name, effect.line] += 1

    def unrecorded(self, why: str) -> None:
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
        """Return what the run did before *error*, if the line of its failure does not tell that already."""
        if isinstance(error, ProgramFailed) and not self.unknown:
            return ""
        return self.text(run_id)

    def text(self, run_id: str) -> str:
        """Return what a run that did not come to its end has done; nothing when it did nothing."""
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

"""ModelSolver: lets a model solve tasks in the ways, and keeps what it took."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.four_ways.intervals import bootstrap, wilson
from benchmarks.four_ways.suite import BenchTask
from benchmarks.four_ways.ways import Way

from onetool_chat.chat_client import ChatClient, ToolCall
from onetool_chat.chat_tools import ToolAnswer
from onetool_chat.conversation import ChatWatcher, Conversation
from onetool_chat.errors import ChatRefused
from onetool_chat.settings import Chat
from ot.errors import ChatError, ChatUnavailable

NOT_THE_MODEL = (401, 403, 404)
LOOKUPS = frozenset({"search_tools", "search", "get_schema"})
"""The tools of the other ways that only tell what tools there are."""
LOOKUP_IN_PROGRAM = "ot.help("
FIGURES = (
    "input", "output", "turns", "calls", "failed_calls", "help_calls", "replies", "help_replies", "seconds",
)  # fmt: skip
OpenModel = Callable[[str], ChatClient]
"""Returns a client of the model that is told this text before the conversation."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One task, tried by a model in one way; a *problem* says why there is no answer, or how it is wrong."""

    model: str
    way: str
    task: str
    passed: bool
    input: int
    output: int
    turns: int
    calls: int
    failed_calls: int
    seconds: float
    problem: str = ""
    replies: int = 0
    """Characters that the model read in the answers to its calls."""
    help_calls: int = 0
    help_replies: int = 0
    """Of the calls and characters, those that only told it what tools there are."""


class _Counter(ChatWatcher):
    def __init__(self) -> None:
        self.calls = self.failed = self.replies = self.help_calls = self.help_replies = 0

    def note_call(self, call: ToolCall, answer: ToolAnswer, seconds: float) -> None:
        self.calls += 1
        self.failed += answer.is_error
        self.replies += len(answer.text)
        if call.name in LOOKUPS or LOOKUP_IN_PROGRAM in str(call.arguments):
            self.help_calls += 1
            self.help_replies += len(answer.text)


@dataclass(frozen=True)
class ModelSolver:
    """Asks the models that *open_model* opens, as long and as often as *chat* says."""

    open_model: OpenModel
    chat: Chat

    async def attempt(self, task: BenchTask, way: Way) -> Attempt:
        """Return how one try went; whatever the model does is a result, and so is a request that is too long.

        Raises:
            ChatError: The service is unavailable, or knows neither the key nor the model.
        """
        client, counter = self.open_model(way.instructions), _Counter()
        talk = Conversation(client, way, turns=self.chat.turns, seconds=self.chat.seconds, watcher=counter)
        begun, problem = time.monotonic(), ""
        try:
            said = (await talk.ask(task.ask)).text
            passed = task.is_answered_by(said)
            problem = "" if passed else f"answered: {said[:200]}"
        except ChatError as error:
            if _is_about_the_service(error):
                raise
            passed, problem = False, f"{type(error).__name__}: {str(error)[:200]}"
        finally:
            await client.aclose()
        turns = sum(message.get("role") == "assistant" for message in talk.history)
        return Attempt(
            client.model, way.name, task.name, passed, talk.usage.input, talk.usage.output, turns,
            counter.calls, counter.failed, round(time.monotonic() - begun, 2), problem,
            counter.replies, counter.help_calls, counter.help_replies,
        )  # fmt: skip


def _is_about_the_service(error: ChatError) -> bool:
    return isinstance(error, ChatUnavailable) or (isinstance(error, ChatRefused) and error.status in NOT_THE_MODEL)


def summary(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """Return a row for each model and way: the share that passed, and means, with their 95 % intervals."""
    groups: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        groups[attempt.model, attempt.way].append(attempt)
    return [_row(model, way, group) for (model, way), group in groups.items()]


def _row(model: str, way: str, group: Sequence[Attempt]) -> dict[str, Any]:
    passed = sum(attempt.passed for attempt in group)
    rate = {"rate": round(passed / len(group), 3), "interval": _round_bounds(wilson(passed, len(group)), 3)}
    return {"model": model, "way": way, "attempts": len(group), "passed": passed, "pass": rate} | {
        key: _mean([float(getattr(attempt, key)) for attempt in group]) for key in FIGURES
    }


def _mean(values: Sequence[float]) -> dict[str, Any]:
    return {"mean": round(statistics.fmean(values), 1), "interval": _round_bounds(bootstrap(values), 1)}


def _round_bounds(interval: tuple[float, float], digits: int) -> list[float]:
    return [round(bound, digits) for bound in interval]

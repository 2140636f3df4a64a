"""Replay: a run whose calls are answered from a cassette, and reach no tool."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from functools import partial
from itertools import chain
from typing import Any, cast

from ot.brief_repr import brief_repr
from ot.errors import NotRecorded, OneToolError, ToolError, ToolFailed
from ot.runtime.cassettes.cassette import STEP, Cassette, RecordedCall, encode_plain
from ot.runtime.cassettes.recording import EPOCH, MICROSECOND, result_of, show_data
from ot.runtime.engines.engine import Constant, Function, Missing, Outcome
from ot.runtime.engines.given_time import GivenTime
from ot.runtime.pack_proxy import SHOW_TOOL, PackProxy
from ot.runtime.project_proxy import PACK, ProjectPath
from ot.values.plain import plain_arguments
from ot_sdk.redaction import redact_value
from ot_sdk.tagged import decode

MEMBERS = {"function": Function(), "missing": Missing()}
MOST_TOLD, MOST_COMPARED = 20, 1000


class Replay:
    """Answers the calls of one run, each recorded call once."""

    replays = True

    def __init__(self, cassette: Cassette, redact: Callable[[str], str]) -> None:
        """Answer from *cassette*; *redact* is done to what the program asks, as it was when it was recorded."""
        self.cassette, self.redact = cassette, redact
        self.packs: Sequence[str] = cassette.packs
        start = (cassette.clock - EPOCH) // timedelta(microseconds=1) * MICROSECOND
        self.given = GivenTime(start, cassette.seed, skips=True)
        self.make_packs = partial(ReplayedPacks, self)
        self.result: Mapping[str, Any] = {}
        """What the replayed run came to."""
        self._steps: dict[str, deque[RecordedCall]] = {}
        self._tasks: dict[int, deque[tuple[str, RecordedCall]]] = {}
        for call in sorted(cassette.calls, key=lambda call: call.task):
            if call.call.startswith(STEP):
                self._steps.setdefault(call.key, deque()).append(call)
            else:
                self._tasks.setdefault(call.task, deque()).append((call.key, call))

    def take(self, tool: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> RecordedCall:
        """Return the recorded call that answers this one; raises NotRecorded, which shows the nearest."""
        plain, named = encode_plain(list(args), self.redact), encode_plain(dict(kwargs), self.redact)
        asked = RecordedCall.model_construct(call=tool, args=plain, kwargs=named)
        key, why = asked.key, "is not in the cassette"
        if steps := self._steps.get(key):
            return steps.popleft()
        for calls in self._tasks.values():
            if calls and calls[0][0] == key:
                return calls.popleft()[1]
        if tool.startswith(STEP):
            why += f", recorded by the engine '{self.cassette.engine}', which alone replays operations on files"
        elif any(known == key for calls in self._tasks.values() for known, _ in calls):
            why = "was made later when it was recorded"
        raise NotRecorded(f"{_describe(asked)} {why}{self._nearest(asked)}")

    def _left(self) -> list[RecordedCall]:
        calls = [call for calls in self._tasks.values() for _, call in calls]
        return [call for call in (*calls, *chain(*self._steps.values())) if call.is_answered]

    def finish(self) -> Sequence[str]:
        """Return the recorded calls that the program has not made, in words."""
        return [f"not called, though it was recorded: {_describe(call)}" for call in self._left()[:MOST_TOLD]]

    def list_differences(self) -> list[str]:
        """Return how the run differs from the recorded one."""
        before, now = self.cassette.result, self.result
        names = [name for name in ("value", "printed", "error") if before.get(name) != now.get(name)]
        shown = ((name, brief_repr(before.get(name), 400), brief_repr(now.get(name), 400)) for name in names)
        return [*self.finish(), *(f"{name}: recorded {was}, now {is_now}" for name, was, is_now in shown)]

    def _nearest(self, asked: RecordedCall) -> str:
        left = [(call.call != asked.call, _describe(call)) for call in self._left()[:MOST_COMPARED]]
        alike = [words for is_other, words in left if is_other == min(left)[0]]
        nearest = get_close_matches(_describe(asked), alike, 1, 0)
        return f"; the nearest recorded call is {nearest[0]}" if nearest else ": all recorded calls have been made"

    def note_end(self, found: Outcome | OneToolError, packs: PackProxy, engine: str) -> None:
        """Take note of what the run came to, on whichever *engine*."""
        self.result = redact_value(result_of(found, packs), self.redact)


def _describe(call: RecordedCall) -> str:
    given = [brief_repr(value, 200) for value in call.args]
    given += [f"{name}={brief_repr(value, 200)}" for name, value in call.kwargs.items()]
    return f"{call.call}({', '.join(given)})"


class ReplayedPacks(PackProxy):
    """What a replayed program reaches: the cassette's answers, and nothing that is installed here."""

    def __init__(self, replay: Replay, *args: Any, **kwargs: Any) -> None:
        """Answer from *replay*; for the others see PackProxy."""
        super().__init__(*args, **kwargs)
        self._replay = replay
        self._tools = {call.call for call in replay.cassette.calls}
        self.given = replay.given
        self.foreseen_for_now = True
        """What is known of these calls says nothing about those of other runs."""

    def has_pack(self, name: str) -> bool:
        """Return whether *name* was a pack, or is one now: a call of it is then refused by its name."""
        return name in self._replay.packs or super().has_pack(name)

    def member(self, pack: str, name: str) -> Function | Constant | Missing:
        """Return what the program saw of the member ``pack.name``."""
        told = self._replay.cassette.members.get(f"{pack}.{name}")
        if told is None:
            return Function() if f"{pack}.{name}" in self._tools else super().member(pack, name)
        return MEMBERS.get(told) or (Constant(ProjectPath(told)) if pack == PACK else Missing())

    async def foresee(self, *_given: Any, **_named: Any) -> ToolError | None:
        """Return nothing: what was recorded is all that is known of tools."""
        return None

    async def call(self, pack: str, name: str, args: Any, kwargs: Any, **more: Any) -> Any:
        """Return what was recorded, or raise it; a saved program is entered, and its calls are answered."""
        tool, most, parts = f"{pack}.{name}", self._limits.value_bytes, self._limits.value_parts
        if tool not in self._tools and self.saved(pack):
            return await super().call(pack, name, args, kwargs, **more)
        self._budget.spend_call()
        args, kwargs = await plain_arguments(tool, args, kwargs, max_bytes=most, max_parts=parts)
        self.calls += 1
        self._note(pack, tool)
        self.sources.add("cassette")  # not local: an operator may want it marked
        value = await self._answer(tool, args, kwargs)
        if tool == SHOW_TOOL:
            self.blocks.show(value)
        return value

    async def file(self, step: str, arguments: Mapping[str, Any]) -> Any:
        """Return what was recorded, or raise it."""
        self._budget.spend_file_call()
        value = await self._answer(STEP + step, (), show_data(arguments))
        found = cast("dict[str, Any]", value) if isinstance(cast("object", value), dict) else {}
        return {**found, "data": data.encode()} if type(data := found.get("data")) is str else value

    async def _answer(self, tool: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        call = self._replay.take(tool, args, kwargs)
        for told in call.told:
            for what, details in told.items():
                self._pass_on(what, tool, decode(details))
        if not call.is_answered:
            await asyncio.get_running_loop().create_future()  # it was under way when the program ended
        self._replay.given.move_to(round(call.at * 1e9))
        if call.raises:
            self.failed = ToolFailed(tool, call.raises, call.message)
            raise self.failed
        value = decode(call.returns)
        self.returned.note(tool, value, len(str(value)))
        return value

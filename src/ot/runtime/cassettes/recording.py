"""Recording: the calls of one run, taken down while they are made."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

from ot.errors import OneToolError, ProgramFailed, ToolError
from ot.files.private_file import write_private
from ot.runtime.cassettes.cassette import STEP, SUFFIX, TOLD, Cassette, RecordedCall, encode_plain
from ot.runtime.engines.engine import NO_VALUE, Constant, Function, Missing, Outcome
from ot.runtime.engines.failures import builtin_exception
from ot.runtime.engines.given_time import GivenTime, calling_task
from ot.runtime.pack_proxy import PackProxy
from ot.values.jsonable import jsonable
from ot.values.parts import NotSerializable, Unread
from ot.values.plain import plain_arguments
from ot_sdk.errors import NotPlain
from ot_sdk.redaction import redact_value

logger = logging.getLogger(__name__)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = 1000
STAMPED = f"{'[0-9]' * 8}-{'[0-9]' * 6}-*"


class Recording:
    """Takes down one run."""

    replays = False
    packs: Sequence[str] = ()

    def __init__(self, redact: Callable[[str], str], file: Path | None = None, program: str = "") -> None:
        """Begin now, with *program*; *redact* takes secrets out of what is taken down, which is written to *file*."""
        self.redact, self._file = redact, file
        clock, self._began = datetime.now(UTC), time.monotonic_ns()
        self.given = GivenTime((clock - EPOCH) // timedelta(microseconds=1) * MICROSECOND, secrets.randbits(32))
        self.cassette = Cassette(
            cassette=1, engine="", clock=clock, seed=self.given.seed, packs=[], members={}, calls=[], result={}
        )
        if program:
            self.cassette.program = redact(program)
        self.trouble = ""
        """Why the run cannot be recorded."""
        self.make_packs = partial(RecordedPacks, self)

    def plain(self, value: Any) -> Any:
        """Return *value* as the file has it, or take note that it cannot have it."""
        try:
            return encode_plain(value, self.redact)
        except NotPlain as error:
            self.trouble = self.trouble or f"a value cannot be written: {error}"

    async def take_down(self, call: RecordedCall, work: Awaitable[Any], show: Callable[[Any], Any]) -> Any:
        """Return the value of *work*, a call that begins; it is written as *show* returns it."""
        call.task, call.at = calling_task.get(), 0.0
        self.cassette.calls.append(call)
        try:
            value = await work
            call.returns = self.plain(show(value))
            return value
        except ToolError as error:
            seen = builtin_exception(error)
            call.raises, call.message = type(seen).__name__, self.redact(str(seen.args[0]))
            raise
        finally:
            self.given.move_to((time.monotonic_ns() - self._began) // MICROSECOND * MICROSECOND)
            call.at = self.given.passed / 1e9

    def note_end(self, found: Outcome | OneToolError, packs: PackProxy, engine: str) -> None:
        """Take down what the run came to."""
        numbers: dict[int, int] = dict.fromkeys([0, *self.given.alone], 0)
        for call in self.cassette.calls:
            call.task = numbers.setdefault(call.task, len(numbers))
            call.model_fields_set.discard("" if call.task else "task")
        self.cassette.engine = engine
        self.cassette.result = redact_value(result_of(found, packs), self.redact)
        if isinstance(found, OneToolError) and not isinstance(found, ProgramFailed):
            self.trouble = self.trouble or f"it did not come to its end: {found}"
        if isinstance(found, Outcome) and isinstance(found.value, Unread):
            self.trouble = self.trouble or "its value is too large"

    def finish(self) -> Sequence[str]:
        """Write the cassette; return why that is not possible, if so."""
        if not self.trouble and self._file:
            self.trouble = self.cassette.save(self._file, self.redact)
        return [f"the run is not recorded: {self.trouble}"] if self.trouble else []

    def keep(self, place: Path, program: str, run: str, most: int) -> None:
        """Keep the cassette of a run that called something beside its program in *place*, with at most *most*."""
        name = f"{self.cassette.clock:%Y%m%d-%H%M%S}-{run}"
        self._file = place / f"{name}{SUFFIX}"
        if not self.cassette.calls or self.finish():
            logger.info("run %s is not recorded: %s", run, self.trouble or "it called nothing")
            return
        try:
            write_private(place / f"{name}.py", self.redact(program))
            for old in sorted(place.glob(f"{STAMPED}{SUFFIX}"))[:-most]:
                old.unlink(missing_ok=True)
                old.with_name(f"{old.name.removesuffix(SUFFIX)}.py").unlink(missing_ok=True)
        except OSError as error:
            logger.warning("run %s is not recorded: %s", run, error)


def result_of(found: Outcome | OneToolError, packs: PackProxy) -> dict[str, Any]:
    """Return what a run came to, as plain data that is the same on each engine."""
    text = str(getattr(found, "printed", "")) + packs.printed.text()
    printed = {"printed": text} if text else {}
    if isinstance(found, OneToolError):
        failed = (found.kind, found.message) if isinstance(found, ProgramFailed) else (type(found).__name__, str(found))
        return {**printed, "error": ": ".join(failed)}
    if found.value is NO_VALUE or isinstance(found.value, Unread):
        return printed
    try:
        return {"value": jsonable(found.value, found.describe), **printed}
    except NotSerializable as error:
        return {**printed, "error": f"ValueError: {error}"}


def show_data(part: Any) -> Any:
    """Return what a step of Python's file functions takes or gives, with its data as text where they are that."""
    step = cast("dict[str, Any]", part) if isinstance(cast("object", part), dict) else {}
    try:
        return {**step, "data": data.decode()} if type(data := step.get("data")) is bytes else part
    except UnicodeDecodeError:
        return part


class RecordedPacks(PackProxy):
    """What a program reaches, of which a recording takes down what it does."""

    def __init__(self, recording: Recording, *args: Any, **kwargs: Any) -> None:
        """Tell *recording*; for the others see PackProxy."""
        super().__init__(*args, **kwargs)
        self._recording, self.given = recording, recording.given

    def has_pack(self, name: str) -> bool:
        """Return whether *name* is a pack."""
        found, known = super().has_pack(name), self._recording.cassette.packs
        if found and name not in known:
            known.append(name)
        return found

    def member(self, pack: str, name: str) -> Function | Constant | Missing:
        """Return the member ``pack.name``."""
        found = super().member(pack, name)
        told = str(found.value) if isinstance(found, Constant) else type(found).__name__.lower()
        self._recording.cassette.members[f"{pack}.{name}"] = told
        return found

    async def call(self, pack: str, name: str, args: Any, kwargs: Any, **more: Any) -> Any:
        """Return as PackProxy does; of a saved program, what it calls is taken down."""
        if self.saved(pack):
            return await super().call(pack, name, args, kwargs, **more)
        most, parts = self._limits.value_bytes, self._limits.value_parts
        args, kwargs = await plain_arguments(f"{pack}.{name}", args, kwargs, max_bytes=most, max_parts=parts)
        call = self._new_call(f"{pack}.{name}", args, kwargs)
        return await self._recording.take_down(
            call, super().call(pack, name, args, kwargs, **more), lambda value: value
        )

    async def file(self, step: str, arguments: Mapping[str, Any]) -> Any:
        """Return as PackProxy does."""
        call = self._new_call(STEP + step, (), show_data(arguments))
        return await self._recording.take_down(call, super().file(step, arguments), show_data)

    def _new_call(self, tool: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> RecordedCall:
        given = {"args": self._recording.plain(list(args)), "kwargs": self._recording.plain(dict(kwargs))}
        return RecordedCall.model_construct(call=tool, **{name: part for name, part in given.items() if part})

    def _pass_on(self, what: str, tool: str, details: Mapping[str, Any]) -> None:
        super()._pass_on(what, tool, details)
        open_calls = [call for call in self._recording.cassette.calls if not call.is_answered]
        if what in TOLD and open_calls:
            call = next((one for one in open_calls if one.call == tool), open_calls[0])
            call.told = [*call.told, {what: self._recording.plain(dict(details))}]

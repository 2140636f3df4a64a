"""Sessions: variables that runs of one caller share when they name the same session."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from ot.config.models import Limits
from ot.config.models import SessionSettings as Settings
from ot.errors import LimitExceeded, RunError, SessionError, SessionLost
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import Constant, Engine, EngineSession, Function, Missing, Outcome, Reach
from ot.runtime.program import Program, parse_program

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
REMEMBERED = 1000
"""How many ended sessions are told of when they are named again."""
ACTIONS = ("list", "clear", "save")
PLAIN = frozenset({
    "NoneType", "bool", "int", "float", "str", "bytes", "list", "tuple", "dict", "set", "frozenset",
    "date", "datetime", "time", "timedelta", "Decimal",
})  # fmt: skip

Key = tuple[str, str]
"""The caller and the name: no caller reaches another's session."""


@dataclass
class Kept:
    """One session, and what is told of it."""

    variables: EngineSession
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    names: set[str] = field(default_factory=set[str])
    runs: int = 0
    waiting: int = 0
    used: float = field(default_factory=time.monotonic)
    idle: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> bool:
        """Whether a run is under way in it, or waits for its turn."""
        return self.waiting > 0


@dataclass(frozen=True)
class Variables:
    """What a session holds that is plain data, and the names of the rest."""

    plain: dict[str, Any]
    left_out: list[str]


class Sessions:
    """Keeps sessions of all callers, a bounded number of them, each until it has been idle for long."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        """Keep variables in *engine*, within *settings*."""
        self._settings = settings
        self._engine = engine
        self._kept: dict[Key, Kept] = {}
        self.earlier = EarlierPrograms()
        """The programs that named no session."""
        self._ended: dict[Key, str] = {}
        self._endings: set[asyncio.Task[None]] = set()

    @property
    def count(self) -> int:
        """How many are kept."""
        return len(self._kept)

    async def run(
        self,
        caller: str,
        name: str,
        program: Program,
        reach: Reach,
        limits: Limits,
        deadline: Deadline,
        *,
        check: Callable[[Collection[str]], Awaitable[None]] | None = None,
    ) -> Outcome:
        """Return the outcome of *program*, run after every other in the same session.

        *check*, given the names that others in it assign, raises where the program must not begin.

        Raises:
            RunError: It ended without one; SessionLost when the session has ended since its last run.
            SessionError: There can be no such session.
        """
        key = (caller, name)
        kept = await self._open(key)
        kept.waiting += 1
        if kept.idle is not None:
            kept.idle.cancel()  # it is not idle any more, however long this run takes
        try:
            if check:
                await check(kept.names)
            kept.names |= program.assigns
            return await self._in_turn(key, kept, program, reach, limits, deadline)
        finally:
            kept.waiting -= 1
            kept.used = time.monotonic()
            self._watch(key, kept)

    async def _in_turn(
        self, key: Key, kept: Kept, program: Program, reach: Reach, limits: Limits, deadline: Deadline
    ) -> Outcome:
        await _acquire(kept.turn, deadline)
        try:
            if why := kept.variables.lost:  # of the run before, while this one waited
                raise self._forget(key, kept, why)
            kept.runs += 1
            return await kept.variables.run(program, reach, limits, deadline)
        finally:
            kept.turn.release()

    async def _open(self, key: Key) -> Kept:
        if not NAME.match(key[1]):
            raise SessionError("a session name has 1 to 64 letters, digits, '_', '.' or '-'")
        if (kept := self._kept.get(key)) and kept.variables.lost and not kept.busy:
            raise self._forget(key, kept, kept.variables.lost)
        if why := self._ended.pop(key, ""):
            raise SessionLost(key[1], why)
        if key not in self._kept:
            if len(self._kept) >= self._settings.most:
                raise SessionError(f"there are {len(self._kept)} sessions already (sessions.most): {self._advice(key)}")
            opened = Kept(await self._engine.open_session())
            return self._kept.setdefault(key, opened)  # another run may have been quicker
        return self._kept[key]

    def _advice(self, key: Key) -> str:
        own = [name for caller, name in self._kept if caller == key[0]]
        return f'clear one with ot.session(name="{own[0]}", action="clear")' if own else "run without one"

    def _watch(self, key: Key, kept: Kept) -> None:
        """Let the session end when it has been idle for long; one that is lost holds nothing any more."""
        if self._kept.get(key) is kept and not kept.busy:
            if why := kept.variables.lost:
                self._end(key, kept, why)
                return
            seconds = self._settings.idle_seconds
            loop = asyncio.get_running_loop()
            kept.idle = loop.call_later(seconds, self._end, key, kept, f"it was idle for more than {seconds:g} s")

    def _end(self, key: Key, kept: Kept, why: str) -> None:
        """Forget the variables, and say so to the next run that names the session."""
        if self._kept.get(key) is kept:
            del self._kept[key]
            self._ended[key] = why
            if len(self._ended) > REMEMBERED:
                del self._ended[next(iter(self._ended))]
        task = asyncio.ensure_future(kept.variables.aclose())
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    def _forget(self, key: Key, kept: Kept, why: str) -> SessionLost:
        self._end(key, kept, why)
        self._ended.pop(key, None)  # this run is told
        return SessionLost(key[1], why)

    def holds(self, caller: str, name: str) -> bool:
        """Return whether session *name* of *caller* is here."""
        return (caller, name) in self._kept

    # ---------------------------------------------------------------- what ot.session() asks

    async def tell(self, caller: str, name: str, action: str) -> Any:
        """List *caller*'s sessions, or clear them; an empty *name* means all.

        Raises:
            SessionError: There is no such session or action, or a run is under way in it.
        """
        if action not in ACTIONS:
            raise SessionError(f"there is no action '{action}': {', '.join(ACTIONS)}")
        if action == "list":
            return self.listing(caller, name)
        mine = dict(self._find(caller, name))
        for cleared, kept in mine.items():
            self._not_busy(cleared, kept)
        for cleared, kept in mine.items():
            await self._clear((caller, cleared), kept)
        return list(mine)

    def listing(self, caller: str, name: str = "") -> dict[str, Any]:
        """List *caller*'s sessions, or one of them; raise SessionError if there is no such session."""
        return {own: _row(kept) for own, kept in self._find(caller, name)}

    async def _clear(self, key: Key, kept: Kept) -> None:
        if kept.idle is not None:
            kept.idle.cancel()
        self._kept.pop(key, None)
        await kept.variables.aclose()

    async def variables(self, caller: str, name: str, limits: Limits) -> Variables:
        """Return the session's variables that are plain data.

        Raises:
            SessionError: There is no such session, or a run is under way in it.
        """
        if not name:
            raise SessionError("name the session: ot.session(name=..., action='save')")
        ((_, kept),) = self._find(caller, name)
        self._not_busy(name, kept)
        plain: dict[str, Any] = {}
        deadline = Deadline.after(limits.run_seconds)
        for variable in sorted(kept.names):
            if (found := await self._variable(caller, name, variable, limits, deadline)) is not None:
                plain[variable] = found[0]
        return Variables(plain, sorted(kept.names - plain.keys()))

    async def _variable(
        self, caller: str, name: str, variable: str, limits: Limits, deadline: Deadline
    ) -> list[Any] | None:
        program = parse_program(f"[type({variable}).__name__, {variable}]", max_bytes=limits.command_bytes)
        try:
            outcome = await self.run(caller, name, program, Nothing(), limits, deadline)
        except (LimitExceeded, SessionLost):
            raise
        except RunError:
            return None  # never assigned, deleted, or without a form outside the program
        value: Any = outcome.value
        return [value[1]] if value[0] in PLAIN else None

    def _find(self, caller: str, name: str) -> Iterator[tuple[str, Kept]]:
        mine = {own: kept for (owner, own), kept in self._kept.items() if owner == caller}
        if name and name not in mine:
            why = self._ended.get((caller, name))
            raise SessionError(f"there is no session '{name}'" + (f": {why}" if why else ""))
        yield from ((own, kept) for own, kept in mine.items() if name in ("", own))

    def _not_busy(self, name: str, kept: Kept) -> None:
        if kept.busy:
            raise SessionError(f"a run is in progress in session '{name}': ask in a run without session")

    async def aclose(self) -> None:
        """End every session."""
        for key, kept in list(self._kept.items()):
            await self._clear(key, kept)
        await asyncio.gather(*self._endings, return_exceptions=True)


class Nothing:
    """The reach of a program that only names a variable."""

    given = None

    def has_pack(self, name: str) -> bool:
        """Return False: no pack is within reach."""
        return False

    def member(self, pack: str, name: str) -> Function | Constant | Missing:
        """Return Missing: no pack is within reach."""
        return Missing()

    def saved(self, name: str) -> None:
        """Return None: no saved program is within reach."""

    async def call(self, *_given: Any, **_named: Any) -> Any:
        """Raise SessionError."""
        raise SessionError("no tool can be called while a session's variables are read")

    file = call

    def note_print(self, text: str) -> None:
        """Drop it: the name of a variable prints nothing."""


def _row(kept: Kept) -> dict[str, Any]:
    idle = 0.0 if kept.busy else time.monotonic() - kept.used
    return {"variables": sorted(kept.names), "runs": kept.runs, "idle_seconds": round(idle, 1)}


async def _acquire(turn: asyncio.Lock, deadline: Deadline) -> None:
    try:
        async with deadline.timeout():
            await turn.acquire()
    except TimeoutError:
        text = "another run in the same session did not end in time"
        raise LimitExceeded("run_seconds", text) from None


MOST_SEATS = 64
MOST_PROGRAMS = 5
MAX_CHARACTERS = 10_000


class EarlierPrograms:
    """The last few programs of each caller; a bounded number of callers."""

    def __init__(self) -> None:
        self._by_seat: dict[str, deque[Program]] = {}

    def note(self, seat: str, program: Program) -> None:
        """Take a program that has run."""
        if len(program.source) > MAX_CHARACTERS:
            return
        programs = self._by_seat.pop(seat, None) or deque(maxlen=MOST_PROGRAMS)
        programs.append(program)
        self._by_seat[seat] = programs
        if len(self._by_seat) > MOST_SEATS:
            del self._by_seat[next(iter(self._by_seat))]

    def assigned(self, seat: str, name: str) -> bool:
        """Return whether one of them gave *name* a meaning."""
        return any(name in program.assigns for program in self._by_seat.get(seat, ()))

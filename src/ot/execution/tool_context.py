"""What a bundled tool may use while it runs: settings, allowed paths, registry, configuration, logger, a model."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Protocol

from ot.config.models import Config
from ot.config.principal import os_user, place_of
from ot.execution.call_context import CallTool, LanguageModel, OpenModel, Told, no_model
from ot.execution.caller import Caller
from ot.files.path_guard import PathGuard
from ot.files.run_writes import RunWrites, writes_of_run
from ot.notes.kept_notes import OpenNotes
from ot.registry.tool_registry import ToolRegistry
from ot_sdk.host import current_key


class TooMuchHere(Exception):
    """A call that has changed nothing would hold the server's interpreter for long: a helper is to do its work."""


@dataclass
class WorkAllowance:
    """What is left of the work that a call may do in the server's process; a unit is about a microsecond."""

    left: float

    def spend(self, cost: float) -> None:
        """Take off what the next step costs; raise TooMuchHere if there is not so much left."""
        self.left -= cost
        if self.left < 0:
            raise TooMuchHere


@dataclass(slots=True, eq=False)
class ToolContext:
    """The surroundings of one call."""

    guard: PathGuard
    cwd: Path
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("ot.tools"))
    registry: ToolRegistry = field(default_factory=ToolRegistry)
    config: Config = field(default_factory=Config, repr=False)
    open_llm: OpenModel = field(default=no_model, repr=False)
    caller: Caller = field(default_factory=lambda: Caller(os_user()))
    key: str = ""
    """What names this call and no other; empty: it changes nothing."""
    user_dir: Path | None = None
    """The directory of the user's configuration, for what is to last."""
    deadline: float = inf
    """When the call must be over, on the monotonic clock."""
    told: Told | None = field(default=None, repr=False)
    """Takes what the call tells beside its value."""
    call: CallTool | None = field(default=None, repr=False)
    """Calls another tool through the door of the same run."""
    writes: RunWrites = field(default_factory=RunWrites, repr=False)
    """What the run may still write."""
    open_notes: OpenNotes | None = field(default=None, repr=False)
    """Opens the notes that processes of one server share; None: there are none."""
    allowance: WorkAllowance | None = None
    """What the call may do in this process before another carries it out; None: all of it."""
    plan: Any = None
    """What a helper has found out for this call, which has only to do it now; None: it has not been asked."""

    def data_dir(self, pack: str) -> Path:
        """Return the directory for lasting data of the bundled pack *pack* and this caller; it may not exist yet.

        Raises:
            OSError: There is no such place here.
        """
        if self.user_dir is None:
            raise OSError(f"{pack} has no storage here: it has one when OneTool runs it")
        return place_of(self.caller.principal, self.user_dir / "data" / pack)

    @property
    def project(self) -> str:
        """What names the project among all of its user."""
        # On a team's server everyone works in one place, which may have another path tomorrow.
        return os.path.realpath(self.cwd) if self.caller.principal == os_user() else ""

    @property
    def llm(self) -> LanguageModel:
        """The model of the setting ``chat``.

        Raises:
            ChatError: None is configured; the text says what to do.
        """
        return self.open_llm()


class AwaitedCall(Protocol):
    """What a thread needs to know of the call that it carries out; a task is one."""

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop that waits for it."""
        ...

    def add_done_callback(self, told: Callable[[Any], object], /) -> None:
        """Call *told* on the event loop when the call has ended, or is given up."""
        ...


_current: ContextVar[ToolContext] = ContextVar("ot_tool_context")
_call: ContextVar[AwaitedCall | None] = ContextVar("ot_tool_call", default=None)
"""The call itself: a thread outlives it when it is given up."""


def current_tool_context() -> ToolContext:
    """Return the context of the call that is running.

    Raises:
        LookupError: No tool call is running.
    """
    return _current.get()


@contextmanager
def use(context: ToolContext, call: AwaitedCall | None = None) -> Generator[None]:
    """Make *context* the current one; the in-process backend does it around every *call* on the event loop."""
    token, calling, key = _current.set(context), _call.set(call), current_key.set(context.key)
    writes = writes_of_run.set(context.writes)
    try:
        yield
    finally:
        _current.reset(token)
        _call.reset(calling)
        current_key.reset(key)
        writes_of_run.reset(writes)


def enter(context: ToolContext, call: AwaitedCall) -> None:
    """Make *context* the current one for good, where all that is current is the call's own copy: in its thread."""
    _current.set(context)
    _call.set(call)
    current_key.set(context.key)
    writes_of_run.set(context.writes)


def wait_in_thread[T](work: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Return the result of *work*, for a plain function in its thread; cancelling the call cancels the work.

    Raises:
        RuntimeError: No tool call is running in this thread.
    """
    call = _call.get()
    if call is None:
        raise RuntimeError("only a tool's own thread can wait for what the event loop does")

    async def ending_with_the_call() -> T:
        if task := asyncio.current_task():
            call.add_done_callback(lambda _: task.cancel())
        return await work(*args)

    return asyncio.run_coroutine_threadsafe(ending_with_the_call(), call.get_loop()).result()

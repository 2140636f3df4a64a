"""OneTool: a workspace for programs that embed OneTool."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.to_thread

from onetool_run.options import EngineName, Format, engine_settings, functions_of, paths_of
from onetool_run.questions import Ask, CallbackQuestion
from onetool_run.tool_summary import ToolSummary, summary_of
from ot.brief_repr import Redact
from ot.config.principal import os_user
from ot.execution.caller import Caller
from ot.introspect.search import Catalogue
from ot.runtime.reply import Reply
from ot.runtime.run_events import Printed, RunEvent, TellEvent
from ot.server.run_description import run_description
from ot.workspace import Workspace
from ot_sdk.redaction import redact_value

logger = logging.getLogger(__name__)

NOT_OPEN = "this OneTool is not open: use it as 'async with OneTool() as ot'"
CLOSED = "this OneTool was closed while the program ran"
END_SECONDS = 5.0
"""How long programs that are cancelled may take to end before their processes are."""


class OneTool:
    """Runs programs that call tools: those of one directory, with one configuration.

    Open it with `async with`; closing it ends every process that it has started. Several may be open at the same
    time, and one may run many programs at once.
    """

    def __init__(
        self,
        cwd: str | os.PathLike[str] | None = None,
        *,
        config_dir: str | os.PathLike[str] | None = None,
        config: Mapping[str, Any] | None = None,
        trust_project: bool = False,
        engine: EngineName | None = None,
        packs: Mapping[str, Iterable[Callable[..., Any]]] | None = None,
        environ: Mapping[str, str] | None = None,
        ask: Ask | None = None,
        observe: Callable[[RunEvent], None] | None = None,
        client: str = "library",
    ) -> None:
        """Take the options; nothing is read or started until it is opened.

        Args:
            cwd: The directory that tools work in. Without it, `OT_CWD` or that of the process.
            config_dir: The user's `.onetool` directory. Without it, `~/.onetool`.
            config: Settings laid over those of `onetool.yaml`, under the same keys.
            trust_project: Use the `.onetool` directory of *cwd* as it is now, even if the user has not trusted it.
            engine: Where programs run, instead of what the settings say.
            packs: Your own functions, by the name of the pack that they form.
            environ: The environment for servers and packs. Without it, that of the process.
            ask: Answers questions. Without it, tools that ask first are denied.
            observe: Called with every event of every run. It must be quick.
            client: The name of your program in the statistics and the log.

        Raises:
            ValueError: A name in *packs* cannot be a pack's.
        """
        self._where = (cwd, config_dir, environ)
        self._config = {**(config or {}), **engine_settings(config or {}, engine)}
        self._trust_project = trust_project
        self._functions = {name: functions_of(name, given) for name, given in (packs or {}).items()}
        self._ask = ask
        self._observe = observe
        self._client = client
        self._workspace: Workspace | None = None
        self._engine = ""
        self._open: set[asyncio.Task[Reply]] = set()

    # ---------------------------------------------------------------- life

    async def __aenter__(self) -> Self:
        """Read the configuration and choose the engine.

        Raises:
            ConfigError: The configuration cannot be used.
            TrustError: With *trust_project*, the project holds something that cannot be trusted.
            EngineUnavailable: The settings ask for an engine that this machine does not have.
            RuntimeError: It is open already.
        """
        if self._workspace is not None:
            raise RuntimeError("this OneTool is open already")
        workspace = Workspace.alone(
            paths_of(*self._where), trust_project=self._trust_project, config=self._config, functions=self._functions
        )
        workspace.goes_on = True
        self._workspace = workspace
        try:
            self._engine = await workspace.choose_engine()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.aclose()

    async def aclose(self) -> None:
        """End the programs that still run, and every process that was started; a second time does nothing."""
        workspace, self._workspace = self._workspace, None
        if workspace is None:
            return
        # Cut off, it would leave processes behind.
        with anyio.CancelScope(shield=True):
            for task in self._open:
                task.cancel()
            if self._open:
                await asyncio.wait(self._open, timeout=END_SECONDS)
            await workspace.aclose()

    # ---------------------------------------------------------------- programs and calls

    async def run(
        self,
        command: str,
        *,
        session: str = "",
        format: Format | None = None,
        ask: Ask | None = None,
        observe: Callable[[RunEvent], None] | None = None,
    ) -> Reply:
        """Return the reply to a program; one that fails has a reply, too, with `is_error`.

        Cancelling this call ends the program.

        Args:
            command: The program.
            session: Runs that name the same session share variables.
            format: How the value is written in the reply's text, unless the program says so itself.
            ask: Answers the questions of this run, instead of the callback that was given to `OneTool`.
            observe: Called with every event of this run, in addition to the callback that was given to `OneTool`.

        Raises:
            RuntimeError: This OneTool is not open, or was closed meanwhile.
        """
        work = self._opened.run(command, self._caller(ask), tell=self._tell(observe), session=session, format=format)
        return await self._await_reply(work)

    async def call(self, tool: str, /, **arguments: Any) -> Reply:
        """Return the reply to one call of a tool, named `pack.tool`, as to a program that is only this call.

        Raises:
            RuntimeError: As for `run`.
        """
        pack, _, name = tool.partition(".")
        work = self._opened.call(pack, name, arguments, self._caller(None), tell=self._tell(None))
        return await self._await_reply(work)

    async def stored_text(self, handle: str) -> str:
        """Return the text behind one of a reply's `handles`, up to 4 MB; programs page longer ones with `ot.result()`.

        Raises:
            OneToolError: There is none any more, or it is longer.
        """
        return await anyio.to_thread.run_sync(self._opened.stored_text, handle, os_user())

    # ---------------------------------------------------------------- what a model is told

    @property
    def description(self) -> str:
        """What a model has to know of `run`: the packs that there are, and how they are found, called and combined."""
        return run_description(self._opened.picture.registry.packs, self._engine)

    async def tools(self) -> list[ToolSummary]:
        """Return all tools; servers that have not said yet what they offer are started and asked."""
        await self._know_servers()
        return [summary_of(tool) for tool in self._opened.picture.registry.tools()]

    async def search(self, words: str, *, most: int = 10) -> list[ToolSummary]:
        """Return the tools that fit the words of a task best, the best first; servers are asked as by `tools`."""
        await self._know_servers()
        registry, config = self._opened.picture.registry, self._opened.picture.loaded.config

        def find() -> list[str]:
            return list(Catalogue(registry, config).find(words, most={"tools": most}).names.get("tools", ()))

        names = await anyio.to_thread.run_sync(find)
        return [summary_of(registry.tool(*name.split(".", 1))) for name in names]

    # ---------------------------------------------------------------- inside

    @property
    def _opened(self) -> Workspace:
        if self._workspace is None:
            raise RuntimeError(NOT_OPEN)
        return self._workspace

    async def _know_servers(self) -> None:
        await self._opened.definitions_of(tuple(self._opened.picture.registry.packs))

    def _caller(self, ask: Ask | None) -> Caller:
        chosen = ask or self._ask
        question = CallbackQuestion(chosen, self._opened.ask_seconds) if chosen else None
        return Caller(os_user(), client=self._client, ask=question)

    def _tell(self, observe: Callable[[RunEvent], None] | None) -> TellEvent | None:
        told = [one for one in (self._observe, observe) if one]
        return _fence_observers(told, self._redact) if told else None

    def _redact(self, text: str) -> str:
        return self._opened.picture.loaded.secrets.redact(text) if self._workspace else text

    async def _await_reply(self, work: Awaitable[Reply]) -> Reply:
        """Return the reply of *work*, run in its own task so that closing can end it."""
        secrets = self._opened.picture.loaded.secrets
        task = asyncio.ensure_future(work)
        self._open.add(task)
        try:
            reply = await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._workspace is None and not (current and current.cancelling()):
                raise RuntimeError(CLOSED) from None
            raise
        finally:
            self._open.discard(task)
        if not reply.has_value or not (secrets.names() or secrets.issued.redactor):
            return reply
        return replace(reply, value=await anyio.to_thread.run_sync(redact_value, reply.value, secrets.redact))


def _fence_observers(observers: Iterable[Callable[[RunEvent], None]], redact: Redact) -> TellEvent:
    """Return a function that tells *observers* of events on the event loop; one that raises does not end the run."""
    loop, home = asyncio.get_running_loop(), threading.get_ident()

    def tell(event: RunEvent) -> None:
        event = replace(event, text=redact(event.text)) if isinstance(event, Printed) else event
        for observe in observers:
            try:
                observe(event)
            except Exception:
                logger.exception("an observer failed")

    def tell_at_home(event: RunEvent) -> None:
        # An engine may take prints on a thread of its own.
        if threading.get_ident() == home:
            tell(event)
        else:
            loop.call_soon_threadsafe(tell, event)

    return tell_at_home

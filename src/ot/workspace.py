"""Workspace: one directory, environment and configuration in use; it answers commands and stays current."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import anyio.to_thread

from ot.build import LiveFunctions, Parts, Picture, build, recordings_place, stats_place
from ot.config.edit_config import edit_config, with_pattern
from ot.config.load import Loaded, load_config
from ot.config.models import Background
from ot.config.paths import Paths
from ot.config.principal import Owner
from ot.config.snapshot import take_snapshot
from ot.config.trust import Trust
from ot.errors import OneToolError, ResultError
from ot.execution.caller import Answer, AskUser, Caller, Question
from ot.execution.consent import AllowAlways, AlwaysAllowed
from ot.execution.tool_executor import CallObserver
from ot.host import Host, Watchers
from ot.introspect.help import HelpPages
from ot.output.stored_text import stored_text
from ot.proxied.catalogue import ServerCatalogue
from ot.proxied.catalogue_files import FOLDER as SERVERS
from ot.proxied.pin_books import Change
from ot.proxied.place import AskRoots
from ot.registry.extension_source import Extension, extensions_of_project, extensions_of_user
from ot.registry.tool_definitions import ToolDefinitions
from ot.registry.tool_loader import load_tool
from ot.registry.tool_registry import Pack, ToolRegistry
from ot.runtime.engines.choice import EngineChoice, EngineShare
from ot.runtime.engines.engine import Engine
from ot.runtime.pack_proxy import Tape
from ot.runtime.program import Program
from ot.runtime.reply import Reply
from ot.runtime.run_budget import RunStart
from ot.runtime.run_events import TellEvent
from ot.runtime.sessions import Sessions
from ot.stats.recorder import Recorder, flat_chars
from ot.stats.rows import CLI

if TYPE_CHECKING:
    from ot.background.held_runs import HeldRun, HeldRuns
    from ot.background.local_queue import LocalQueue
    from ot.background.run_tools import RunTools
    from ot.runtime.cassettes.recording import Recording

logger = logging.getLogger(__name__)

MAX_RESOURCE_BYTES = 4 << 20
MOST_PARKED = 1000
"""More than a server parks in all."""
PAGE_BYTES = 2 << 20
"""Of a stored result that another OneTool reads."""
ReadExtensions = Callable[[Loaded], Iterable[Extension]]
"""Finds the packs that users wrote; a later one replaces an earlier one of the same name."""


class Workspace:
    """A picture of the configuration, kept fresh, and what it holds of the host."""

    def __init__(
        self,
        host: Host,
        paths: Paths,
        *,
        trust_project: bool = False,
        packs: Iterable[Pack] = (),
        extensions: ReadExtensions | None = None,
        observers: Sequence[CallObserver] = (),
        allow_always: AllowAlways | None = None,
        always_allowed: AlwaysAllowed | None = None,
        config: Mapping[str, Any] | None = None,
        functions: LiveFunctions | None = None,
        owner: Owner | None = None,
        loaded: Loaded | None = None,
        load: Callable[[], Loaded] | None = None,
        connection: str = "",
    ) -> None:
        """Read the configuration and build the first picture; *packs* are offered beside the bundled ones.

        *extensions* stands in for the packs of the user's and the project's directories. *allow_always* writes a
        tool that the user always allows into the user's configuration; without it, that answer is not offered.
        *config* is laid over the user's configuration; *functions* are packs of live functions, by name. An *owner*
        other than the user of this process never has anything written into the configuration; *always_allowed* tells
        what it has allowed for good. *loaded* is the configuration, where it has been read already; *load* reads it
        anew, in any thread, where not each workspace does so for itself. *connection* is the one that is served
        here, where others are served on the same host: it leaves them room, and they do not share what is for one
        client.

        Raises:
            ConfigError: The configuration cannot be used.
        """
        self.host = host
        self.paths = paths
        self.owner = owner or Owner()
        # A project that was left out on purpose is not looked for later either.
        self._looks_for_project = self.owner.is_user and paths.look_again() == paths
        self.own_caller = Caller(self.owner.principal, admin=self.owner.is_user)
        """Who asks where nobody else does: its owner."""
        self.open_runs = 0
        """Runs and calls that are under way, parked ones too."""
        self.most_ask_seconds = math.inf
        """The longest that any question waits, whatever the settings say: an edge knows how long a client stays."""
        self.most_parked = MOST_PARKED
        """How many runs of one caller may wait for an answer."""
        self.definition_chars = 0
        """The characters of our own tool list, once a server has told."""
        self.goes_on = False
        """Whether this process outlives the runs that it is asked for, and can carry out others beside them."""
        self.held: HeldRuns | None = None
        """The client's runs that wait, or waited, for a person at a terminal; None: there was none yet."""
        self._queue: LocalQueue | None = None
        self._owns_host = False
        self._revision = host.sharing.catalogue_revision if host.sharing else 0
        self._find_extensions = extensions or partial(_extensions, paths)
        self.pins = host.pins(paths.global_dir / SERVERS)
        self._catalogue = ServerCatalogue(host.servers, host.catalogue_files, self.pins, host.shapes)
        host.learners[self] = self._catalogue.learned
        self._trust_project = trust_project
        self._config = config
        self._load = load or self._read_files
        loaded = loaded or self._load()
        self.engine: Engine = host.engine(self, loaded)
        self._news_told = 0
        self._asking = host.servers.asking.count
        """How many servers that ask their client something the picture knows of."""
        self.sessions = Sessions(loaded.config.sessions, self.engine)
        self._parts = Parts(
            host,
            paths,
            EngineShare(self.engine, loaded.config.engines) if connection else self.engine,
            self.sessions,
            self._catalogue,
            self.pins,
            self.reload,
            self._know_all_servers,
            self.run_tools,
            allow_always or (partial(_allow_always, paths) if self.owner.is_user else None),
            always_allowed,
            self.owner,
            trust_project,
            tuple(packs),
            observers,
            functions or {},
            connection,
        )
        self.picture = self._picture(loaded)
        self._hold()
        self._notice = _notice(self.picture.loaded)

    @property
    def picture(self) -> Picture:
        """What runs see of it: registry, policy and limits; replaced as a whole."""
        return self._current

    @picture.setter
    def picture(self, picture: Picture) -> None:
        self._current = picture
        self.host.redaction.put(self, picture.loaded.secrets)

    @classmethod
    def alone(cls, paths: Paths, *, engine: Engine | None = None, **options: Any) -> Self:
        """Return a workspace with a host of its own, which ends with it.

        Raises:
            ConfigError: The configuration cannot be used.
        """
        workspace = cls(Host(paths, engine=engine), paths, **options)
        workspace._owns_host = True
        return workspace

    # ---------------------------------------------------------------- what callers ask

    async def run(
        self,
        command: str,
        caller: Caller | None = None,
        *,
        tell: TellEvent | None = None,
        session: str = "",
        format: str | None = None,
        background: RunStart | None = None,
        tape: Tape | None = None,
    ) -> Reply:
        """Answer a command of *caller*, or of this process's user; the first answer also says what was left out.

        *background* is the start that this is of a run in the background. *tape* records it, or answers its calls.
        """
        caller = caller or self.own_caller
        with self._in_use():
            await self._refresh()
            place = recordings_place(self.picture.loaded, self.paths)
            recording = self._record_client(caller) if place and not (tape or session or background) else None
            tape = tape or recording
            reading = await self.picture.runner.read(command, session=session, packs=tape.packs if tape else ())
            if tape is None or not tape.replays:
                await self._refresh(reading.names, packs_only=True)
                await self._know_servers(reading.names, caller)
            if caller.client != CLI and self.definition_chars:
                self.recorder.note_client(caller, partial(flat_chars, self.picture.registry), self.definition_chars)
            reply = await self.picture.runner.run(
                reading, caller, tell=tell, session=session, format=format, background=background, tape=tape
            )
            if recording and place and reading.program:
                most = self.picture.loaded.config.recording.most
                await anyio.to_thread.run_sync(recording.keep, place, reading.program.source, reply.run, most)
        if not self.owner.is_user or background or (tape and tape.replays):
            return reply  # what is left out, and which engine there is, concerns the operator who is there
        self.ask_servers_later()
        notices = [self._notice, self._engine_news()]
        self._notice = ""
        return replace(reply, texts=(*reply.texts, *filter(None, notices))) if any(notices) else reply

    def _record_client(self, caller: Caller) -> Recording | None:
        """Return a recording of a run of *caller*, if runs of clients are recorded; a team's people have none."""
        if caller.client == CLI or not self.owner.is_user:
            return None
        from ot.runtime.cassettes.recording import Recording  # noqa: PLC0415 - most runs are not recorded

        return Recording(lambda text: self.picture.loaded.secrets.redact(text))

    def _engine_news(self) -> str:
        """Return news about the engine, once: each workspace that uses it is told separately."""
        if not isinstance(self.engine, EngineChoice):
            return ""
        told, self._news_told = self._news_told, self.engine.news.number
        return self.engine.news.since(told)

    def ask_servers_later(self) -> None:
        """Begin to find out what the servers offer of which nothing is known; nobody waits for it."""
        self._catalogue.ask_others_later()

    @contextmanager
    def _in_use(self) -> Generator[None]:
        self.open_runs += 1
        try:
            yield
        finally:
            self.open_runs -= 1

    async def call(
        self,
        pack: str,
        name: str,
        arguments: Mapping[str, Any],
        caller: Caller | None = None,
        *,
        tell: TellEvent | None = None,
        bare: bool = False,
        key: str = "",
    ) -> Reply:
        """Answer one call of a tool, for a model that writes no programs, or *bare* for a program elsewhere.

        *key* is what whoever asks knows the call by.
        """
        caller = caller or self.own_caller
        with self._in_use():
            await self._refresh([pack])
            await self._know_servers([pack], caller)
            return await self.picture.runner.call(pack, name, arguments, caller, tell=tell, bare=bare, key=key)

    async def definitions_of(self, packs: Sequence[str]) -> ToolDefinitions:
        """Define the tools of *packs* one by one, as they are now; a server among them is asked what it offers.

        Raises:
            UnknownPack: One of them does not exist.
        """
        await self._refresh(packs)
        await self._know_servers(packs)
        for pack in packs:
            self.picture.registry.pack(pack)
        return ToolDefinitions.choose(self.picture.registry, packs)

    @property
    def ask_seconds(self) -> float:
        """How long a question to the user waits for its answer."""
        return min(self.picture.loaded.config.policy.ask_seconds, self.most_ask_seconds)

    def offer_roots(self, ask: AskRoots | None) -> None:
        """Take how the client can be asked for its roots, which proxied servers want to know."""
        self.host.roots.offer(self._parts.connection or str(self.paths.cwd), ask)

    def watch(self, watchers: Watchers) -> None:
        """Report the runs and calls on this host to *watchers* from now on."""
        self.host.watchers = watchers
        self.picture = replace(self._picture(self.picture.loaded), freshness=self.picture.freshness)

    def tool_names(self) -> list[str]:
        """Name every tool."""
        return [tool.full_name for tool in self.picture.registry.tools()]

    def tool_help(self, name: str) -> str:
        """Explain one tool."""
        pack, _, function = name.partition(".")
        config = self.picture.loaded.config
        return HelpPages(config.prompts.packs, config.docs_url).tool(
            self.picture.registry.tool(pack, function), self.picture.registry.pack(pack)
        )

    def stored_bytes(self, handle: str, start: int, principal: str) -> bytes:
        """Return the bytes of a stored result of *principal* from *start* on, as many as one page has."""
        with self.picture.store.open_content(handle, owner=principal) as content:
            content.seek(max(start, 0))
            return content.read(PAGE_BYTES)

    def stored_text(self, handle: str, principal: str) -> str:
        """Return the text of a stored result of *principal*."""
        with self.picture.store.open_content(handle, owner=principal) as content:
            text = content.read(MAX_RESOURCE_BYTES + 1)
        if len(text) > MAX_RESOURCE_BYTES:
            raise ResultError(f"the result is larger than {MAX_RESOURCE_BYTES:,} bytes: page it with ot.result()")
        # Also what was stored before a reload made it known as a secret.
        return self.picture.loaded.secrets.redact(text.decode(errors="replace"))

    # ---------------------------------------------------------------- runs in the background

    def hold(self, run: HeldRun) -> None:
        """Keep *run*, which waits for a person at a terminal, for a client that may not wait so long."""
        from ot.background.held_runs import HeldRuns  # noqa: PLC0415 - most runs ask nothing

        if self.held is None:
            self.held = HeldRuns()
        self.held.add(run)

    def release(self, run: HeldRun) -> None:
        """Forget *run* where its client has waited for it."""
        if self.held:
            self.held.release(run)

    def run_tools(self) -> RunTools:
        """Return the functions that start and report background runs here."""
        from ot.background.carrying_out import RunCarrier  # noqa: PLC0415 - most runs need none of it
        from ot.background.local_queue import LocalQueue  # noqa: PLC0415 - as above
        from ot.background.run_tools import RunTools  # noqa: PLC0415 - as above

        book, submit = self.host.ledger(self, self.picture.loaded.config.ledger), self.host.submit_run
        here = self.directory
        if submit:
            return RunTools(book, self, submit, None, here, held=self.held)
        carrier = RunCarrier(book, self._enter)
        if self.goes_on:
            self._queue = self._queue or LocalQueue(carrier, self.background.at_once)
        if self._queue is None:
            return RunTools(book, self, None, carrier, here, held=self.held)
        return RunTools(book, self, self._queue.submit, carrier, here, self._queue.ids, self.held)

    @property
    def directory(self) -> str:
        """What names the directory that runs and effects of programs here belong to."""
        return self._parts.directory

    def way_to_terminal(self, run: str) -> AskUser | None:
        """Return how to ask a person at a terminal for the background *run*; None if that is not possible."""
        if not self.owner.is_user or self.picture.loaded.config.policy.questions in ("client", "nowhere"):
            return None

        def ask(question: Question) -> Awaitable[Answer]:
            from ot.background.questions import QUESTION_SECONDS  # noqa: PLC0415 - most runs ask nothing
            from ot.execution.waiting_questions import Asker  # noqa: PLC0415 - as above

            asker = Asker("a run in the background", str(self.paths.cwd), run)
            return self.host.waiting.ask(question, asker, QUESTION_SECONDS, partial(self.notify_desktop, question))

        return ask

    def notify_desktop(self, question: Question, code: str) -> None:
        """Tell the user's desktop of a question that waits for a terminal, where the settings say so."""
        if self.picture.loaded.config.policy.notify:
            from ot.execution.waiting_questions import notify_desktop  # noqa: PLC0415 - most runs ask nothing

            notify_desktop(question.tool, code, self.paths.environ)

    @asynccontextmanager
    async def _enter(self, principal: str) -> AsyncGenerator[Self]:
        yield self

    @property
    def background(self) -> Background:
        """The settings of background runs."""
        return self.picture.loaded.config.background

    async def read_program(self, command: str) -> tuple[Program, Mapping[str, str]]:
        """Return the program of *command*, and by pack that it uses what tells whether that pack has changed.

        Raises:
            OneToolError: It cannot be read.
        """
        from ot.background.carrying_out import packs_used  # noqa: PLC0415 - as above

        await self._refresh()
        reading = await self.picture.runner.read(command)
        if isinstance(reading.result, OneToolError):
            raise reading.result
        await self._refresh(reading.names)
        await self._know_servers(reading.names)
        files = {name: spec.files for name, spec in self.picture.workers.items()}
        find = partial(packs_used, reading.names, self.picture.registry, files)
        return reading.result, await anyio.to_thread.run_sync(find)

    def changes_something(self, tool: str) -> bool:
        """Return whether a call of *tool* has an entry in the ledger."""
        found = load_tool(self.picture.registry, *tool.split(".", 1))
        return found is not None and not self.picture.runner.executor.changes_nothing(found)

    async def keep(self, value: Any, principal: str, tool: str) -> str:
        """Store *value* for *principal* and return its handle.

        Raises:
            ResultError: It could not be stored.
        """

        def put() -> str:
            text = self.picture.loaded.secrets.redact(stored_text(value, None))
            return self.picture.store.put([text], tool=tool, owner=principal, form="json").handle

        return await anyio.to_thread.run_sync(put)

    # ---------------------------------------------------------------- life

    async def start(self) -> None:
        """Choose the engine and start it ahead of the first run.

        Raises:
            EngineUnavailable: The settings ask for one that is unavailable.
        """
        if isinstance(self.engine, EngineChoice):
            await self.engine.start(self.picture.loaded.config.limits)

    async def choose_engine(self) -> str:
        """Return the name of the engine, once it is chosen.

        Raises:
            EngineUnavailable: As ``start``.
        """
        if isinstance(self.engine, EngineChoice):
            await self.engine.choose()
        return self.engine.name

    def spawn_engine(self) -> None:
        """Start the engine's process and go on."""
        if isinstance(self.engine, EngineChoice):
            self.engine.spawn()

    async def aclose(self) -> None:
        """Let go of everything that this workspace started or held."""
        if self._queue:
            await self._queue.aclose()
        await self._catalogue.aclose()
        self.pins.close()
        self.host.roots.forget(self._parts.connection or str(self.paths.cwd))
        if self._owns_host:
            await self.host.aclose()
        await self.sessions.aclose()
        await self.host.release(self)

    def list_kept(self) -> list[str]:
        """Return the client's state that would be lost if this process ended now."""
        held = {
            "sessions": self.sessions.count,
            "runs": self.open_runs,
            "background runs": self._queue and self._queue.ids,
            "servers that keep state": self.host.servers.private_names(),
        }
        return [name for name, there in held.items() if there]

    # ---------------------------------------------------------------- staying fresh

    async def reload(self) -> None:
        """Build a new picture from what is on disk now and swap it in, here and on the other replicas.

        Raises:
            ConfigError: It cannot be used; the old picture stays.
        """
        await self._reload()
        self.host.tell_others()

    async def _reload(self) -> None:
        """Build a new picture and swap it in; runs under way keep theirs."""
        if self._looks_for_project:
            self.paths = self.paths.look_again()
            self._parts = replace(self._parts, paths=self.paths)
        loaded = await anyio.to_thread.run_sync(self._load)
        self.picture = self._picture(loaded)
        self._hold()
        self._catalogue.reload()
        self._notice = _notice(self.picture.loaded)
        if isinstance(self.engine, EngineChoice):
            await self.engine.try_again()

    async def _refresh(self, names: Collection[str] = (), *, packs_only: bool = False) -> None:
        """Take up a changed configuration, or a changed pack among *names*, before it is used.

        *packs_only* is for those who have just looked at the configuration.
        With a configuration that cannot be used, the old one stays; packs are as they are on disk all the same.
        """
        if not self.picture.freshness.is_stale(names, packs_only=packs_only) and not await self._is_behind():
            return
        try:
            await self._reload()
        except OneToolError as error:
            logger.warning("the changed configuration is not used: %s", error)
            self._notice = (
                f"note: the changed configuration is not used, the one before stays; packs are as on disk: {error}"
            )
            self.picture = self._picture(_without_changed_project(self.picture.loaded))
            self._hold()

    async def _is_behind(self) -> bool:
        """Return whether another process has changed something since; what it learned of servers is read here."""
        sharing = self.host.sharing
        if sharing is None or (number := sharing.catalogue_revision) == self._revision:
            return False
        self._revision = number
        await self._catalogue.read_again()
        return True

    def list_changed_definitions(self) -> dict[str, list[Change]]:
        """Return the definitions of servers that differ from the approved ones, by server."""
        return self._catalogue.list_changes()

    async def _know_servers(self, names: Collection[str], caller: Caller | None = None) -> None:
        """Ask the servers among *names* what they offer, if that is not known, and show what was learned."""
        await self._catalogue.ask_named(names, caller)
        self._show_learned()
        if self.pins.is_unsure:
            await self.pins.settled()

    async def _know_all_servers(self) -> ToolRegistry:
        """Return the registry after a moment for the servers that nobody has asked yet; runs under way keep theirs."""
        await self._catalogue.ask_others()
        self._show_learned()
        return self.picture.registry

    def _show_learned(self) -> None:
        """Build the picture anew if more is known of the servers than it shows."""
        asking = self.host.servers.asking.count
        if self._catalogue.stale or asking != self._asking:
            # With the old stamps: what changed on disk meanwhile is still to be noticed.
            self.picture = replace(self._picture(self.picture.loaded), freshness=self.picture.freshness)
        if asking != self._asking:
            self._asking = asking
            self._hold()

    def _read_files(self) -> Loaded:
        trust = Trust(self.paths.global_dir)
        own = self.owner.secrets_file
        return load_config(self.paths, trust, trust_project=self._trust_project, given=self._config, own_secrets=own)

    def _picture(self, loaded: Loaded) -> Picture:
        ledger = self.host.ledger(self, loaded.config.ledger)
        recorder = self.host.recorder(self, stats_place(loaded))
        return build(self._parts, loaded, list(self._find_extensions(loaded)), recorder, ledger)

    @property
    def recorder(self) -> Recorder:
        """What takes note of runs and calls now."""
        return self.picture.recorder

    def _hold(self) -> None:
        """Keep the workers and servers of this picture, and let the others go that nobody else needs."""
        workers, servers = self.picture.workers.values(), self.picture.servers.values()
        hosts = (host.key for spec in servers for host in spec.hosts)
        self.host.hold(self, (spec.key for spec in workers), hosts)


def _extensions(paths: Paths, loaded: Loaded) -> list[Extension]:
    """Return the packs that users wrote: the user's own, and a project's, which replace them."""
    return [*extensions_of_user(paths.global_dir), *extensions_of_project(loaded.project)]


async def _allow_always(paths: Paths, pattern: str) -> None:
    """Write *pattern* into the user's own configuration; the next run takes it up."""
    change = partial(edit_config, paths, lambda text: with_pattern(text, "allow", pattern), use_global=True)
    await anyio.to_thread.run_sync(change)


def _without_changed_project(loaded: Loaded) -> Loaded:
    """Return *loaded* without the packs of a project whose files are no longer those that were trusted."""
    project = loaded.project
    if project is None or take_snapshot(project.root, of_project=True).contents == project.contents:
        return loaded
    return replace(loaded, project=None)


def _notice(loaded: Loaded) -> str:
    if loaded.project_state in ("none", "trusted"):
        return f"note: {'; '.join(loaded.replaced)}" if loaded.replaced else ""
    return f"note: {loaded.warnings[-1]}"

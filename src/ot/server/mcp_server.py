"""The MCP face: one server, one tool, three resources."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import anyio.to_thread
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ResourceError
from fastmcp.server.dependencies import get_context
from fastmcp.tools import Tool as McpTool
from fastmcp.tools import ToolResult
from fastmcp.tools.base import InputRequiredToolResult
from mcp.server.request_state import RequestStateSecurity
from mcp_types import ContentBlock, TextContent, ToolAnnotations, ToolListChangedNotification
from pydantic import Field, TypeAdapter, ValidationError

from ot.config.principal import os_user
from ot.errors import OneToolError
from ot.execution.caller import Answer, AskUser, Caller, Question
from ot.registry.announced_tool import META
from ot.registry.tool import Tool
from ot.registry.tool_definitions import ToolDefinitions
from ot.registry.tool_registry import Pack
from ot.runtime.reply import Reply
from ot.runtime.run_events import Progress, RunEvent, TellEvent
from ot.server.classic_tools import classic_tools
from ot.server.drain import Drain
from ot.server.elicitation import (
    ClientQuestion,
    OpenCall,
    QuestionModes,
    answer_of,
    can_ask,
    input_required,
    is_modern,
    way_to_list_roots,
    who_answers,
)
from ot.server.front import UNKNOWN_CLIENT, Front, client_name
from ot.server.other_replicas import Elsewhere, Here, JoinOthers, OtherReplicas
from ot.server.pack_calls import FormedReply, OfferPacks, key_of, wants_form, with_relay
from ot.server.parked_runs import MOST, NotParked, ParkedRun, ParkedRuns, StartRun
from ot.server.run_description import COMMAND, SESSION, run_description
from ot.server.run_tasks import RunTasks
from ot.workspace import Workspace

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from ot.server.wire import Wire

logger = logging.getLogger(__name__)

BLOCKS: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)
PARSES_TEXT = "gemini-cli"
"""The client that reads text which is JSON as the structured content that a reply lacks, and refuses the reply unless
that is an object: 2, true and lists would fail. It shows its model the text, so an empty object is enough."""
PROGRESS_SECONDS = 5.0
CONNECTION = "stdio"
"""The one of a process that serves nobody else, from its start to its end."""
NEWS_PAUSE_SECONDS = 0.1
"""Minimum gap between progress notifications."""

STATE_SECONDS = 7 * 24 * 3600.0
"""The seal around a token; the token itself is good for policy.ask_seconds."""

INSTRUCTIONS = "Write one program for `run`: it calls packs of tools, which its description names."

Command = Annotated[str, Field(description=COMMAND)]
SessionName = Annotated[str, Field(description=SESSION)]
type FindElsewhere = Callable[[Workspace, Caller, Context], Awaitable[Elsewhere | None]]
"""Finds out whether another replica is to answer a request."""
Work = Callable[..., Awaitable[Reply]]
"""A run, or one call of a tool, that still needs its workspace, its caller and a place for its progress."""


class _NoSessionState:
    """The state of every session: none."""

    async def get(self, *, key: str) -> None:
        """Find nothing."""


class _Server(FastMCP):
    """Without FastMCP's store of session state, which no tool here uses.

    It would be asked at every request for components that the session has hidden, and it imports 440 modules.
    """

    @property
    def _state_store(self) -> Any:
        return _NoSessionState()


class OneUser:
    """Answers everything from one workspace, for the user of this process."""

    def __init__(self, workspace: Workspace, connection: str = CONNECTION) -> None:
        """Answer from *workspace*; an empty *connection* means that requests share none."""
        self.workspace = workspace
        self.wire: Wire | None = None
        self._connection = connection

    @contextlib.asynccontextmanager
    async def receive(self, ctx: Context) -> AsyncGenerator[tuple[Workspace, Caller]]:
        """Yield the one workspace."""
        yield self.workspace, Caller(os_user(), self._connection, client_name(ctx))

    @contextlib.asynccontextmanager
    async def enter(self, principal: str) -> AsyncGenerator[Workspace]:
        """Yield the one workspace."""
        yield self.workspace


def build_server(
    front: Front,
    version: str,
    engine: str = "portable",
    classic: ToolDefinitions | None = None,
    drain: Drain | None = None,
    offer: OfferPacks | None = None,
    parked: ParkedRuns | None = None,
    seal_keys: Sequence[bytes] = (),
    join_others: JoinOthers | None = None,
) -> FastMCP:
    """Return the MCP server whose one tool answers where *front* says, which runs programs in *engine*.

    The tools of *classic* are offered beside it, one by one; *drain* is asked before every run. What *offer* makes is
    all that is offered, for programs on other hosts. *parked* keeps the runs that wait for an answer, for
    whoever counts them; *seal_keys* seal their tokens, where a token must be good at other replicas too. With
    *join_others*, replicas answer for each other.
    """
    parked = ParkedRuns(MOST) if parked is None else parked
    drain = drain or Drain()
    others = join_others(Here(front.enter, parked, drain, partial(_turn, parked), _result)) if join_others else None
    server = _Server(
        "onetool",
        INSTRUCTIONS,
        version=version,
        mask_error_details=True,
        on_duplicate="error",
        lifespan=_ending(parked, others),
        request_state_security=_seal(seal_keys),
    )

    async def run(command: Command, session: SessionName = "") -> ToolResult:
        # Asked for, not taken as a parameter: to fill that in would cost every run a tenth of a millisecond.
        ctx = get_context()

        def work(workspace: Workspace, **asked: Any) -> Awaitable[Reply]:
            return workspace.run(command, session=session, **asked)

        find = partial(others.elsewhere, command, session) if others else None
        goes_on = ctx.request_state is not None
        program = command, session
        result = await drain.answer(lambda: _answer(front, parked, work, ctx, find, program), goes_on=goes_on)
        await news.tell(ctx)
        return result

    async def call(tool: Tool, arguments: Mapping[str, Any], ctx: Context) -> ToolResult:
        def work(workspace: Workspace, **asked: Any) -> Awaitable[Reply]:
            if offered and wants_form(ctx):
                return offered.carry_out(tool, arguments, workspace, key=key_of(ctx), **asked)
            return workspace.call(tool.pack, tool.name, arguments, key=key_of(ctx), **asked)

        find = partial(others.elsewhere, "", "") if others else None
        goes_on = ctx.request_state is not None
        return await drain.answer(lambda: _answer(front, parked, work, ctx, find), goes_on=goes_on)

    _add_stored_results(server, front)
    offered = offer(front, call) if offer else None
    if offered:
        offered.attach(server)
        return server

    one_tool = McpTool.from_function(
        run,
        description="",
        annotations=ToolAnnotations(
            title="Run Python", read_only_hint=False, destructive_hint=True, open_world_hint=True
        ),
        output_schema=None,
    )
    news = _PackNews(front.workspace, engine, one_tool)
    server.add_tool(one_tool)
    server.add_extension(RunTasks(front, drain))

    for one in classic_tools(classic, call) if classic else ():
        server.add_tool(one)

    @server.resource("ot://tools", mime_type="application/json", description="The names of all tools")
    async def tools() -> list[str]:  # pyright: ignore[reportUnusedFunction] - registered
        async with front.receive(get_context()) as (workspace, _):
            return workspace.tool_names()

    @server.resource("ot://tool/{name}", mime_type="text/markdown", description="Help on one tool")
    async def tool(name: str) -> str:  # pyright: ignore[reportUnusedFunction] - registered
        async with front.receive(get_context()) as (workspace, _):
            return read_or_refuse(lambda: workspace.tool_help(name))

    return server


def _add_stored_results(server: FastMCP, front: Front) -> None:
    @server.resource("ot://result/{handle}", mime_type="text/plain", description="A stored result")
    async def result(handle: str) -> str:  # pyright: ignore[reportUnusedFunction] - registered
        async with front.receive(get_context()) as (workspace, caller):
            read = partial(workspace.stored_text, handle, caller.principal)
            return await anyio.to_thread.run_sync(read_or_refuse, read)


class _PackNews:
    """Keeps what is said of the one tool true: it names the packs, which may change between runs."""

    def __init__(self, workspace: Workspace, engine: str, tool: McpTool) -> None:
        self._workspace = workspace
        self._engine = engine
        self._tool = tool
        self._packs: Mapping[str, Pack] = {}
        self._changed()

    def _changed(self) -> bool:
        packs = self._workspace.picture.registry.packs
        if packs is self._packs:
            return False
        before, self._packs = self._tool.description, packs
        self._tool.description = run_description(packs, self._engine)
        return self._tool.description != before

    async def tell(self, ctx: Context) -> None:
        """Tell the client to read the list of tools again when it has become another."""
        if self._changed():
            await ctx.send_notification(ToolListChangedNotification())


def _content_block(wire: Mapping[str, Any]) -> ContentBlock | None:
    """Return a block that a tool gave, if it is one that the protocol knows."""
    try:
        return BLOCKS.validate_python(wire, by_name=False)
    except ValidationError as error:
        logger.warning("a content block of a tool is not sent: %s", error)
        return None


async def count_listed_chars(server: FastMCP) -> int:
    """Return the characters that the server's list of tools, and its instructions, put before a model."""
    tools = [tool.to_mcp_tool() for tool in await server.list_tools()]
    return len(INSTRUCTIONS) + sum(len(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in tools)


def read_or_refuse[T](read: Callable[[], T]) -> T:
    """Return what *read* returns; an error of ours is one of the resource that is read."""
    try:
        return read()
    except OneToolError as error:
        raise ResourceError(str(error).partition("\n")[0]) from None  # signatures are for programs


def _result(reply: Reply) -> ToolResult:
    content: list[Any] = [TextContent(type="text", text=text) for text in reply.texts]
    content += [block for wire in reply.blocks if (block := _content_block(wire))]
    structured = dict(reply.form) if isinstance(reply, FormedReply) else None
    return ToolResult(content, structured, {META: reply.meta}, reply.is_error)


def _seal(keys: Sequence[bytes]) -> RequestStateSecurity:
    """Return the seal for tokens of parked runs: keys that every replica has, or one for this process alone."""
    if not keys:
        return RequestStateSecurity.ephemeral(ttl=STATE_SECONDS)
    return RequestStateSecurity(keys=keys, ttl=STATE_SECONDS)


def _ending(parked: ParkedRuns, others: OtherReplicas | None) -> Any:
    @contextlib.asynccontextmanager
    async def lifespan(_server: FastMCP) -> AsyncGenerator[dict[str, Any]]:
        if others:
            await others.start()
        try:
            yield {}
        finally:
            if others:
                await others.aclose()
            await parked.aclose()

    return lifespan


async def _answer(
    front: Front,
    parked: ParkedRuns,
    work: Work,
    ctx: Context,
    find: FindElsewhere | None = None,
    program: object = None,
) -> ToolResult:
    """Return the result of *work*, or the question for its user; another replica may hold it.

    *program* tells whether an earlier call, which its client no longer waits for, has started it.
    """
    async with front.receive(ctx) as (workspace, caller):
        if find and (elsewhere := await find(workspace, caller, ctx)):
            result = await _with_progress(ctx, elsewhere)
        elif workspace.held and program and ctx.request_state is None and (said := workspace.held.say_begun(program)):
            result = ToolResult(content=[TextContent(type="text", text=text) for text in said[0]], is_error=said[1])
        else:
            result = await _answer_call(front, workspace, parked, partial(work, workspace), caller, ctx, program)
    if result.structured_content is None and caller.client.startswith(PARSES_TEXT):
        result.structured_content = {}
    return result


async def _answer_call(
    front: Front, workspace: Workspace, parked: ParkedRuns, work: Work, caller: Caller, ctx: Context, program: object
) -> ToolResult:
    workspace.offer_roots(way_to_list_roots(ctx))
    modern = is_modern(ctx)
    # Taken now: a proxied server's question comes in a task of its connection, which knows nothing of this request.
    session, id = ctx.session, ctx.request_id
    call = OpenCall(id, program, modern=modern)
    ask_elsewhere = _way_elsewhere(front, workspace, call, session)

    def start(ask: AskUser, tell: TellEvent | None) -> Awaitable[Reply]:
        elsewhere = partial(ask_elsewhere, tell) if ask_elsewhere else None
        return work(caller=who_answers(ctx, caller, ask, elsewhere), tell=tell)

    if modern and (ctx.request_state is not None or can_ask(ctx)):
        return await _leg(workspace, parked, start, caller, ctx, call)
    return _result(await _with_progress(ctx, partial(start, ClientQuestion(session, id, workspace.ask_seconds)), call))


def _way_elsewhere(front: Front, workspace: Workspace, call: OpenCall, session: ServerSession) -> Any:
    """Return how to ask a question where a person sees it; None if the client is on another machine."""
    if (wire := front.wire) is None:
        return None

    async def ask(tell: TellEvent | None, modes: QuestionModes, ask_client: AskUser, question: Question) -> Answer:
        from ot.server.question_places import QuestionPlaces  # noqa: PLC0415 - most runs ask nothing

        given = session.client_params
        client = f"{given.client_info.name} {given.client_info.version}" if given else UNKNOWN_CLIENT
        return await QuestionPlaces(workspace, wire, call, modes, ask_client, tell, client[:100]).ask(question)

    return ask


async def _leg(
    workspace: Workspace, parked: ParkedRuns, start: StartRun, caller: Caller, ctx: Context, call: OpenCall
) -> ToolResult:
    """Start a run, or go on with one that is parked, until its next question or its reply."""
    try:
        run = _take_up(workspace, parked, start, caller, ctx, call)
    except NotParked as error:
        return ToolResult(content=str(error), is_error=True)
    run.call.id = call.id
    try:
        return await _with_progress(ctx, partial(_turn, parked, run), run.call)
    finally:
        run.call.id = ""


async def _turn(parked: ParkedRuns, run: ParkedRun, tell: TellEvent | None) -> ToolResult:
    """Return the next question of *run*, or its reply."""
    run.tell = tell
    try:
        came = await run.turn()
    except asyncio.CancelledError:
        await parked.end(run)
        raise
    return InputRequiredToolResult(input_required(came, run.token)) if isinstance(came, Question) else _result(came)


def _take_up(
    workspace: Workspace, parked: ParkedRuns, start: StartRun, caller: Caller, ctx: Context, call: OpenCall
) -> ParkedRun:
    if ctx.request_state is not None:
        run = parked.take(ctx.request_state, caller.seat)
        run.answer(answer_of(ctx), ctx.request_state)
        return run
    run = parked.start(start, caller.seat, workspace.ask_seconds, workspace.most_parked)
    run.call = call
    return run


async def _with_progress[T](
    ctx: Context, work: Callable[[TellEvent | None], Awaitable[T]], call: OpenCall | None = None
) -> T:
    """Return the result of *work*, passing on tools' progress, and every five seconds that it goes on.

    No progress is sent for a *call* that was answered before the run was over.
    """
    if not _wants_progress(ctx):
        return await work(None)
    if wants_form(ctx):
        return await with_relay(ctx, work)
    heartbeat = _Heartbeat(ctx, call)
    beating = asyncio.ensure_future(heartbeat.beat())
    try:
        return await work(heartbeat.tell)
    finally:
        beating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beating


def _wants_progress(ctx: Context) -> bool:
    request: Any = ctx.request_context
    meta: Any = request.meta if request else None
    return bool(meta) and meta.get("progressToken") is not None  # as on the wire


class _Heartbeat:
    """Sends progress: the latest news when there are some, a sign of life when there are none."""

    def __init__(self, ctx: Context, call: OpenCall | None) -> None:
        self._ctx = ctx
        self._call = call
        self._news: Progress | None = None
        self._told = asyncio.Event()

    def tell(self, event: RunEvent) -> None:
        """Take the latest news of progress."""
        if isinstance(event, Progress):
            self._news = event
            self._told.set()

    async def beat(self) -> None:
        """Send until cancelled; progress over MCP only ever grows, so it counts what was sent."""
        for count in itertools.count(1):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PROGRESS_SECONDS):
                    await self._told.wait()
            self._told.clear()
            if self._call and self._call.is_answered:
                return
            news, self._news = self._news, None
            await self._ctx.report_progress(count, None, _words(news))
            await asyncio.sleep(NEWS_PAUSE_SECONDS)


def _words(news: Progress | None) -> str:
    if news is None:
        return "running"
    counted = f"{news.done}" + (f"/{news.total}" if news.total is not None else "") if news.done is not None else ""
    return " ".join(part for part in (counted, news.message) if part) or "running"

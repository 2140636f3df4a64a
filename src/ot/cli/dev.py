"""onetool dev: a pack's tools, listed or called again at every change of its file.

A call goes through the server's own door, and everything is shown as it happens.
"""

from __future__ import annotations

import ast
import asyncio
import itertools
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import FAILURE, OK
from ot.cli.terminal import echo, echo_json, echo_value
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.config.load import Loaded
    from ot.config.paths import Paths
    from ot.execution.call_context import CallContext
    from ot.execution.consent import RunConsent
    from ot.registry.extension_source import Extension
    from ot.registry.freshness import Freshness
    from ot.registry.tool import Tool
    from ot.workspace import Workspace


PAUSE_SECONDS = 0.3


def dev(
    file: Annotated[Path, typer.Argument(help="The pack's file, called <pack>_tools.py.")],
    call: Annotated[
        str | None, typer.Argument(help="""A call such as 'hello(name="you")'; without one, the tools are listed.""")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Do it once, and do not wait for changes.")] = False,
    trust_project: Annotated[
        bool,
        typer.Option("--trust-project", help="Use the project's settings, even if it is not trusted as it is now."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Call a tool of a pack, in a worker as the server would, and again whenever the file changes.

    The value goes to standard output; prints, progress, failures and the time go to standard error. With --json,
    each time is one line: ok, seconds, and the value or the error.
    """
    from ot.cli.terminal.event_loop import run_async
    from ot.errors import ToolUnavailable
    from ot.registry.extension_source import pack_name_of

    try:
        pack = pack_name_of(file)
    except ToolUnavailable as error:
        raise typer.BadParameter(str(error)) from None
    wanted = parse_call(pack, call) if call is not None else None
    ok = run_async(_develop(_Look(pack, file, wanted, as_json), once=once, trust_project=trust_project))
    raise typer.Exit(OK if ok else FAILURE)


async def _develop(look: _Look, *, once: bool, trust_project: bool) -> bool:
    from ot.cli.terminal.own_workspace import own_workspace
    from ot.config.paths import Paths
    from ot.registry.extension_source import extension_of_file

    paths = Paths.find()
    seen = look.stamps(paths)

    def extensions(loaded: Loaded) -> list[Extension]:
        return [extension_of_file(look.file, paths.global_dir)]

    async with own_workspace(trust_project=trust_project, extensions=extensions) as app:
        ok = await look.show(app)
        while not once:
            # Taken before the files are read: a write meanwhile counts as the next change.
            seen = await look.wait_for_change(paths, seen)
            ok = await look.show_again(app)
        return ok


def _say(text: str, end: str = "\n") -> None:
    """Show *text* beside the value: on standard error, at once."""
    echo(text + end, nl=False, err=True)


class _Look:
    """One pack's file, and what its author wants to see of it."""

    def __init__(self, pack: str, file: Path, call: DevCall | None, as_json: bool) -> None:
        """Show the value of *call*, or the tools that there are; *as_json* for a program."""
        self.file = file
        self._pack = pack
        self._call = call
        self._as_json = as_json
        self._warned: tuple[str, ...] = ()

    async def show(self, app: Workspace) -> bool:
        """Show it, and return whether all went well."""
        warnings = app.picture.loaded.warnings
        for warning in warnings:
            if warning not in self._warned:  # once is enough, not at every change
                _say(f"warning: {warning}")
        self._warned = warnings
        if why := app.picture.registry.pack(self._pack).broken:
            _say(f"pack '{self._pack}' cannot be used: {why}")
            if self._as_json:
                echo_json({"ok": False, "error": why})
            return False
        if self._call is not None:
            return await _carry_out(app, self._call, self._as_json)
        self._list(app)
        return True

    async def show_again(self, app: Workspace) -> bool:
        """Show it as the files are now."""
        from ot.errors import OneToolError

        _say(f"--- {time.strftime('%H:%M:%S')} changed")
        try:
            await app.reload()
        except OneToolError as error:
            _say(f"onetool: {error}")
            return False
        return await self.show(app)

    def stamps(self, paths: Paths) -> Freshness:
        """Return the files as they are now: the pack's, and the settings that it may depend on."""
        from ot.config.paths import CONFIG_FILE, FOLDER
        from ot.registry.freshness import Freshness

        own = self.file.parent.rglob("*.py") if self.file.absolute().parent.name == self._pack else ()
        configs = [directory / CONFIG_FILE for directory in (paths.global_dir, paths.cwd / FOLDER)]
        return Freshness([self.file, *own, *configs], {})

    async def wait_for_change(self, paths: Paths, seen: Freshness) -> Freshness:
        """Return the files as they are, as soon as they are no longer as *seen*."""
        while not seen.is_stale():  # noqa: ASYNC110 - the portable way to learn of a change is to look
            await asyncio.sleep(PAUSE_SECONDS)
        return self.stamps(paths)

    def _list(self, app: Workspace) -> None:
        from ot.introspect.listing import tool_entry
        from ot.registry.extension_source import extension_of_file

        tools = [tool_entry(tool, "full") for tool in app.picture.registry.pack(self._pack).tools.values()]
        given = app.picture.workers[self._pack].secrets
        secrets = {name: name in given for name in extension_of_file(self.file, app.paths.global_dir).secrets}
        if self._as_json:
            echo_json({"ok": True, "tools": tools, "secrets": secrets})
            return
        for tool in tools:
            echo(tool["signature"] + (f"\n    {tool['description']}" if tool["description"] else ""))
        for name, is_given in secrets.items():
            echo(f"secret {name}: {'given' if is_given else 'not given'}")


# ---------------------------------------------------------------- what comes of it


@dataclass(frozen=True)
class _OfAuthor:
    """Who types a call of the pack being written agrees to it; tools of others that it calls ask as ever."""

    pack: str
    rest: RunConsent

    async def require(self, tool: Tool, arguments: Mapping[str, Any], context: CallContext, need: str = "") -> str:
        return "consent" if tool.pack == self.pack else await self.rest.require(tool, arguments, context, need)

    async def require_again(self, tool: Tool, arguments: Mapping[str, Any], why: str, advice: str) -> None:
        await self.rest.require_again(tool, arguments, why, advice)


async def _carry_out(app: Workspace, call: DevCall, as_json: bool) -> bool:
    """Show what the call prints, tells and returns, and return whether it returned."""
    from ot.errors import OneToolError
    from ot.output.formats import compact_json, serialize_result
    from ot.values.jsonable import describe_type, jsonable
    from ot.values.parts import NotSerializable

    started = time.monotonic()
    given = [name for spec in app.picture.workers.values() for name in spec.secrets]
    redact = app.picture.loaded.secrets.using(given).redact
    try:
        value = await _value(app, call, redact)
        text = redact(compact_json(jsonable(value, describe_type)) if as_json else serialize_result(value))
    except (OneToolError, NotSerializable) as error:
        text = redact(_of_author(app, call.pack, _failure(error)))
        _say(text)
        _say(f"failed after {time.monotonic() - started:.2f} s")
        if as_json:
            echo_json({"ok": False, "error": text, "seconds": round(time.monotonic() - started, 3)})
        return False
    seconds = time.monotonic() - started
    if as_json:
        echo_json({"ok": True, "value": json.loads(text), "seconds": round(seconds, 3)})
    else:
        echo_value(text)
    _say(f"ok, {seconds:.2f} s")
    return True


async def _value(app: Workspace, call: DevCall, redact: Callable[[str], str]) -> Any:
    from ot.cli.terminal.prompts import TerminalQuestion, somebody_is_there
    from ot.execution.call_context import CallContext
    from ot.execution.consent import RunConsent
    from ot.execution.deadline import Deadline

    executor = app.picture.runner.executor
    config = app.picture.loaded.config
    # The tool's own time begins when it can be called: a first call may have to install things before.
    seconds = config.workers.install_seconds + config.workers.start_seconds + config.limits.call_seconds

    def tell(what: str, tool: str, details: Mapping[str, Any]) -> None:
        if what == "print":
            _say(redact(str(details.get("text", ""))), end="")
        elif what == "progress":
            _say(redact(_progress(details)))

    async def call_back(pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return (await executor.call(pack, name, args, kwargs, replace(context, call_id=next(ids))))[0]

    ids = itertools.count(2)
    clock = Deadline.after(seconds)
    rest = RunConsent(TerminalQuestion(app.ask_seconds), clock, redact=redact)
    caller = replace(app.own_caller, ask=rest.ask, opens=somebody_is_there())
    context = CallContext(
        caller, secrets.token_hex(8), 1, clock.at, told=tell, call=call_back, clock=clock,
        consent=_OfAuthor(call.pack, rest), open_llm=app.picture.runner.models(),
    )  # fmt: skip
    return (await executor.call(call.pack, call.name, call.args, call.kwargs, context))[0]


def _progress(details: Mapping[str, Any]) -> str:
    done, total, message = details.get("done"), details.get("total"), " ".join(str(details.get("message", "")).split())
    if done is None:
        return message
    place = f"{done}" if total is None else f"{done}/{total}"
    return f"[{place}] {message}".rstrip()


def _of_author(app: Workspace, pack: str, text: str) -> str:
    """Return *text* with the files that the author knows in place of the copies that the worker runs."""
    from ot.workers.pack_environment import PACKS

    copies = re.escape(f"{app.paths.global_dir / PACKS}{os.sep}") + r"\w+"
    directory = str(Path(app.picture.registry.pack(pack).origin).absolute())
    return re.sub(copies, lambda _: directory, text)


def _failure(error: Exception) -> str:
    from ot.errors import ToolFailed

    # A backend notes the tool's own frames on what it raises: they begin with the same words.
    if notes := getattr(error, "__notes__", []):
        return "\n".join(note.rstrip() for note in notes)
    return f"{error.kind if isinstance(error, ToolFailed) else type(error).__name__}: {error}"


# ---------------------------------------------------------------- a call as it was typed

HOW = """write one call with its arguments written out, such as hello(name="you", times=3)"""


@dataclass(frozen=True)
class DevCall:
    """A call as it was typed."""

    pack: str
    name: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])


def parse_call(pack: str, text: str) -> DevCall:
    """Return *text*, such as ``hello(name="you")`` or ``pack.hello(name="you")``, as a call.

    Raises:
        typer.BadParameter: It is anything else; nothing in it is evaluated.
    """
    try:
        return _call(pack, ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise typer.BadParameter(f"'{text[:80]}' is not a valid call: {HOW}") from None


def _call(pack: str, node: ast.expr) -> DevCall:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) if owner == pack:
            pass
        case _:
            raise ValueError(HOW)
    named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg}
    if len(named) < len(node.keywords):
        raise ValueError(HOW)
    return DevCall(pack, name, [ast.literal_eval(argument) for argument in node.args], named)

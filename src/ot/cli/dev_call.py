"""One call of a pack that is being written: through the server's own door, everything shown as it happens."""

from __future__ import annotations

import ast
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ot.cli.terminal import echo, echo_value
from ot.cli.terminal_question import TerminalQuestion
from ot.errors import OneToolError, ToolFailed
from ot.execution.call_context import CallContext
from ot.execution.consent import Consent
from ot.execution.deadline import Deadline
from ot.execution.workers.pack_environment import PACKS
from ot.output.formats import serialize_result
from ot.output.presentable import NotPresentable
from ot.registry.tool import Tool

if TYPE_CHECKING:
    from ot.app import App

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
        node = ast.parse(text.strip(), mode="eval").body
        return _call(pack, node)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise typer.BadParameter(f"'{text[:80]}' is no such call: {HOW}") from None


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


def say(text: str, end: str = "\n") -> None:
    """Show *text* beside the value: on standard error, at once."""
    echo(text + end, nl=False, err=True)


@dataclass(frozen=True)
class _OfAuthor:
    """Who types a call of the pack being written agrees to it; tools of others that it calls ask as ever."""

    pack: str
    rest: Consent

    async def require(self, tool: Tool, arguments: Mapping[str, Any], context: CallContext) -> None:
        if tool.pack != self.pack:
            await self.rest.require(tool, arguments, context)


async def carry_out(app: App, call: DevCall) -> bool:
    """Show what the call prints, tells and returns, and return whether it returned."""
    started = time.monotonic()
    redact = _redactor(app)
    try:
        text = redact(serialize_result(await _value(app, call, redact)))
        echo_value(text)
    except (OneToolError, NotPresentable) as error:
        say(redact(_of_author(app, call.pack, _failure(error))))
        say(f"failed after {time.monotonic() - started:.2f} s")
        return False
    say(f"ok, {time.monotonic() - started:.2f} s")
    return True


async def _value(app: App, call: DevCall, redact: Callable[[str], str]) -> Any:
    executor = app.picture.runner.executor
    config = app.picture.loaded.config
    # The tool's own time begins when it can be called: a first call may have to install things before.
    seconds = config.workers.install_seconds + config.workers.start_seconds + config.limits.call_seconds

    def told(what: str, tool: str, details: Mapping[str, Any]) -> None:
        _show(what, details, redact)

    async def call_back(pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return await executor.call(pack, name, args, kwargs, context)

    clock = Deadline.after(seconds)
    rest = Consent(TerminalQuestion(app.ask_seconds), clock, redact=redact)
    context = CallContext(
        app.caller, "dev", 1, clock.at, told=told, call=call_back, ask=rest.ask, clock=clock,
        consent=_OfAuthor(call.pack, rest),
    )  # fmt: skip
    return await executor.call(call.pack, call.name, call.args, call.kwargs, context)


def _redactor(app: App) -> Callable[[str], str]:
    given = [name for spec in app.picture.workers.values() for name in spec.secrets]
    return app.picture.loaded.secrets.using(given).redact


def _show(what: str, details: Mapping[str, Any], redact: Callable[[str], str]) -> None:
    if what == "print":
        say(redact(str(details.get("text", ""))), end="")
    elif what == "progress":
        say(redact(_progress(details)))


def _progress(details: Mapping[str, Any]) -> str:
    done, total, message = details.get("done"), details.get("total"), str(details.get("message", ""))
    if done is None:
        return message
    place = f"{done}" if total is None else f"{done}/{total}"
    return f"[{place}] {message}".rstrip()


def _of_author(app: App, pack: str, text: str) -> str:
    """Return *text* with the files that the author knows in place of the copies that the worker runs."""
    copies = re.escape(f"{app.paths.global_dir / PACKS}{os.sep}") + r"\w+"
    directory = str(Path(app.picture.registry.pack(pack).origin).absolute())
    return re.sub(copies, lambda _: directory, text)


def _failure(error: Exception) -> str:
    kind = error.kind if isinstance(error, ToolFailed) else type(error).__name__
    # A backend notes the tool's own frames on what it raises: they begin with the same words.
    notes = getattr(error, "__notes__", [])
    return "\n".join([*(note.rstrip() for note in notes), *([] if notes else [f"{kind}: {error}"])])

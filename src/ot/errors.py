"""Every error that OneTool raises, as classes that carry data; docs/reference/errors.md draws their tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import dataclass_transform

from ot.nearest_names import MAX_NAME, available


class OneToolError(Exception):
    """The base of all of OneTool's own errors."""

    __match_args__: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # A dataclass does not call Exception's own __init__, and an error is copied and pickled by its args.
        self.args = tuple(getattr(self, name) for name in self.__match_args__)


def redact_error(error: OneToolError, redact: Callable[[str], str]) -> None:
    """Pass every text that *error* holds through *redact*."""
    vars(error).update({name: redact(text) for name, text in vars(error).items() if isinstance(text, str)})
    error.args = tuple(redact(part) if isinstance(part, str) else part for part in error.args)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def error[E: OneToolError](text: str = "", **more: str) -> Callable[[type[E]], type[E]]:
    """Return a decorator that makes a dataclass of an error: its text is *text* with the fields filled in.

    Texts in *more* follow where the field of their name is set.
    """

    def of_fields(kind: type[E]) -> type[E]:
        if text:
            kind.__str__ = lambda self: "".join(
                part.format(**vars(self)) for part in (text, *(more[name] for name in more if getattr(self, name)))
            )
        return dataclass(eq=False, repr=False)(kind)

    return of_fields


@error()
class ConfigError(OneToolError):
    """A configuration file cannot be used."""

    message: str
    _: KW_ONLY
    file: Path | None = None
    line: int | None = None
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.file}" + (f":{self.line}" if self.line else "") + ": " if self.file else ""
        return f"{place}{self.message}" + (f" ({self.hint})" if self.hint else "")


class TrustError(OneToolError):
    """A project's files may not be used as requested."""


@error(
    "the {engine} engine that engines.use and engines.exact.require_layers ask for is unavailable: {why}. "
    "Without these settings the server uses the strongest engine available"
)
class EngineUnavailable(OneToolError):
    """The settings require an engine, or a layer of its jail, that is unavailable on this machine."""

    engine: str
    why: str


class CommandError(OneToolError):
    """The text given to run() is not a program."""


@error()
class CommandTooLong(CommandError):
    """The command is larger than ``limits.command_bytes``, or, without a size, a program of too many tokens."""

    size: int | None
    limit: int

    def __str__(self) -> str:
        if self.size is None:
            return f"the program has more than {self.limit:,} tokens: write it as several, and data as one text"
        return f"the command has {self.size:,} bytes, at most {self.limit:,} are allowed (limits.command_bytes)"


@error("{message}")
class InvalidSyntax(CommandError):
    """Python's own parser refused the command."""

    message: str
    line: int | None = None
    column: int | None = None
    source: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Gap:
    """One place in a program that an engine cannot run as CPython would."""

    line: int
    what: str
    instead: str = ""


@error()
class NotSupported(CommandError):
    """The engine lacks something that the program uses; nothing of it has run."""

    gaps: Sequence[Gap]
    engine: str

    def __str__(self) -> str:
        shown = [f"line {gap.line}: {gap.what}" + (f"; {gap.instead}" if gap.instead else "") for gap in self.gaps[:5]]
        more = [f"and {len(self.gaps) - 5} more"] if len(self.gaps) > 5 else []
        return "\n".join([f"the {self.engine} engine cannot run this; nothing was run", *shown, *more])


@error("nothing has run, because calls of the program cannot succeed")
class WrongCalls(CommandError):
    """Calls of the program cannot succeed; nothing of it has run."""

    mistakes: Sequence[ProgramFailed]
    gaps: NotSupported | None = None
    """What the engine lacks that the program uses."""


class SnippetError(CommandError):
    """A ``$snippet`` could not be expanded."""


class ToolError(OneToolError):
    """A call ended without a value."""


@error()
class UnknownPack(ToolError):
    """No pack has this name."""

    pack: str
    packs: Sequence[str]
    disabled: bool = False

    def __str__(self) -> str:
        if self.disabled:
            return f"the pack '{self.pack[:MAX_NAME]}' is disabled: the setting packs.disabled names it"
        return f"there is no pack '{self.pack[:MAX_NAME]}'{available('packs', self.pack, self.packs)}"


@error()
class UnknownTool(ToolError):
    """The pack has no such function."""

    pack: str
    name: str
    functions: Sequence[str]
    note: str = ""
    signatures: Sequence[str] = ()

    def __str__(self) -> str:
        name = self.name[:MAX_NAME]
        text = f"'{name}' is not in pack '{self.pack[:MAX_NAME]}'{available('functions', name, self.functions)}"
        return "\n".join([text + (f". {self.note}" if self.note else ""), *self.signatures])


@error("{message}", signature=". Expected: {signature}")
class InvalidArguments(ToolError):
    """The arguments do not fit the tool's parameters."""

    tool: str
    message: str
    signature: str = ""


class AmbiguousArgument(InvalidArguments):
    """Two given names mean the same parameter."""

    def __init__(self, tool: str, parameter: str, given: tuple[str, str], signature: str = "") -> None:
        first, second = given
        super().__init__(tool, f"{tool}(): '{first}' and '{second}' both mean '{parameter}'", signature)
        self.parameter = parameter
        self.given = given
        self.args = (tool, parameter, given, signature)


@error("{where}: {what}")
class NotPlainData(ToolError):
    """A value that is not plain data cannot cross between a program and a tool."""

    where: str
    what: str


class DataTooLarge(NotPlainData):
    """A value is plain data, but too large."""


@error("{tool} is denied by the policy ({rule}: {pattern!r})", need="; it needs the permission of {need}")
class ToolDenied(ToolError):
    """The operator's policy forbids the call."""

    tool: str
    pattern: str
    rule: str = "policy.deny"
    need: str = ""


@error()
class DefinitionChanged(ToolError):
    """A proxied tool has changed since its user approved it, and ``policy.changed_definitions`` is ``block``."""

    tool: str
    server: str
    what: Sequence[str]

    def __str__(self) -> str:
        how = f"the user can look at the change and approve it with 'onetool approve {self.server}'"
        return f"{self.tool} has changed since it was approved ({', '.join(self.what)}) and was not called: {how}"


@error("{tool} was not called: {why}")
class NotApproved(ToolDenied):
    """The tool asks first, and the user did not agree to this call."""

    pattern: str = field(default="", init=False)
    rule: str = field(default="", init=False)
    need: str = field(default="", init=False)
    why: str


@error("the user could not be asked: {why}")
class CannotAsk(ToolError):
    """The user would have to be asked, but cannot be: nobody is there, or nobody answered."""

    why: str


@error()
class LedgerUnavailable(ToolError):
    """The ledger cannot be read or written; ``tool`` is the one that was not called because of that."""

    why: str
    tool: str = ""

    def __str__(self) -> str:
        if self.tool:
            return f"{self.tool} was not called: the call could not be written to the ledger first ({self.why})"
        return f"the ledger is unavailable: {self.why}"


@error(
    "the server '{server}' is not available: {why}",
    retry_seconds="; it is tried again in {retry_seconds:.1f} s",
    unknown="; whether the call took effect is unknown, and it was not repeated: find out before you call again",
)
class ServerUnavailable(ToolError):
    """A proxied server is not connected, or the connection was lost during the call.

    ``unknown`` is set when the call may have taken effect: it was sent, and no answer came.
    """

    server: str
    why: str
    _: KW_ONLY
    retry_seconds: float = 0.0
    unknown: bool = False


@error()
class LoginNeeded(ServerUnavailable):
    """A proxied server wants its user to log in; nothing is broken, and nothing but a person can help."""

    scope: str = ""
    """What the login has to ask for in addition."""
    advice: str = ""
    """What to do, where it is not the command."""

    def __str__(self) -> str:
        more = f" --scope '{self.scope}'" if self.scope else ""
        advice = self.advice or f"run `onetool auth login {self.server}{more}`"
        return f"login needed: {advice} ({self.why})"


@error(
    "the authorization server of '{server}' is down: {why}; the login is kept, try again",
    retry_seconds=" in {retry_seconds:.0f} s",
)
class AuthServerDown(ServerUnavailable):
    """The authorization server of a proxied server does not answer; the login itself may still be good."""


@error("{tool} did not answer within {seconds:g} s and was cancelled")
class ToolTimeout(ToolError):
    """The call took longer than its deadline."""

    tool: str
    seconds: float


@error("{tool} is busy: {why}")
class ToolBusy(ToolError):
    """Too many calls are waiting already."""

    tool: str
    why: str


@error("pack '{pack}' cannot be loaded: {why}")
class ToolUnavailable(ToolError):
    """The tool's pack cannot be loaded; ``away`` is set when that is because its server could not be reached."""

    pack: str
    why: str
    away: bool = False


@error("{message}")
class ToolFailed(ToolError):
    """The tool raised; only the type's name and the message cross, never the object."""

    tool: str
    kind: str
    message: str


@error()
class WorkerDied(ToolError):
    """A pack's process ended before it answered; whether the call took effect is unknown."""

    pack: str
    how: str
    stderr: str = ""

    def __str__(self) -> str:
        tail = self.stderr.strip()[-1000:]
        out_of_memory = "out of memory: " if "MemoryError" in tail else ""
        words = f". Its last words: {tail}" if tail else ""
        return f"the worker of pack '{self.pack}' died during the call ({out_of_memory}{self.how}){words}"


@error(
    "the value of {tool} is too large for a program ({size})",
    handle="; it is stored: ot.result(handle='{handle}')",
)
class ResultTooLarge(ToolError):
    """A tool's value is larger than a program may hold; it is stored instead."""

    tool: str
    size: str
    handle: str = ""


class RunError(OneToolError):
    """A program ended without an outcome; ``printed`` holds what it had printed until then."""

    printed: str = ""


@error("{kind}", message=": {message}")
class ProgramFailed(RunError):
    """The program raised an exception that it did not catch."""

    kind: str
    message: str
    line: int | None = None
    hint: str = ""
    cause: str = ""
    """The error of a call that it comes from."""
    inside: tuple[str, int, str] | None = None
    """The file of the saved program that raised it, the line there, and its text."""


@error("{message} ({section}.{limit})")
class LimitExceeded(RunError):
    """The run used up one of its limits; the program could not catch it."""

    limit: str
    message: str
    section: str = "limits"
    """The section of the settings that has the limit."""


class RunCancelled(RunError):
    """The user cancelled the run from a terminal; the program could not catch it."""


class RunFenced(RunError):
    """Another start of a run in the background has taken the place of this one, which must do nothing more."""


@error("{most} of your runs in the background have not ended: wait for some, or cancel them (background.most_open)")
class TooManyRuns(ToolError):
    """A principal has as many runs in the background as it may have."""

    most: int


@error("{message}")
class NotRecorded(RunError):
    """A program that is replayed made a call that its cassette does not have; the program could not catch it."""

    message: str


class EngineCrashed(RunError):
    """The engine's process died while running the program."""


class Overloaded(RunError):
    """Too many runs are waiting already."""


@error(
    "session '{name}' has ended and its variables are gone: {why}. "
    "Nothing has run; run again to start a new one, without variables"
)
class SessionLost(RunError):
    """The session that a run names has ended, and its variables with it; nothing has run."""

    name: str
    why: str


@error("the login at '{server}' failed: {why}", advice=". {advice}")
class LoginFailed(OneToolError):
    """A login at a proxied server was not completed; an older login is unchanged."""

    server: str
    why: str
    advice: str = ""


@error()
class LoginRefused(LoginFailed):
    """The person or the authorization server said no."""


class SessionError(OneToolError):
    """A session cannot be opened, listed or saved as requested."""


class ResultError(OneToolError):
    """A stored result cannot be read or written."""


@error("result '{handle:.64}' not found")
class ResultNotFound(ResultError):
    """No result of this caller has this handle."""

    handle: str


@error("result '{handle}' has expired")
class ResultExpired(ResultError):
    """The result is older than ``output.result_ttl``."""

    handle: str


class StorageFull(ResultError):
    """The result could not be written."""


class ChatError(OneToolError):
    """A question to a chat model got no answer."""


@error()
class MissingExtra(ChatError):
    """A library from an optional extra is needed."""

    what: str
    extra: str

    def __str__(self) -> str:
        from ot.installation import install_command  # noqa: PLC0415 - reads the installation, for those who need this text

        return f"{self.what} needs more than the plain installation: {install_command(self.extra)}"


@error("service unavailable: {service}: {why}")
class ChatUnavailable(ChatError):
    """The model's service is unreachable; ``again`` is set where another attempt may help."""

    service: str
    why: str
    _: KW_ONLY
    again: bool = True


@error()
class RateLimited(ChatUnavailable):
    """The model's service wants fewer requests; ``retry_after`` is how many seconds it said, if it did."""

    why: str = field(init=False)
    retry_after: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        wait = "" if self.retry_after is None else f", it says to wait {self.retry_after:g} s"
        self.why = f"too many requests{wait}"


@error("there was no answer within {seconds:g} s (chat.seconds)")
class ChatTimeout(ChatError):
    """No answer came within ``chat.seconds``."""

    seconds: float
